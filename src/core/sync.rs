//! The locks of the core, so that a model checker can put its own in their place.

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
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
