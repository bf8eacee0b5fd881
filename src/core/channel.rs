//! A channel: its users' side of a [`State`], which is told in `line.rs`.
//!
//! A waiter may be entered at several channels and be served at one of them ([`Waiter::serve`] says
//! who is first). Where a waiter turns out to have been served elsewhere it is passed over; its
//! owner takes it out with [`Channel::withdraw`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use super::OutOfMemory;
use super::clock::Moment;
pub use super::guard::Guarded;
use super::guard::Locked;
use super::lending::{LEAST_TO_PAUSE, Lending, pause};
use super::line::Entry;
pub use super::line::{State, Unreceived, Unsent};
use super::poll::Signal;
use super::sync::{Arc, Condvar, doze};
use super::waiter::{Outcome, Waiter};

/// How much of a wait is wanted where an operation cannot take place at once.
pub enum Wait<'a, T> {
    /// None: try once.
    No,
    /// Enter this waiter: it has a time limit, or somebody else judges whether it waits in vain.
    Enter(&'a Waiter<T>),
    /// Enter this waiter, which has no time limit, unless nothing could ever serve it.
    EnterFed(&'a Waiter<T>),
}
/// A channel of `T`s. The parameter `G` says who can use it: [`Local`] and [`Crossing`] are the two
/// kinds, and a plain `Channel<T>` is either of them behind a pointer.
pub struct Channel<T, G: Guarded<T> + ?Sized = dyn Guarded<T>> {
    /// Values in the buffer at most; 0 for a rendezvous.
    capacity: usize,
    /// Other Lua states can open it: who waits here never waits in vain, as far as anyone can know.
    is_shared: bool,
    /// There are orphans to be fetched.
    has_orphans: AtomicBool,
    /// Rings when the channel is closed: timer threads sleep on it.
    closing: Condvar,
    values: PhantomData<fn() -> T>,
    state: G,
}

/// A channel that stays within one Lua state.
pub type Local<T> = Channel<T, RefCell<State<T>>>;

/// A channel that other threads use: timers, or other Lua states.
pub type Crossing<T> = Channel<T, Lending<T>>;

impl<T> Local<T> {
    /// A channel that buffers `capacity` values; 0 for a rendezvous.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self::of(capacity, false, RefCell::new(State::new(false)))
    }
}

impl<T> Crossing<T> {
    /// A timer's channel, of capacity 1. Where the timer feeds it waits on it are not endless until
    /// the timer has sent its last value, or the channel is closed. Sending there never allocates.
    #[must_use]
    pub fn timer(is_fed: bool) -> Self {
        let mut state = State::new(is_fed);
        state.buffer.reserve(1);
        Self::of(1, false, Lending::new(state))
    }

    /// A channel that other Lua states can open: waits on it are never endless.
    #[must_use]
    pub fn shared(capacity: usize) -> Self {
        Self::of(capacity, true, Lending::new(State::new(true)))
    }

    /// Puts a timer's thread to sleep until `until`. False, at once, when the channel is closed.
    #[must_use]
    pub fn sleep_open(&self, until: Moment) -> bool {
        let mut state = self.state.whole();
        loop {
            if state.closed {
                return false;
            }
            let now = Moment::now();
            if now >= until {
                return true;
            }
            state.next_feed = until;
            state = doze(&self.closing, state, until, now);
        }
    }
}

impl<T, G: Guarded<T>> Channel<T, G> {
    fn of(capacity: usize, is_shared: bool, state: G) -> Self {
        Self {
            capacity,
            is_shared,
            has_orphans: AtomicBool::new(false),
            closing: Condvar::new(),
            values: PhantomData,
            state,
        }
    }
}

impl<T, G: Guarded<T> + ?Sized> Channel<T, G> {
    // --- looking -------------------------------------------------------------------------------

    /// Values in the buffer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.lock().buffer.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Something other than this Lua state may still end a wait here.
    #[must_use]
    pub fn is_fed(&self) -> bool {
        self.state.lock().is_fed
    }

    /// The next time of the timer that feeds this channel; [`Moment::NEVER`] where none does.
    #[must_use]
    pub fn next_feed(&self) -> Moment {
        self.state.lock().next_feed
    }

    /// A receive would not wait.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state.lock().is_ready()
    }

    /// Shows with `signal`, from now on, whether a receive would not wait.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn add_signal(&self, signal: Arc<dyn Signal>) -> Result<(), OutOfMemory> {
        let mut state = self.lock();
        state.signals.try_reserve(1)?;
        let ready = state.is_ready();
        signal.set(ready);
        if state.signals.is_empty() {
            state.signalled = ready;
        }
        state.signals.push(signal);
        Ok(())
    }

    /// Looks whether the signals show what is so. A select that was to send here and took another
    /// case shows until its job goes on, or somebody looks.
    pub fn check_signals(&self) {
        self.lock().show();
    }

    pub fn remove_signal(&self, signal: &Arc<dyn Signal>) {
        self.lock().signals.retain(|there| !Arc::ptr_eq(there, signal));
    }

    // --- moving values -------------------------------------------------------------------------

    /// Hands `value` to the receiver that waits longest, or else buffers it.
    ///
    /// # Errors
    /// [`Unsent`] gives the value back.
    #[allow(clippy::inline_always, reason = "with those in `line.rs`")]
    #[inline(always)]
    pub fn try_send(&self, value: T) -> Result<(), Unsent<T>> {
        self.state.offer(value, self.capacity)
    }

    /// Takes the oldest value. The room that it leaves is the first waiting sender's, at once.
    ///
    /// # Errors
    /// [`Unreceived::Empty`] or [`Unreceived::Closed`].
    #[allow(clippy::inline_always, reason = "with those in `line.rs`")]
    #[inline(always)]
    pub fn try_receive(&self) -> Result<T, Unreceived> {
        self.state.take(self.capacity)
    }

    /// Tries once more to send, some microseconds later, where other threads receive: there may
    /// well be room for many values by then, and a sleep and a wake-up would take longer.
    ///
    /// # Errors
    /// [`Unsent`] gives the value back.
    pub fn send_soon(&self, value: T) -> Result<(), Unsent<T>> {
        if !self.is_stream() {
            return Err(Unsent::Full(value));
        }
        pause();
        self.try_send(value)
    }

    /// Tries once more to receive, some microseconds later, where other threads send.
    ///
    /// # Errors
    /// [`Unreceived::Empty`] or [`Unreceived::Closed`].
    pub fn receive_soon(&self) -> Result<T, Unreceived> {
        if !self.is_stream() {
            return Err(Unreceived::Empty);
        }
        pause();
        self.try_receive()
    }

    /// Hands `value` to the receiver that waits longest, or else buffers it, or else waits as
    /// `wait` says.
    ///
    /// # Errors
    /// [`Unsent`] gives the value back; [`Unsent::Full`] only with [`Wait::No`].
    /// `Ok(false)` tells that the waiter was entered and keeps the value.
    pub fn send(&self, value: T, wait: &Wait<'_, T>) -> Result<bool, Unsent<T>> {
        let mut state = self.lock();
        let value = match state.offer(value, self.capacity) {
            Err(Unsent::Full(value)) => value,
            done => return done.map(|()| true),
        };
        let waiter = match *wait {
            Wait::No => return Err(Unsent::Full(value)),
            // A timer only sends: it never makes room.
            Wait::EnterFed(_) if !self.is_shared => return Err(Unsent::Endless(value)),
            Wait::Enter(waiter) | Wait::EnterFed(waiter) => waiter.clone(),
        };
        if state.senders.try_reserve(1).is_err() {
            return Err(Unsent::OutOfMemory(value));
        }
        state.senders.push_back((Entry { waiter, case: 0 }, value));
        Ok(false)
    }

    /// Takes the oldest value, or else waits as `wait` says. The room that a taken value leaves is
    /// the first waiting sender's, at once.
    ///
    /// # Errors
    /// [`Unreceived::Empty`] only with [`Wait::No`]. `Ok(None)` tells that the waiter was entered.
    pub fn receive(&self, wait: &Wait<'_, T>) -> Result<Option<T>, Unreceived> {
        let mut state = self.lock();
        match state.take_or_why(self.capacity) {
            Err(Unreceived::Empty) => {}
            done => return done.map(Some),
        }
        let waiter = match *wait {
            Wait::No => return Err(Unreceived::Empty),
            Wait::EnterFed(_) if !state.is_fed => return Err(Unreceived::Endless),
            Wait::EnterFed(waiter) | Wait::Enter(waiter) => waiter.clone(),
        };
        if state.receivers.try_reserve(1).is_err() {
            return Err(Unreceived::OutOfMemory);
        }
        state.receivers.push_back(Entry { waiter, case: 0 });
        Ok(None)
    }

    /// Takes a waiter, as entered under `case`, out of the line. Gives back the value of one that
    /// waited to send.
    pub fn withdraw(&self, waiter: &Waiter<T>, case: u32) -> Option<T> {
        let mut state = self.lock();
        let is_it = |entry: &Entry<T>| entry.case == case && entry.waiter == *waiter;
        if let Some(place) = state.receivers.iter().position(is_it) {
            state.receivers.remove(place);
            return None;
        }
        let place = state.senders.iter().position(|(entry, _)| is_it(entry))?;
        state.senders.remove(place).map(|(_, value)| value)
    }

    /// Gives back a value that was received but could not be delivered: to who waits, or to the
    /// front of the line.
    ///
    /// # Errors
    /// The value, where the channel was stopped meanwhile, or there is no memory for it.
    pub fn put_back(&self, value: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.stopped {
            return Err(value);
        }
        let Err(value) = state.hand_over(value) else { return Ok(()) };
        if state.buffer.try_reserve(1).is_err() {
            return Err(value);
        }
        state.buffer.push_front(value);
        Ok(())
    }

    /// Leaves the value of a sender that has gone for its owner to fetch ([`Channel::orphan`]).
    pub fn abandon(&self, value: T) {
        if self.is_shared {
            // It is whole in itself: dropping it is all.
            return;
        }
        let mut state = self.lock();
        // Without memory for it the value is dropped here, and a slot of it stays behind.
        if state.orphans.try_reserve(1).is_ok() {
            state.orphans.push(value);
            self.has_orphans.store(true, Ordering::Relaxed);
        }
    }

    /// Fetches a value that was left behind.
    pub fn orphan(&self) -> Option<T> {
        if !self.has_orphans.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.lock();
        let orphan = state.orphans.pop();
        self.has_orphans.store(!state.orphans.is_empty(), Ordering::Relaxed);
        orphan
    }

    /// For whatever changes the channel.
    #[inline]
    pub(super) fn lock(&self) -> Locked<'_, T> {
        self.state.lock()
    }

    /// Other Lua states can open it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Another thread may well serve a wait here before a thread could go to sleep and be woken: it
    /// hands over value by value. Where many are buffered it is better to wait till some are there.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        self.is_shared && self.capacity <= 1
    }

    /// Other threads may send and receive many values here in a moment.
    fn is_stream(&self) -> bool {
        self.is_shared && self.capacity >= LEAST_TO_PAUSE
    }

    // --- ending --------------------------------------------------------------------------------

    /// Closes the channel and wakes all who wait. What is buffered can still be received. True: it
    /// was still fed; a timer will not send its value any more.
    pub fn close(&self) -> bool {
        let mut state = self.lock();
        let was_fed = state.is_fed;
        self.close_locked(&mut state);
        was_fed
    }

    /// Closes the channel, and takes out what is buffered.
    pub fn stop(&self) -> VecDeque<T> {
        let mut state = self.lock();
        self.close_locked(&mut state);
        state.stopped = true;
        std::mem::take(&mut state.buffer)
    }

    fn close_locked(&self, state: &mut State<T>) {
        if state.closed {
            return;
        }
        state.closed = true;
        let was_fed = std::mem::replace(&mut state.is_fed, false);
        state.next_feed = Moment::NEVER;
        while let Some(entry) = state.receivers.pop_front() {
            // Where it has been served elsewhere there is nothing to tell it.
            let _ = entry.waiter.serve(entry.case, Outcome::Closed(None));
        }
        // A sender that was served elsewhere stays, for its owner to take its value out.
        for _ in 0..state.senders.len() {
            let Some((entry, value)) = state.senders.pop_front() else { break };
            let refused = entry.waiter.serve(entry.case, Outcome::Closed(Some(value)));
            if let Some(value) = refused.err().and_then(Outcome::into_value) {
                state.senders.push_back((entry, value));
            }
        }
        if was_fed {
            self.closing.notify_all();
        }
    }

    // --- for timers ----------------------------------------------------------------------------

    /// Sends a timer's value; where the buffer is full it is dropped. False: the channel is closed.
    pub fn feed(&self, value: T) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        state.feed(value, self.capacity);
        true
    }

    /// Sends a timer's last value and closes the channel, in one step: nobody sees one without the
    /// other.
    pub fn feed_last(&self, value: T) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.feed(value, self.capacity);
        self.close_locked(&mut state);
    }

    /// Tells when the timer will send next.
    pub fn expect_feed(&self, at: Moment) {
        self.state.lock().next_feed = at;
    }
}

impl<T, G: Guarded<T> + ?Sized> fmt::Debug for Channel<T, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel({}/{})", self.len(), self.capacity)
    }
}
