//! Which job runs next.
//!
//! What is pending is in `delayed`, by due time, or in `ready`, by priority and then by the order of
//! the pushes. Before a job is picked, all that have come due move from the first to the
//! second, so a late job of high priority overtakes an early one of low priority, and a delayed job
//! keeps the place of its push among its equals.
//!
//! An entry there is never searched for. It names a slot and the sequence number under which the job
//! was filed there; an entry whose job has gone, or was filed anew, is stale and is skipped when it
//! comes up. So taking a job out costs nothing, whatever its place.
//!
//! The scheduler reads no clock. Every function that depends on time takes the moment.

use std::mem;

use super::OutOfMemory;
use super::clock::{Moment, Span};
use super::heap::Heap;
use super::job::{Delayed, Job, Ready, State};
pub use super::job::{Facts, Name, Next, Plan, Refusal, Verdict};
use super::metrics::Metrics;
use super::ready::ReadyJobs;

/// No slot of the jobs.
const NO_SLOT: u32 = u32::MAX;

/// Room that is made at first.
const FIRST_ROOM: usize = 32;

/// Room that is kept however few jobs are left.
const KEPT_ROOM: usize = 1024;

/// One queue's jobs. `V` is what the face keeps with each of them.
#[derive(Debug)]
pub struct Scheduler<V> {
    jobs: Vec<Job<V>>,
    /// The first slot of `jobs` that holds no job; each names the next. [`NO_SLOT`]: none.
    first_free: u32,
    /// Slots of `jobs` that hold one.
    live: usize,
    ready: ReadyJobs,
    delayed: Heap<Delayed>,
    /// Jobs in the state `Ready`: `ready` less its stale entries.
    ready_jobs: usize,
    delayed_jobs: usize,
    running_jobs: usize,
    /// The next place in the order of filing.
    seq: u64,
    /// The number of the next made-up id.
    number: u64,
    /// Pending jobs at most; 0 for no bound.
    capacity: usize,
    stopped: bool,
    metrics: Metrics,
}

impl<V: Copy> Scheduler<V> {
    /// A queue for at most `capacity` pending jobs; 0 for any number.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            jobs: Vec::new(),
            first_free: NO_SLOT,
            live: 0,
            ready: ReadyJobs::default(),
            delayed: Heap::default(),
            ready_jobs: 0,
            delayed_jobs: 0,
            running_jobs: 0,
            seq: 0,
            number: 1,
            capacity,
            stopped: false,
            metrics: Metrics::default(),
        }
    }

    // --- looking -------------------------------------------------------------------------------

    /// Jobs that wait for their turn, delayed ones and parked retries included.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.ready_jobs + self.delayed_jobs
    }

    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.running_jobs
    }

    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What the face keeps for the backoff of the job in `slot`, and the attempts begun.
    pub fn backoff<R>(&self, slot: u32, of: impl FnOnce(V) -> R) -> Option<(R, u64)> {
        self.job(slot).map(|job| (of(job.values), job.attempts))
    }

    /// How many jobs may start at `now`.
    pub fn due_jobs(&mut self, now: Moment) -> usize {
        self.promote(now);
        self.ready_jobs
    }

    /// When a pending job may start: `now` where one may already, [`Moment::NEVER`] where all are
    /// delayed for ever, `None` where nothing is pending.
    pub fn next_due(&mut self, now: Moment) -> Option<Moment> {
        self.promote(now);
        if self.ready_jobs > 0 {
            return Some(now);
        }
        self.delayed.peek().map(|entry| entry.due)
    }

    // --- pushing -------------------------------------------------------------------------------

    /// Why a push would be refused now, if it would.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        if self.stopped {
            Some(Refusal::Stopped)
        } else if self.capacity > 0 && self.pending() >= self.capacity {
            Some(Refusal::Full)
        } else {
            None
        }
    }

    /// Counts a refused push.
    pub fn count_refused(&mut self) {
        self.metrics.dropped += 1;
    }

    /// The number that the next made-up id carries.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.number
    }

    /// Makes room, so that a push of `plan`, and every retry of its job, finds it.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn reserve(&mut self, plan: &Plan<V>) -> Result<(), OutOfMemory> {
        let jobs = self.live + 1;
        if self.first_free == NO_SLOT && self.jobs.len() == self.jobs.capacity() {
            self.jobs.try_reserve(FIRST_ROOM)?;
        }
        if plan.delay == Span::ZERO {
            self.ready.reserve(plan.priority)?;
        }
        // A job that waits moves between the two heaps; it may leave a stale entry in either.
        if plan.delay > Span::ZERO || plan.retries > 0 {
            self.ready.reserve_heap(jobs)?;
            let room = self.delayed.len() - self.delayed_jobs + jobs;
            if room > self.delayed.capacity() {
                self.delayed.try_reserve(FIRST_ROOM.max(room - self.delayed.len()))?;
            }
        }
        Ok(())
    }

    /// Files a job. The caller has seen that nothing speaks against it ([`Scheduler::refusal`]) and
    /// has made room ([`Scheduler::reserve`]).
    pub fn push(&mut self, plan: Plan<V>, now: Moment) -> u32 {
        let name = plan.name.map_or_else(
            || {
                self.number += 1;
                Name::Made(self.number - 1)
            },
            Name::Given,
        );
        let job = Job {
            state: State::Ready,
            next_free: NO_SLOT,
            name,
            values: plan.values,
            priority: plan.priority,
            seq: 0,
            due: now.after(plan.delay),
            started: now,
            patience: plan.patience,
            backoff: plan.backoff,
            retries: plan.retries,
            attempts: 0,
        };
        self.live += 1;
        let slot = self.first_free;
        let slot = if let Some(place) = self.jobs.get_mut(slot as usize) {
            self.first_free = place.next_free;
            *place = job;
            slot
        } else {
            self.jobs.push(job);
            u32::try_from(self.jobs.len() - 1).unwrap_or(NO_SLOT)
        };
        self.metrics.enqueued += 1;
        self.file(slot, now, plan.delay == Span::ZERO);
        slot
    }

    // --- running -------------------------------------------------------------------------------

    /// Picks the next job, begins an attempt of it, and tells its values.
    pub fn next(&mut self, now: Moment) -> Next<V> {
        if self.stopped {
            return Next::Nothing;
        }
        self.promote(now);
        while let Some(entry) = self.ready.pop() {
            let job = &mut self.jobs[entry.slot as usize];
            if job.state != State::Ready || job.seq != entry.seq || job.priority != entry.priority {
                continue;
            }
            self.ready_jobs -= 1;
            if now > job.due.after(job.patience) {
                job.state = State::Shed;
                self.metrics.expired += 1;
                return Next::Shed(entry.slot);
            }
            job.state = State::Running;
            job.started = now;
            job.attempts += 1;
            self.metrics.wait.add(now.since(job.due));
            self.running_jobs += 1;
            return Next::Start(entry.slot, job.values);
        }
        Next::Nothing
    }

    /// The running attempt ended well. Gives the job's values back, or `None` where no job runs in
    /// `slot`.
    pub fn succeed(&mut self, slot: u32, now: Moment) -> Option<V> {
        self.end_attempt(slot, now)?;
        self.metrics.succeeded += 1;
        self.running_jobs -= 1;
        self.take(slot).map(|facts| facts.values)
    }

    /// The running attempt raised. The job stays in flight until [`Scheduler::retry`] or
    /// [`Scheduler::leave`]. `None` where no job runs in `slot`.
    pub fn raise(&mut self, slot: u32, now: Moment) -> Option<Verdict> {
        self.end_attempt(slot, now)?;
        let job = &self.jobs[slot as usize];
        Some(if job.attempts <= job.retries && !self.stopped {
            Verdict::Retry
        } else {
            Verdict::GiveUp
        })
    }

    /// Files a retry of the job in `slot`, due after `backoff` or else the job's own, at the back of
    /// its priority. False, with nothing done, where the queue was stopped meanwhile or no job runs
    /// there.
    pub fn retry(&mut self, slot: u32, backoff: Option<Span>, now: Moment) -> bool {
        if self.stopped {
            return false;
        }
        let Some(job) = self.running(slot) else { return false };
        job.due = now.after(backoff.unwrap_or(job.backoff));
        self.running_jobs -= 1;
        self.metrics.retried += 1;
        self.file(slot, now, false);
        true
    }

    /// Takes out a job that has failed for good, or was shed.
    pub fn leave(&mut self, slot: u32) -> Option<Facts<V>> {
        match self.job(slot)?.state {
            State::Running => {
                self.running_jobs -= 1;
                self.metrics.failed += 1;
            }
            State::Shed => {}
            State::Free | State::Delayed | State::Ready => return None,
        }
        self.take(slot)
    }

    /// Takes a job out of its slot and frees the slot.
    fn take(&mut self, slot: u32) -> Option<Facts<V>> {
        let job = self.jobs.get_mut(slot as usize).filter(|job| job.state != State::Free)?;
        job.state = State::Free;
        job.next_free = mem::replace(&mut self.first_free, slot);
        self.live -= 1;
        let facts = Facts {
            name: mem::replace(&mut job.name, Name::Made(0)),
            priority: job.priority,
            attempts: job.attempts,
            retries: job.retries,
            values: job.values,
        };
        self.shrink();
        Some(facts)
    }

    // --- ending --------------------------------------------------------------------------------

    /// No job starts any more and no push is taken.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Takes out a job whose coroutine was closed while it waited: it counts as cancelled.
    pub fn cancel_running(&mut self, slot: u32) -> Option<V> {
        self.running(slot)?;
        self.running_jobs -= 1;
        self.metrics.cancelled += 1;
        self.take(slot).map(|facts| facts.values)
    }

    /// Drops one pending job and gives its values back; `None` when there are no more. Slots are
    /// looked at from `cursor` on, which begins at 0.
    pub fn clear_next(&mut self, cursor: &mut u32) -> Option<V> {
        loop {
            let slot = *cursor;
            let state = self.jobs.get(slot as usize)?.state;
            *cursor += 1;
            match state {
                State::Ready => self.ready_jobs -= 1,
                State::Delayed => self.delayed_jobs -= 1,
                State::Free | State::Running | State::Shed => continue,
            }
            self.metrics.dropped += 1;
            self.metrics.cleared += 1;
            return self.take(slot).map(|facts| facts.values);
        }
    }

    // --- within --------------------------------------------------------------------------------

    fn job(&self, slot: u32) -> Option<&Job<V>> {
        self.jobs.get(slot as usize).filter(|job| job.state != State::Free)
    }

    fn running(&mut self, slot: u32) -> Option<&mut Job<V>> {
        self.jobs.get_mut(slot as usize).filter(|job| job.state == State::Running)
    }

    fn end_attempt(&mut self, slot: u32, now: Moment) -> Option<()> {
        let started = self.running(slot)?.started;
        self.metrics.processed += 1;
        self.metrics.exec.add(now.since(started));
        Some(())
    }

    /// Puts a job where its place is, behind its equals. `in_turn`: it is new, and was to run at once.
    fn file(&mut self, slot: u32, now: Moment, in_turn: bool) {
        let seq = self.seq;
        self.seq += 1;
        let job = &mut self.jobs[slot as usize];
        job.seq = seq;
        if job.due <= now {
            job.state = State::Ready;
            self.ready_jobs += 1;
            let ready = Ready { priority: job.priority, seq, slot };
            if in_turn {
                self.ready.push(ready);
            } else {
                self.ready.push_late(ready);
            }
        } else {
            job.state = State::Delayed;
            self.delayed_jobs += 1;
            self.delayed.push(Delayed { due: job.due, seq, slot });
        }
    }

    /// Moves all that is due from `delayed` to `ready`, and drops the stale entries it meets.
    fn promote(&mut self, now: Moment) {
        while let Some(entry) = self.delayed.peek() {
            let job = &mut self.jobs[entry.slot as usize];
            let stale = job.state != State::Delayed || job.seq != entry.seq;
            if !stale && job.due > now {
                return;
            }
            if !stale {
                job.state = State::Ready;
                self.delayed_jobs -= 1;
                self.ready_jobs += 1;
                let (priority, seq) = (job.priority, job.seq);
                self.ready.push_late(Ready { priority, seq, slot: entry.slot });
            }
            self.delayed.pop();
        }
    }

    /// Gives memory back after a burst.
    fn shrink(&mut self) {
        if self.delayed_jobs == 0 && !self.delayed.is_empty() {
            self.delayed.clear();
        }
        if self.live == 0 && self.jobs.len() > KEPT_ROOM {
            self.jobs = Vec::new();
            self.first_free = NO_SLOT;
            self.ready.clear();
            self.delayed = Heap::default();
        }
    }
}
