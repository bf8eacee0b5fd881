//! A job: what a push asks for, what is kept of it, and what becomes of it.

use super::clock::{Moment, Span};
use super::heap::Ranked;

/// What a push asks for.
#[derive(Clone, Debug)]
pub struct Plan<V> {
    /// Higher first.
    pub priority: i64,
    /// Not before then, counted from the push.
    pub delay: Span,
    /// At most `retries + 1` attempts.
    pub retries: u64,
    /// Before each retry.
    pub backoff: Span,
    /// A deadline on starting, counted from when an attempt may start. [`Span::FOREVER`]: none.
    pub patience: Span,
    /// The id, where the user gave one.
    pub name: Option<Box<[u8]>>,
    /// What the face keeps with the job.
    pub values: V,
}

/// The id of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// Made up: `job-N`.
    Made(u64),
    Given(Box<[u8]>),
}

/// Why a push was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Stopped,
    Full,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<V> {
    /// An attempt of the job in this slot has begun.
    Start(u32, V),
    /// The job in this slot came too late and will not run; it is to [`super::scheduler::Scheduler::leave`].
    Shed(u32),
    /// Nothing may start now.
    Nothing,
}

/// What becomes of a job whose attempt raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Another attempt is its due; [`super::scheduler::Scheduler::retry`] files it.
    Retry,
    /// That was the last one; the job is to [`super::scheduler::Scheduler::leave`].
    GiveUp,
}

/// A job as it was when it left the queue, or as it is.
#[derive(Clone, Debug)]
pub struct Facts<V> {
    pub name: Name,
    pub priority: i64,
    pub attempts: u64,
    pub retries: u64,
    pub values: V,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Delayed,
    Ready,
    Running,
    /// Counted as expired; waits to be taken.
    Shed,
}

#[derive(Debug)]
pub(super) struct Job<V> {
    pub state: State,
    /// The next slot without a job, where this is one.
    pub next_free: u32,
    pub name: Name,
    pub values: V,
    pub priority: i64,
    /// The place in the order of filing; new for a retry.
    pub seq: u64,
    /// When this attempt might start.
    pub due: Moment,
    /// When the running attempt did start.
    pub started: Moment,
    pub patience: Span,
    pub backoff: Span,
    pub retries: u64,
    /// Attempts begun.
    pub attempts: u64,
}

/// The order of what may run: the greatest is the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub priority: i64,
    pub seq: u64,
    pub slot: u32,
}

impl Ranked for Ready {
    fn rank(&self) -> u128 {
        // The sign bit is turned, so that the order is that of unsigned numbers.
        let priority = self.priority.cast_unsigned() ^ (1 << 63);
        u128::from(priority) << 64 | u128::from(!self.seq)
    }
}

/// The order of what is to come: the greatest is due first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delayed {
    pub due: Moment,
    pub seq: u64,
    pub slot: u32,
}

impl Ranked for Delayed {
    fn rank(&self) -> u128 {
        u128::from(!self.due.nanos()) << 64 | u128::from(!self.seq)
    }
}
