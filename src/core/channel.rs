//! A channel: a ring of values, those who wait for one, and those who wait for room.
//!
//! Everything is behind one mutex, and every step under it leaves the channel settled: receivers
//! wait only while nothing is buffered, senders only while there is no room. So a send first looks
//! for a waiting receiver, and a receive that makes room moves the first waiting sender's value in
//! before anyone else can look. Nobody overtakes.
//!
//! A waiter may be entered at several channels and be served at one of them ([`Waiter::serve`] says
//! who is first). Where a waiter turns out to have been served elsewhere it is passed over; its
//! owner takes it out with [`Channel::withdraw`].

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use super::OutOfMemory;
use super::clock::Moment;
use super::sync::{Arc, Condvar, Mutex, MutexGuard, lock};
use super::waiter::{Outcome, Signal, Waiter, doze};

/// Buffers larger than this give memory back when they run empty.
const KEPT_ROOM: usize = 1024;

/// A send that did not take place; the value comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent<T> {
    /// No room, and no receiver waits.
    Full(T),
    Closed(T),
    /// It would wait for something that cannot come.
    Endless(T),
    OutOfMemory(T),
}

impl<T> Unsent<T> {
    pub fn into_value(self) -> T {
        match self {
            Self::Full(value)
            | Self::Closed(value)
            | Self::Endless(value)
            | Self::OutOfMemory(value) => value,
        }
    }
}

/// A receive that gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreceived {
    Empty,
    /// Closed and drained.
    Closed,
    /// It would wait for something that cannot come.
    Endless,
    OutOfMemory,
}

/// How much of a wait is wanted where an operation cannot take place at once.
pub enum Wait<'a, T> {
    /// None: try once.
    No,
    /// Enter this waiter: it has a time limit, or somebody else judges whether it waits in vain.
    Enter(&'a Waiter<T>),
    /// Enter this waiter, which has no time limit, unless nothing could ever serve it.
    EnterFed(&'a Waiter<T>),
}

/// A waiter in line, with the number of the case under which it waits here.
pub(super) struct Entry<T> {
    pub waiter: Waiter<T>,
    pub case: u32,
}

/// What a channel is made of. Its users see it through the channel's methods.
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
pub struct State<T> {
    buffer: VecDeque<T>,
    pub(super) receivers: VecDeque<Entry<T>>,
    /// Those who wait for room, each with the value it brings.
    pub(super) senders: VecDeque<(Entry<T>, T)>,
    pub(super) closed: bool,
    /// What is buffered was dropped, and nothing comes after that.
    stopped: bool,
    /// Someone other than this Lua state may still send here: a timer, or another state.
    pub(super) is_fed: bool,
    /// The next time of its timer.
    next_feed: Moment,
    /// Values of senders that were taken out of the line without being asked.
    orphans: Vec<T>,
    /// Where it shows outside whether a receive would wait.
    signals: Vec<Arc<dyn Signal>>,
    /// What the signals show.
    signalled: bool,
}

/// What keeps a channel's state to one user at a time.
pub trait Guarded<T> {
    fn lock(&self) -> Locked<'_, T>;

    /// [`State::offer`], for the way that most sends go: one call through the pointer.
    ///
    /// # Errors
    /// [`Unsent`] gives the value back.
    fn offer(&self, value: T, capacity: usize) -> Result<(), Unsent<T>>;

    /// [`State::take`], for the way that most receives go.
    ///
    /// # Errors
    /// [`Unreceived::Empty`] or [`Unreceived::Closed`].
    fn take(&self, capacity: usize) -> Result<T, Unreceived>;
}

/// Within one Lua state, and so on one thread, nobody has to wait for anybody.
impl<T> Guarded<T> for RefCell<State<T>> {
    #[inline]
    fn lock(&self) -> Locked<'_, T> {
        // Never borrowed twice: nothing that is called under it comes back to the channel.
        Locked::Near(self.borrow_mut())
    }

    fn offer(&self, value: T, capacity: usize) -> Result<(), Unsent<T>> {
        let mut state = self.borrow_mut();
        let offered = state.offer(value, capacity);
        state.show();
        offered
    }

    fn take(&self, capacity: usize) -> Result<T, Unreceived> {
        let mut state = self.borrow_mut();
        let taken = state.take_or_why(capacity);
        state.show();
        taken
    }
}

impl<T> Guarded<T> for Mutex<State<T>> {
    #[inline]
    fn lock(&self) -> Locked<'_, T> {
        Locked::Far(lock(self))
    }

    fn offer(&self, value: T, capacity: usize) -> Result<(), Unsent<T>> {
        let mut state = lock(self);
        let offered = state.offer(value, capacity);
        state.show();
        offered
    }

    fn take(&self, capacity: usize) -> Result<T, Unreceived> {
        let mut state = lock(self);
        let taken = state.take_or_why(capacity);
        state.show();
        taken
    }
}

/// The state, for as long as nobody else can see it. When it is let go the signals, if there are
/// any, show what it has become.
pub enum Locked<'a, T> {
    Near(RefMut<'a, State<T>>),
    Far(MutexGuard<'a, State<T>>),
}

impl<T> Deref for Locked<'_, T> {
    type Target = State<T>;

    #[inline]
    fn deref(&self) -> &State<T> {
        match self {
            Self::Near(state) => state,
            Self::Far(state) => state,
        }
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State<T> {
        match self {
            Self::Near(state) => state,
            Self::Far(state) => state,
        }
    }
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        self.show();
    }
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
pub type Crossing<T> = Channel<T, Mutex<State<T>>>;

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
        Self::of(1, false, Mutex::new(state))
    }

    /// A channel that other Lua states can open: waits on it are never endless.
    #[must_use]
    pub fn shared(capacity: usize) -> Self {
        Self::of(capacity, true, Mutex::new(State::new(true)))
    }

    /// Puts a timer's thread to sleep until `until`. False, at once, when the channel is closed.
    #[must_use]
    pub fn sleep_open(&self, until: Moment) -> bool {
        let mut state = lock(&self.state);
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
    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), Unsent<T>> {
        self.state.offer(value, self.capacity)
    }

    /// Takes the oldest value. The room that it leaves is the first waiting sender's, at once.
    ///
    /// # Errors
    /// [`Unreceived::Empty`] or [`Unreceived::Closed`].
    #[inline]
    pub fn try_receive(&self) -> Result<T, Unreceived> {
        self.state.take(self.capacity)
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

    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    // --- ending --------------------------------------------------------------------------------

    /// Closes the channel and wakes all who wait. What is buffered can still be received. True: a
    /// timer was to send here, and now will not.
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

impl<T> State<T> {
    fn new(is_fed: bool) -> Self {
        Self {
            buffer: VecDeque::new(),
            receivers: VecDeque::new(),
            senders: VecDeque::new(),
            closed: false,
            stopped: false,
            is_fed,
            next_feed: Moment::NEVER,
            orphans: Vec::new(),
            signals: Vec::new(),
            signalled: false,
        }
    }

    /// A receive would not wait.
    fn is_ready(&self) -> bool {
        let waits = |(entry, _): &(Entry<T>, T)| entry.waiter.is_open();
        !self.buffer.is_empty() || self.closed || self.senders.iter().any(waits)
    }

    /// Lets the signals, if there are any, show what the state has become.
    #[inline]
    fn show(&mut self) {
        if !self.signals.is_empty() {
            self.show_all();
        }
    }

    fn show_all(&mut self) {
        let ready = self.is_ready();
        if ready != self.signalled {
            self.signalled = ready;
            for signal in &self.signals {
                signal.set(ready);
            }
        }
    }

    /// Hands `value` to who waits for it, or buffers it where there is room.
    #[inline]
    pub(super) fn offer(&mut self, mut value: T, capacity: usize) -> Result<(), Unsent<T>> {
        if self.closed {
            return Err(Unsent::Closed(value));
        }
        if !self.receivers.is_empty() {
            match self.hand_over(value) {
                Ok(()) => return Ok(()),
                Err(back) => value = back,
            }
        }
        if self.buffer.len() >= capacity {
            return Err(Unsent::Full(value));
        }
        if self.buffer.try_reserve(1).is_err() {
            return Err(Unsent::OutOfMemory(value));
        }
        self.buffer.push_back(value);
        Ok(())
    }

    /// Serves the first receiver in line that still waits; else gives the value back.
    fn hand_over(&mut self, mut value: T) -> Result<(), T> {
        while let Some(entry) = self.receivers.pop_front() {
            match entry.waiter.serve(entry.case, Outcome::Received(value)) {
                Ok(()) => return Ok(()),
                // Served elsewhere: it no longer waits here.
                Err(outcome) => match outcome.into_value() {
                    Some(back) => value = back,
                    None => return Ok(()),
                },
            }
        }
        Err(value)
    }

    /// The oldest value, buffered or brought by a waiting sender.
    #[inline]
    pub(super) fn take(&mut self, capacity: usize) -> Option<T> {
        let Some(value) = self.buffer.pop_front() else {
            return if self.senders.is_empty() { None } else { self.next_sent() };
        };
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_ROOM {
            self.buffer = VecDeque::new();
        }
        // A value that was put back may have filled more than there is room for.
        if self.buffer.len() < capacity
            && !self.senders.is_empty()
            && let Some(moved) = self.next_sent()
        {
            // The room is the one that was just left.
            self.buffer.push_back(moved);
        }
        Some(value)
    }

    /// The oldest value, or why there is none.
    #[inline]
    fn take_or_why(&mut self, capacity: usize) -> Result<T, Unreceived> {
        match self.take(capacity) {
            Some(value) => Ok(value),
            None if self.closed => Err(Unreceived::Closed),
            None => Err(Unreceived::Empty),
        }
    }

    /// Takes the value of the first sender in line that still waits, and lets that one go on.
    fn next_sent(&mut self) -> Option<T> {
        let place = (0..self.senders.len()).find(|&place| {
            let entry = &self.senders[place].0;
            entry.waiter.serve(entry.case, Outcome::Sent).is_ok()
        })?;
        self.senders.remove(place).map(|(_, value)| value)
    }

    fn feed(&mut self, value: T, capacity: usize) {
        if let Err(value) = self.hand_over(value)
            && self.buffer.len() < capacity
        {
            self.buffer.push_back(value);
        }
    }
}
