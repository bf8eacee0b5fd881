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

use std::collections::VecDeque;

use super::clock::Moment;
use super::sync::{Condvar, Mutex, MutexGuard, lock};
use super::waiter::{Outcome, Waiter, doze};

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
    /// Enter this waiter; it has a time limit.
    Limited(&'a Waiter<T>),
    /// Enter this waiter, unless nothing could ever serve it.
    Unlimited(&'a Waiter<T>),
}

/// A waiter in line, with the number of the case under which it waits here.
struct Entry<T> {
    waiter: Waiter<T>,
    case: u32,
}

struct State<T> {
    buffer: VecDeque<T>,
    receivers: VecDeque<Entry<T>>,
    /// Those who wait for room, each with the value it brings.
    senders: VecDeque<(Entry<T>, T)>,
    closed: bool,
    /// Live timers that will still send here.
    feeders: usize,
}

/// A channel of `T`s. All its functions may be called from any thread.
pub struct Channel<T> {
    /// Values in the buffer at most; 0 for a rendezvous.
    capacity: usize,
    state: Mutex<State<T>>,
    /// Rings when the channel is closed: timer threads sleep on it.
    closing: Condvar,
}

impl<T> Channel<T> {
    /// A channel that buffers `capacity` values; 0 for a rendezvous.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self::with_feeders(capacity, 0)
    }

    /// A channel of capacity 1 that a timer feeds: waits on it are not endless until the timer has
    /// sent its last value, or the channel is closed. Sending there never allocates.
    #[must_use]
    pub fn fed() -> Self {
        let channel = Self::with_feeders(1, 1);
        lock(&channel.state).buffer.reserve(1);
        channel
    }

    fn with_feeders(capacity: usize, feeders: usize) -> Self {
        let state = State {
            buffer: VecDeque::new(),
            receivers: VecDeque::new(),
            senders: VecDeque::new(),
            closed: false,
            feeders,
        };
        Self { capacity, state: Mutex::new(state), closing: Condvar::new() }
    }

    // --- looking -------------------------------------------------------------------------------

    /// Values in the buffer.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.state).buffer.len()
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
        lock(&self.state).closed
    }

    // --- moving values -------------------------------------------------------------------------

    /// Hands `value` to the receiver that waits longest, or else buffers it, or else waits as
    /// `wait` says.
    ///
    /// # Errors
    /// [`Unsent`] gives the value back; [`Unsent::Full`] only with [`Wait::No`].
    /// `Ok(false)` tells that the waiter was entered and keeps the value.
    pub fn send(&self, value: T, case: u32, wait: &Wait<'_, T>) -> Result<bool, Unsent<T>> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Unsent::Closed(value));
        }
        let Err(value) = state.hand_over(value) else { return Ok(true) };
        if state.buffer.len() < self.capacity {
            if state.buffer.try_reserve(1).is_err() {
                return Err(Unsent::OutOfMemory(value));
            }
            state.buffer.push_back(value);
            return Ok(true);
        }
        let waiter = match *wait {
            Wait::No => return Err(Unsent::Full(value)),
            // A timer only sends: it never makes room.
            Wait::Unlimited(_) => return Err(Unsent::Endless(value)),
            Wait::Limited(waiter) => waiter.clone(),
        };
        if state.senders.try_reserve(1).is_err() {
            return Err(Unsent::OutOfMemory(value));
        }
        state.senders.push_back((Entry { waiter, case }, value));
        Ok(false)
    }

    /// Takes the oldest value, or else waits as `wait` says. The room that a taken value leaves is
    /// the first waiting sender's, at once.
    ///
    /// # Errors
    /// [`Unreceived::Empty`] only with [`Wait::No`]. `Ok(None)` tells that the waiter was entered.
    pub fn receive(&self, case: u32, wait: &Wait<'_, T>) -> Result<Option<T>, Unreceived> {
        let mut state = lock(&self.state);
        if let Some(value) = state.take() {
            return Ok(Some(value));
        }
        if state.closed {
            return Err(Unreceived::Closed);
        }
        let waiter = match *wait {
            Wait::No => return Err(Unreceived::Empty),
            Wait::Unlimited(_) if state.feeders == 0 => return Err(Unreceived::Endless),
            Wait::Unlimited(waiter) | Wait::Limited(waiter) => waiter.clone(),
        };
        if state.receivers.try_reserve(1).is_err() {
            return Err(Unreceived::OutOfMemory);
        }
        state.receivers.push_back(Entry { waiter, case });
        Ok(None)
    }

    /// Takes a waiter out of the line. Gives back the value of one that waited to send. Once for
    /// each time that the waiter was entered here.
    pub fn withdraw(&self, waiter: &Waiter<T>) -> Option<T> {
        let mut state = lock(&self.state);
        if let Some(place) = state.receivers.iter().position(|entry| entry.waiter == *waiter) {
            state.receivers.remove(place);
            return None;
        }
        let place = state.senders.iter().position(|(entry, _)| entry.waiter == *waiter)?;
        state.senders.remove(place).map(|(_, value)| value)
    }

    /// Gives back a value that was received but could not be delivered: to who waits, or to the
    /// front of the line.
    ///
    /// # Errors
    /// The value, where there is no memory for it.
    pub fn put_back(&self, value: T) -> Result<(), T> {
        let mut state = lock(&self.state);
        let Err(value) = state.hand_over(value) else { return Ok(()) };
        if state.buffer.try_reserve(1).is_err() {
            return Err(value);
        }
        state.buffer.push_front(value);
        Ok(())
    }

    // --- ending --------------------------------------------------------------------------------

    /// Closes the channel and wakes all who wait. What is buffered can still be received.
    pub fn close(&self) {
        self.close_locked(&mut lock(&self.state));
    }

    /// Closes the channel and drops what is buffered.
    pub fn stop(&self) {
        let mut state = lock(&self.state);
        self.close_locked(&mut state);
        let dropped = std::mem::take(&mut state.buffer);
        drop(state);
        drop(dropped);
    }

    fn close_locked(&self, state: &mut MutexGuard<'_, State<T>>) {
        if state.closed {
            return;
        }
        state.closed = true;
        state.feeders = 0;
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
        self.closing.notify_all();
    }

    // --- for timers ----------------------------------------------------------------------------

    /// Sends a timer's value; where the buffer is full it is dropped. False: the channel is closed.
    pub fn feed(&self, value: T) -> bool {
        let mut state = lock(&self.state);
        if state.closed {
            return false;
        }
        state.feed(value, self.capacity);
        true
    }

    /// Sends a timer's last value and closes the channel, in one step: nobody sees one without the
    /// other.
    pub fn feed_last(&self, value: T) {
        let mut state = lock(&self.state);
        if state.closed {
            return;
        }
        state.feed(value, self.capacity);
        self.close_locked(&mut state);
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
            state = doze(&self.closing, state, until, now);
        }
    }
}

impl<T> State<T> {
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
    fn take(&mut self) -> Option<T> {
        let Some(value) = self.buffer.pop_front() else { return self.next_sent() };
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_ROOM {
            self.buffer = VecDeque::new();
        }
        if !self.senders.is_empty()
            && let Some(moved) = self.next_sent()
        {
            // The room is the one that was just left.
            self.buffer.push_back(moved);
        }
        Some(value)
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
