//! The locks of the core, so that a model checker can put its own in their place.

use std::sync::PoisonError;

use super::clock::Moment;

/// The standard library's in any case: a checker's cannot hold a `dyn` channel, and who waits for
/// whom does not hang on the count of references.
pub use std::sync::Arc;
#[cfg(not(loom))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub use loom::sync::{Condvar, Mutex, MutexGuard};

/// Locks, whether or not a thread died while it held the lock: no invariant of the core is broken
/// in the middle of a critical section, so what is there is still sound.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps on `bell` until it rings, or `until`, or for no reason at all.
pub fn doze<'a, S>(
    bell: &Condvar,
    guard: MutexGuard<'a, S>,
    until: Moment,
    now: Moment,
) -> MutexGuard<'a, S> {
    if until == Moment::NEVER {
        return bell.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    let left = until.since(now).to_duration();
    bell.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
}
