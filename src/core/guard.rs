//! What keeps a channel's state to one user at a time: nothing but a check within one Lua state, the
//! locks of `lending.rs` where other threads come to it.

use std::cell::{RefCell, RefMut};
use std::ops::{Deref, DerefMut};

use super::line::{State, Unreceived, Unsent};
use super::sync::MutexGuard;

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

/// Within one Lua state, and so on one thread, nobody has to wait for anybody. Most values are just
/// buffered, and just taken: that much goes into the face's functions, the rest is called.
#[allow(clippy::inline_always, reason = "with those in `line.rs`")]
impl<T> Guarded<T> for RefCell<State<T>> {
    #[inline]
    fn lock(&self) -> Locked<'_, T> {
        // Never borrowed twice: nothing that is called under it comes back to the channel.
        Locked::Near(self.borrow_mut())
    }

    #[inline(always)]
    fn offer(&self, value: T, capacity: usize) -> Result<(), Unsent<T>> {
        let mut state = self.borrow_mut();
        if state.has_plain_room(capacity) {
            state.buffer.push_back(value);
            return Ok(());
        }
        offer_with_care(state, value, capacity)
    }

    #[inline(always)]
    fn take(&self, capacity: usize) -> Result<T, Unreceived> {
        let mut state = self.borrow_mut();
        if state.is_plain_to_take()
            && let Some(value) = state.buffer.pop_front()
        {
            return Ok(value);
        }
        take_with_care(state, capacity)
    }
}

/// Where somebody waits, a signal shows, there is no room yet, or the channel is closed.
#[inline(never)]
fn offer_with_care<T>(
    mut state: RefMut<'_, State<T>>,
    value: T,
    capacity: usize,
) -> Result<(), Unsent<T>> {
    let offered = state.offer(value, capacity);
    state.show();
    offered
}

/// Where somebody waits, a signal shows, nothing is there, or memory is to be given back.
#[inline(never)]
fn take_with_care<T>(mut state: RefMut<'_, State<T>>, capacity: usize) -> Result<T, Unreceived> {
    let taken = state.take_or_why(capacity);
    state.show();
    taken
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_large_gives_its_memory_back_when_it_runs_empty() {
        const MANY: usize = 50_000;
        let local = RefCell::new(State::new(false));
        for value in 0..MANY {
            assert!(local.offer(value, MANY).is_ok());
        }
        for value in 0..MANY {
            assert!(local.borrow().buffer.capacity() >= MANY, "it is not copied on the way");
            assert_eq!(local.take(MANY), Ok(value));
        }
        assert!(local.borrow().buffer.capacity() < 2_000);
    }
}
