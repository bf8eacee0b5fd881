//! A job: what a push asks for, what is kept of it, and what becomes of it.

use super::OutOfMemory;
use super::clock::{Moment, Span};
use super::heap::Ranked;
use super::names::PREFIX;
use super::terms::TermsNumber;

/// No slot of a queue's jobs.
pub(super) const NO_SLOT: u32 = u32::MAX;

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
    /// No other job of that id is to be there; a kept one that is tried again asks once more.
    pub is_unique: bool,
    /// A recurring job: the interval of its beats.
    pub every: Option<Span>,
    /// What the face keeps with the job.
    pub values: V,
}

impl<V> Plan<V> {
    /// The time of the push decides nothing.
    #[inline]
    #[must_use]
    pub fn is_timeless(&self) -> bool {
        self.delay == Span::ZERO && self.is_plain()
    }

    /// No deadline, no retries, one job and not a series.
    pub(super) fn is_plain(&self) -> bool {
        self.patience == Span::FOREVER
            && self.backoff == Span::ZERO
            && self.retries == 0
            && self.every.is_none()
    }
}

/// The id of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// Made up: `job-N`.
    Made(u64),
    Given(Box<[u8]>),
}

impl Name {
    /// What the user sees.
    pub fn with_text<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Given(bytes) => read(bytes),
            Self::Made(number) => made_text(*number, read),
        }
    }

    /// # Errors
    /// [`OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        match self {
            Self::Made(number) => Ok(Self::Made(*number)),
            Self::Given(bytes) => Ok(Self::Given(boxed(bytes)?)),
        }
    }

    /// The same id, as if it had been given.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub(super) fn given(&self) -> Result<Self, OutOfMemory> {
        self.with_text(|text| Ok(Self::Given(boxed(text)?)))
    }
}

/// A copy of the bytes of an id.
///
/// # Errors
/// [`OutOfMemory`].
pub fn boxed(bytes: &[u8]) -> Result<Box<[u8]>, OutOfMemory> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy.into_boxed_slice())
}

/// The id that is made up of a number.
pub fn made_text<R>(number: u64, read: impl FnOnce(&[u8]) -> R) -> R {
    let mut text = [0; PREFIX.len() + 20];
    let mut start = text.len();
    let mut left = number;
    loop {
        start -= 1;
        text[start] = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    start -= PREFIX.len();
    text[start..start + PREFIX.len()].copy_from_slice(PREFIX);
    read(&text[start..])
}

/// Why a push was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Stopped,
    /// It was to be unique, and a job of its id is there.
    Duplicate,
    Full,
}

/// How a job that is alive stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Running,
    /// It may start, as far as it is concerned.
    Ready,
    Delayed,
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

/// What is told of a job.
#[derive(Clone, Debug)]
pub struct Facts<V> {
    pub name: Name,
    pub priority: i64,
    /// Attempts begun.
    pub attempts: u64,
    pub retries: u64,
    pub values: V,
}

/// A job as one sees it from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<V> {
    /// `None`: it is not alive.
    pub status: Option<Status>,
    pub priority: i64,
    /// Attempts begun.
    pub attempts: u64,
    pub retries: u64,
    /// When it may start; while it runs: when it did.
    pub since: Moment,
    pub values: V,
}

/// One job at one stage of its life: a slot, and the place in the order of filing or starting, which
/// no other stage of any job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub(super) slot: u32,
    pub(super) seq: u64,
}

/// What [`super::scheduler::Scheduler::cancel_next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled<V> {
    /// A pending job, which has gone.
    Job(V),
    /// A series, whose beat in flight is its last.
    Series,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Delayed,
    Ready,
    Running,
    /// Still in flight: its attempt has ended by an error, and what becomes of it is to be said.
    Raised,
    /// Counted as expired; waits to be taken.
    Shed,
}

impl State {
    /// It has started and not ended.
    pub fn is_in_flight(self) -> bool {
        matches!(self, Self::Running | Self::Raised)
    }

    /// It waits for its turn.
    pub fn is_pending(self) -> bool {
        matches!(self, Self::Delayed | Self::Ready)
    }
}

/// A job in its slot.
#[derive(Debug)]
pub struct Job<V> {
    pub(super) state: State,
    /// It was met already, while stale entries are dropped.
    pub(super) is_seen: bool,
    pub(super) is_unique: bool,
    /// The next slot without a job, where this is one; else the next job of the same given id.
    pub(super) next: u32,
    /// The one before it of the same id.
    pub(super) previous: u32,
    pub(super) terms: TermsNumber,
    pub(super) name: Name,
    pub(super) values: V,
    pub(super) priority: i64,
    /// The place in the order of filing, new for a retry; that of starting while it runs, and of
    /// failing once it is kept.
    pub(super) seq: u64,
    /// When this attempt might start; once it has: when it did.
    pub(super) since: Moment,
    /// Attempts begun.
    pub(super) attempts: u64,
}

impl<V> Job<V> {
    /// This is the entry under which it waits to start.
    pub(super) fn is_at(&self, entry: Ready) -> bool {
        self.state == State::Ready && self.seq == entry.seq && self.priority == entry.priority
    }

    /// This is the entry under which it waits for its time.
    pub(super) fn is_delayed_as(&self, entry: Delayed) -> bool {
        self.state == State::Delayed && self.seq == entry.seq
    }
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
