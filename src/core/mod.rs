//! The core: time, order and threads. It knows no Lua and schedules numbers only.
//!
//! A job is a slot, a channel's value is whatever small token the face chooses, and every function
//! that depends on time takes the moment as a parameter, so that tests bring their own clock.
#![forbid(unsafe_code)]

pub mod channel;
pub mod clock;
pub mod crew;
pub mod metrics;
pub mod random;
pub mod scheduler;
pub mod select;
pub mod shared;
pub mod sync;
pub mod timer;
pub mod waiter;
pub mod wire;

/// The allocator refused: nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl From<std::collections::TryReserveError> for OutOfMemory {
    fn from(_: std::collections::TryReserveError) -> Self {
        Self
    }
}
