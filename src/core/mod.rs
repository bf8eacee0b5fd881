//! The core: time, order and threads. It knows no Lua and schedules numbers only.
//!
//! A job is a slot, a channel's value is whatever small token the face chooses, and every function
//! that depends on time takes the moment as a parameter, so that tests bring their own clock.
#![forbid(unsafe_code)]

pub mod backoff;
pub mod channel;
pub mod clock;
pub mod crew;
mod failed;
mod gate;
pub mod guard;
pub mod heap;
pub mod histogram;
pub mod job;
pub mod lending;
pub mod line;
pub mod metrics;
mod names;
pub mod parker;
pub mod patience;
pub mod places;
pub mod poll;
pub mod random;
mod ready;
pub mod scheduler;
pub mod select;
pub mod shared;
pub mod spares;
pub mod sync;
mod terms;
pub mod ticks;
pub mod timer;
pub mod waiter;
pub mod wire;

/// The allocator refused: nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl OutOfMemory {
    /// Asks for some memory and gives it back, before a step that allocates a little where the
    /// standard library would end the process if it could not.
    ///
    /// # Errors
    /// [`OutOfMemory`], where there is none to be had.
    pub fn probe() -> Result<(), Self> {
        /// More than any such step takes.
        const ENOUGH: usize = 4096;
        Ok(Vec::<u8>::new().try_reserve_exact(ENOUGH)?)
    }

    /// The same for one box of a `T`: the allocator gives what it has just got back.
    ///
    /// # Errors
    /// [`OutOfMemory`], where there is none to be had.
    pub fn probe_box<T>() -> Result<(), Self> {
        Ok(Vec::<T>::new().try_reserve_exact(1)?)
    }
}

impl From<std::collections::TryReserveError> for OutOfMemory {
    fn from(_: std::collections::TryReserveError) -> Self {
        Self
    }
}
