//! What a channel is made of: a ring of values, those who wait for one, and those who wait for room.
//!
//! Every step leaves it settled: receivers wait only while nothing is buffered, senders only while
//! there is no room. So a send first looks for a waiting receiver, and a receive that makes room
//! moves the first waiting sender's value in before anyone else can look. Nobody overtakes.

use std::collections::VecDeque;

use super::clock::Moment;
use super::poll::Signal;
use super::sync::Arc;
use super::waiter::{Outcome, Waiter};

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
/// A waiter in line, with the number of the case under which it waits here.
pub(super) struct Entry<T> {
    pub waiter: Waiter<T>,
    pub case: u32,
}

/// What a channel is made of. Its users see it through the channel's methods.
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
pub struct State<T> {
    pub(super) buffer: VecDeque<T>,
    /// Values at most, older than those of the buffer, that receivers have taken along
    /// (`lending.rs`).
    pub(super) lent: usize,
    pub(super) receivers: VecDeque<Entry<T>>,
    /// Those who wait for room, each with the value it brings.
    pub(super) senders: VecDeque<(Entry<T>, T)>,
    pub(super) closed: bool,
    /// What is buffered was dropped, and nothing comes after that.
    pub(super) stopped: bool,
    /// Someone other than this Lua state may still send here: a timer, or another state.
    pub(super) is_fed: bool,
    /// The next time of its timer.
    pub(super) next_feed: Moment,
    /// Values of senders that were taken out of the line without being asked.
    pub(super) orphans: Vec<T>,
    /// Where it shows outside whether a receive would wait.
    pub(super) signals: Vec<Arc<dyn Signal>>,
    /// What the signals show.
    pub(super) signalled: bool,
}
#[allow(
    clippy::inline_always,
    reason = "a send and a receive in one Lua state are 5 ns of 94 less"
)]
impl<T> State<T> {
    pub(super) fn new(is_fed: bool) -> Self {
        Self {
            buffer: VecDeque::new(),
            lent: 0,
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
    pub(super) fn is_ready(&self) -> bool {
        let waits = |(entry, _): &(Entry<T>, T)| entry.waiter.is_open();
        !self.buffer.is_empty() || self.closed || self.senders.iter().any(waits)
    }

    /// Lets the signals, if there are any, show what the state has become.
    #[inline]
    pub(super) fn show(&mut self) {
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

    /// A value that comes now is buffered, in room that is there, and nothing else happens.
    #[inline(always)]
    pub(super) fn has_plain_room(&self, capacity: usize) -> bool {
        let room = capacity.min(self.buffer.capacity());
        self.buffer.len() < room
            && !self.closed
            && self.receivers.is_empty()
            && self.signals.is_empty()
    }

    /// If a value is taken now out of the buffer, nothing else happens.
    #[inline(always)]
    pub(super) fn is_plain_to_take(&self) -> bool {
        self.senders.is_empty()
            && self.signals.is_empty()
            && (self.buffer.len() > 1 || self.buffer.capacity() <= KEPT_ROOM)
    }

    /// Hands `value` to who waits for it, or buffers it where there is room.
    #[inline(always)]
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
        if self.buffer.len() + self.lent >= capacity {
            return Err(Unsent::Full(value));
        }
        if self.buffer.try_reserve(self.lent + 1).is_err() {
            return Err(Unsent::OutOfMemory(value));
        }
        self.buffer.push_back(value);
        Ok(())
    }

    /// Serves the first receiver in line that still waits; else gives the value back.
    pub(super) fn hand_over(&mut self, mut value: T) -> Result<(), T> {
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
    #[inline(always)]
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

    /// Gives the memory of a large buffer back that has run empty, but for this much room.
    pub(super) fn shrink(&mut self, room: usize) {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_ROOM {
            let mut small = VecDeque::new();
            if small.try_reserve(room).is_ok() {
                self.buffer = small;
            }
        }
    }

    /// The oldest value, or why there is none.
    #[inline(always)]
    pub(super) fn take_or_why(&mut self, capacity: usize) -> Result<T, Unreceived> {
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

    pub(super) fn feed(&mut self, value: T, capacity: usize) {
        if let Err(value) = self.hand_over(value)
            && self.buffer.len() < capacity
        {
            self.buffer.push_back(value);
        }
    }
}
