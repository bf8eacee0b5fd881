//! The state of a channel between threads.
//!
//! Were there one lock, a sender and a receiver on two cores would wait for each other at every
//! value. So a receiver takes the oldest values along, many at once, and they lie under a lock of
//! their own: the next receives find them there and meet no sender. A sender counts them as
//! buffered. Whoever does anything but send, or receive what is there, has them put back first and
//! finds the channel as if nothing had been lent.
//!
//! Nothing is lent while somebody waits to send, as each room that is made is his at once; nor
//! where a signal shows what is there.
//!
//! Two threads of like speed would still meet at every value where the buffer is nearly empty or
//! nearly full. One that meets the other there stands back for some microseconds: then there are
//! many values to receive, or there is room for many.
//!
//! The lock of what is lent is taken alone, or as the last one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clock::{Moment, Span};
use super::guard::{Guarded, Locked};
use super::line::{State, Unreceived, Unsent};
use super::sync::{Mutex, MutexGuard, lock};

/// Values that are lent at once, at most.
const LENT: usize = 128;

/// A channel of less capacity has nothing to lend.
const LEAST_TO_LEND: usize = 2;

/// In a channel of less capacity there are never many values, nor is there room for many: threads
/// take turns there, and a pause would only delay them.
pub(super) const LEAST_TO_PAUSE: usize = 16;

/// Lets some microseconds go by, in which another thread gets on: fewer than a sleep and a wake-up
/// take, enough for it to send or receive some dozens of values.
pub(super) fn pause() {
    const PAUSE: Span = Span::from_nanos(4_000);
    let until = Moment::now().after(PAUSE);
    while Moment::now() < until {
        std::hint::spin_loop();
    }
}

/// On cache lines of its own: what a receiver does there does not slow down a sender.
#[repr(align(128))]
struct Apart<V>(V);

/// What keeps the state of a channel to one thread at a time.
pub struct Lending<T> {
    state: Mutex<State<T>>,
    /// The oldest values. The buffer has kept the room for them.
    lent: Apart<Mutex<VecDeque<T>>>,
    /// Something may be lent. It is known for sure under the state's lock only.
    lends: AtomicBool,
}

impl<T> Lending<T> {
    pub(super) fn new(state: State<T>) -> Self {
        Self {
            state: Mutex::new(state),
            lent: Apart(Mutex::new(VecDeque::new())),
            lends: AtomicBool::new(false),
        }
    }

    /// The state, with all values in its buffer.
    #[inline]
    pub(super) fn whole(&self) -> MutexGuard<'_, State<T>> {
        let mut state = lock(&self.state);
        self.recall(&mut state);
        state
    }

    #[inline]
    fn recall(&self, state: &mut State<T>) {
        if state.lent > 0 {
            self.recall_all(state);
        }
    }

    fn recall_all(&self, state: &mut State<T>) {
        let mut lent = lock(&self.lent.0);
        while let Some(value) = lent.pop_back() {
            state.buffer.push_front(value);
        }
        self.note(state, 0);
    }

    /// Lends what is to be received next.
    fn lend(&self, state: &mut State<T>) {
        if state.buffer.is_empty() || !state.senders.is_empty() || !state.signals.is_empty() {
            return;
        }
        let count = state.buffer.len().min(LENT);
        let mut lent = lock(&self.lent.0);
        if lent.try_reserve(count).is_ok() {
            lent.extend(state.buffer.drain(..count));
            state.shrink(count);
            self.note(state, count);
        }
    }

    fn note(&self, state: &mut State<T>, lent: usize) {
        state.lent = lent;
        self.lends.store(lent > 0, Ordering::Relaxed);
    }

    /// Counts what is still lent, as some of it may have been received.
    fn recount<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        capacity: usize,
    ) -> MutexGuard<'a, State<T>> {
        if let Ok(lent) = self.lent.0.try_lock() {
            state.lent = lent.len();
            return state;
        }
        // A receiver is just there.
        if capacity >= LEAST_TO_PAUSE {
            drop(state);
            pause();
            state = lock(&self.state);
        }
        state.lent = lock(&self.lent.0).len();
        state
    }
}

impl<T> Guarded<T> for Lending<T> {
    #[inline]
    fn lock(&self) -> Locked<'_, T> {
        Locked::Far(self.whole())
    }

    fn offer(&self, value: T, capacity: usize) -> Result<(), Unsent<T>> {
        let mut state = lock(&self.state);
        if state.lent > 0 && state.buffer.len() + state.lent >= capacity {
            state = self.recount(state, capacity);
        }
        let offered = state.offer(value, capacity);
        state.show();
        offered
    }

    fn take(&self, capacity: usize) -> Result<T, Unreceived> {
        if capacity < LEAST_TO_LEND {
            let mut state = lock(&self.state);
            let taken = state.take_or_why(capacity);
            state.show();
            return taken;
        }
        if self.lends.load(Ordering::Relaxed)
            && let Some(value) = lock(&self.lent.0).pop_front()
        {
            return Ok(value);
        }
        let mut state = self.state.try_lock().unwrap_or_else(|_| {
            // A sender is just there.
            if capacity >= LEAST_TO_PAUSE {
                pause();
            }
            lock(&self.state)
        });
        self.recall(&mut state);
        let taken = state.take_or_why(capacity);
        self.lend(&mut state);
        state.show();
        taken
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_large_gives_its_memory_back_and_keeps_the_room_for_what_is_lent() {
        const MANY: usize = 50_000;
        let lending = Lending::new(State::new(true));
        for value in 0..MANY {
            assert!(lending.offer(value, MANY).is_ok());
        }
        let mut taken: Vec<usize> = (0..MANY - 1).map(|_| lending.take(MANY).unwrap()).collect();
        {
            let state = lock(&lending.state);
            let room = state.buffer.capacity();
            assert!(room < 2_000 && room >= state.buffer.len() + state.lent, "{room}");
        }
        assert_eq!(lending.whole().buffer.len(), 1);
        taken.extend(lending.take(MANY));
        assert!(taken.into_iter().eq(0..MANY));
    }
}
