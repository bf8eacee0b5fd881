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
//! Attempts are in `attempts.rs`; what is asked of jobs by their id, or of all of them, is in
//! `handles.rs`.
//!
//! The scheduler reads no clock. Every function that depends on time takes the moment.

mod attempts;
mod handles;

use std::mem;

use super::OutOfMemory;
use super::clock::{Moment, Span};
use super::failed::Failed;
use super::gate::Gate;
use super::heap::Heap;
pub use super::job::{
    Cancelled, Facts, Name, Next, Plan, Refusal, Sighting, Status, Verdict, View,
};
use super::job::{Delayed, Job, NO_SLOT, Ready, State};
use super::metrics::Metrics;
use super::names::Names;
use super::ready::ReadyJobs;
use super::terms::{AllTerms, Terms};
pub use handles::Cursor;

/// Room that is made at first.
const FIRST_ROOM: usize = 32;

/// Room that is kept however few jobs are left.
const KEPT_ROOM: usize = 1024;

/// Stale entries that are kept at least, before those that are left are gathered.
const SWEEP: usize = 64;

/// What a queue is made with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// Pending jobs at most; 0: any number.
    pub capacity: usize,
    /// Failed jobs that are kept at most.
    pub keep_failed: usize,
    /// At most so many starts in any window of so long a time.
    pub limit: Option<(usize, Span)>,
}

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
    /// Entries in `ready` whose job has gone or has another.
    stale_ready: usize,
    stale_delayed: usize,
    running_jobs: usize,
    names: Names,
    terms: AllTerms,
    failed: Failed<V>,
    gate: Gate,
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
    /// # Errors
    /// [`OutOfMemory`].
    pub fn new(setup: Setup) -> Result<Self, OutOfMemory> {
        Ok(Self {
            jobs: Vec::new(),
            first_free: NO_SLOT,
            live: 0,
            ready: ReadyJobs::default(),
            delayed: Heap::default(),
            ready_jobs: 0,
            delayed_jobs: 0,
            stale_ready: 0,
            stale_delayed: 0,
            running_jobs: 0,
            names: Names::default(),
            terms: AllTerms::default(),
            failed: Failed::new(setup.keep_failed),
            gate: Gate::new(setup.limit)?,
            seq: 0,
            number: 1,
            capacity: setup.capacity,
            stopped: false,
            metrics: Metrics::default(),
        })
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

    #[must_use]
    pub fn is_paused(&self, now: Moment) -> bool {
        self.gate.is_paused(now)
    }

    /// Nothing will start unless somebody does something about it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stopped || self.pending() == 0 || self.gate.is_shut()
    }

    /// The time decides nothing: no job is delayed or has a deadline or comes again, and starts are
    /// not held back. It is only for the metrics.
    #[inline]
    #[must_use]
    pub fn is_timeless(&self) -> bool {
        self.delayed.peek().is_none() && self.terms.is_empty() && self.gate.is_timeless()
    }

    /// What the face keeps with the job in `slot`, and the attempts begun.
    #[must_use]
    pub fn values(&self, slot: u32) -> Option<(V, u64)> {
        self.job(slot).map(|job| (job.values, job.attempts))
    }

    /// What can be told of the job in `slot`.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn facts(&self, slot: u32) -> Result<Option<Facts<V>>, OutOfMemory> {
        let Some(job) = self.job(slot) else { return Ok(None) };
        Ok(Some(Facts {
            name: job.name.try_clone()?,
            priority: job.priority,
            attempts: job.attempts,
            retries: self.terms.of(job.terms).retries,
            values: job.values,
        }))
    }

    /// How many jobs may start at `now`.
    pub fn due_jobs(&mut self, now: Moment) -> usize {
        self.promote(now);
        self.ready_jobs
    }

    /// When a pending job may start: `now` where one may already, [`Moment::NEVER`] where all are
    /// delayed for ever or the queue is paused without end, `None` where nothing is pending.
    pub fn next_due(&mut self, now: Moment) -> Option<Moment> {
        self.promote(now);
        let due =
            if self.ready_jobs > 0 { now } else { self.delayed.peek().map(|entry| entry.due)? };
        Some(due.max(self.gate.opens(now)))
    }

    // --- pushing -------------------------------------------------------------------------------

    /// Why a push would be refused now, if it would. `unique`: the id, where no other job may have
    /// it. `is_series`: a recurring job finds room always.
    #[must_use]
    pub fn refusal(&self, unique: Option<&[u8]>, is_series: bool) -> Option<Refusal> {
        if self.stopped {
            Some(Refusal::Stopped)
        } else if unique.is_some_and(|id| self.is_alive(id)) {
            Some(Refusal::Duplicate)
        } else if !is_series && self.capacity > 0 && self.pending() >= self.capacity {
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

    /// Makes room, so that a push of `plan`, and every retry of its job, finds it. `is_named`: it
    /// will have an id that the user gave.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn reserve(&mut self, plan: &Plan<V>, is_named: bool) -> Result<(), OutOfMemory> {
        self.reserve_slot()?;
        self.names.reserve(&self.jobs, is_named)?;
        if !plan.is_plain() {
            self.terms.reserve()?;
        }
        let may_wait = plan.delay > Span::ZERO || plan.retries > 0 || plan.every.is_some();
        self.reserve_places(plan.priority, plan.delay == Span::ZERO, may_wait)
    }

    fn reserve_slot(&mut self) -> Result<(), OutOfMemory> {
        if self.first_free == NO_SLOT && self.jobs.len() == self.jobs.capacity() {
            self.jobs.try_reserve(FIRST_ROOM)?;
        }
        Ok(())
    }

    /// Makes room for one job more in what it may have to pass through.
    fn reserve_places(
        &mut self,
        priority: i64,
        in_turn: bool,
        may_wait: bool,
    ) -> Result<(), OutOfMemory> {
        if in_turn {
            self.ready.reserve(priority, self.live + 1)?;
        }
        // A job that waits moves between the two heaps; it may leave a stale entry in either.
        if may_wait {
            let jobs = self.live + 1;
            self.ready.reserve_heap(jobs)?;
            let more = jobs - self.delayed_jobs;
            if self.delayed.spare() < more {
                self.delayed.try_reserve(FIRST_ROOM.max(more))?;
            }
        }
        Ok(())
    }

    /// Files a job. The caller has seen that nothing speaks against it ([`Scheduler::refusal`]) and
    /// has made room ([`Scheduler::reserve`]). The name is taken out of the plan.
    pub fn push(&mut self, plan: &mut Plan<V>, now: Moment) -> u32 {
        let due = now.after(plan.delay);
        let terms = if plan.is_plain() { 0 } else { self.terms.add(Terms::of(plan, due)) };
        let name = plan.name.take().map_or_else(
            || {
                self.number += 1;
                Name::Made(self.number - 1)
            },
            Name::Given,
        );
        let job = Job {
            state: State::Ready,
            is_seen: false,
            is_unique: plan.is_unique,
            next: NO_SLOT,
            previous: NO_SLOT,
            terms,
            name,
            values: plan.values,
            priority: plan.priority,
            seq: 0,
            since: due,
            attempts: 0,
        };
        let slot = self.place(job);
        self.names.add(&mut self.jobs, slot);
        self.metrics.enqueued += 1;
        self.file(slot, now, plan.delay == Span::ZERO);
        slot
    }

    /// Puts a job into a slot, for which there is room.
    fn place(&mut self, job: Job<V>) -> u32 {
        self.live += 1;
        let slot = self.first_free;
        if let Some(place) = self.jobs.get_mut(slot as usize) {
            self.first_free = place.next;
            *place = job;
            slot
        } else {
            self.jobs.push(job);
            u32::try_from(self.jobs.len() - 1).unwrap_or(NO_SLOT)
        }
    }

    // --- holding back and ending ---------------------------------------------------------------

    /// No job starts before `until`; [`Moment::NEVER`]: not until [`Scheduler::resume`]. The last
    /// call counts.
    pub fn pause(&mut self, until: Moment) {
        self.gate.pause(until);
    }

    /// Jobs may start again.
    pub fn resume(&mut self) {
        self.gate.resume();
    }

    /// No job starts any more and no push is taken.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Takes out a job whose coroutine was closed while it waited: it counts as cancelled.
    pub fn cancel_running(&mut self, slot: u32) -> Option<V> {
        self.running(slot)?;
        self.running_jobs -= 1;
        self.metrics.cancelled += 1;
        self.take(slot)
    }

    /// Drops one pending job and gives its values back; `None` when there are no more. Slots are
    /// looked at from `cursor` on, which begins at 0. Series whose beat is in flight end.
    pub fn clear_next(&mut self, cursor: &mut u32) -> Option<V> {
        loop {
            let slot = *cursor;
            let job = self.jobs.get(slot as usize)?;
            *cursor += 1;
            if job.state.is_pending() {
                self.metrics.dropped += 1;
                self.metrics.cleared += 1;
                return self.withdraw(slot);
            }
            self.terms.end_series(job.terms);
        }
    }

    // --- within --------------------------------------------------------------------------------

    fn job(&self, slot: u32) -> Option<&Job<V>> {
        self.jobs.get(slot as usize).filter(|job| job.state != State::Free)
    }

    fn running(&mut self, slot: u32) -> Option<&mut Job<V>> {
        self.jobs.get_mut(slot as usize).filter(|job| job.state.is_in_flight())
    }

    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq - 1
    }

    /// Takes a job out, which is found by its id no more.
    fn take(&mut self, slot: u32) -> Option<V> {
        self.job(slot)?;
        self.names.remove(&mut self.jobs, slot);
        self.free(slot)
    }

    /// Takes a job out of its slot with all that it has.
    fn vacate(&mut self, slot: u32) -> Job<V> {
        let next = mem::replace(&mut self.first_free, slot);
        let place = &mut self.jobs[slot as usize];
        let job = Job { name: mem::replace(&mut place.name, Name::Made(0)), ..*place };
        (place.state, place.terms, place.next) = (State::Free, 0, next);
        self.live -= 1;
        self.shrink();
        job
    }

    /// Frees a slot, and gives the values of its job back.
    fn free(&mut self, slot: u32) -> Option<V> {
        let job = self.jobs.get_mut(slot as usize).filter(|job| job.state != State::Free)?;
        job.state = State::Free;
        job.name = Name::Made(0);
        job.next = mem::replace(&mut self.first_free, slot);
        self.terms.release(mem::take(&mut job.terms));
        self.live -= 1;
        let values = job.values;
        self.shrink();
        Some(values)
    }

    /// Puts a job where its place is, behind its equals. `in_turn`: it is new, and was to run at once.
    fn file(&mut self, slot: u32, now: Moment, in_turn: bool) {
        let seq = self.next_seq();
        let job = &mut self.jobs[slot as usize];
        job.seq = seq;
        if job.since <= now {
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
            self.delayed.push(Delayed { due: job.since, seq, slot });
        }
    }

    /// Takes a pending job out.
    fn withdraw(&mut self, slot: u32) -> Option<V> {
        match self.jobs[slot as usize].state {
            State::Ready => {
                self.ready_jobs -= 1;
                self.stale_ready += 1;
            }
            State::Delayed => {
                self.delayed_jobs -= 1;
                self.stale_delayed += 1;
            }
            State::Free | State::Running | State::Raised | State::Shed => return None,
        }
        let values = self.take(slot);
        self.sweep();
        values
    }

    /// Moves all that is due from `delayed` to `ready`, and drops the stale entries it meets.
    fn promote(&mut self, now: Moment) {
        while let Some(&entry) = self.delayed.peek() {
            let job = &mut self.jobs[entry.slot as usize];
            if job.is_delayed_as(entry) {
                if job.since > now {
                    return;
                }
                job.state = State::Ready;
                self.delayed_jobs -= 1;
                self.ready_jobs += 1;
                let (priority, seq) = (job.priority, job.seq);
                self.ready.push_late(Ready { priority, seq, slot: entry.slot });
            } else {
                self.stale_delayed -= 1;
            }
            self.delayed.pop();
        }
    }

    /// Drops stale entries where they outnumber the others.
    fn sweep(&mut self) {
        let jobs = &mut self.jobs;
        if self.stale_ready > self.ready_jobs + SWEEP {
            // A job whose priority was changed and changed back has entries that look alike.
            self.ready.retain(|entry| {
                let job = &mut jobs[entry.slot as usize];
                job.is_at(entry) && !mem::replace(&mut job.is_seen, true)
            });
            self.ready.slots(|slot| jobs[slot as usize].is_seen = false);
            self.stale_ready = 0;
        }
        if self.stale_delayed > self.delayed_jobs + SWEEP {
            self.delayed.retain(|&entry| jobs[entry.slot as usize].is_delayed_as(entry));
            self.stale_delayed = 0;
        }
    }

    /// Gives memory back after a burst.
    fn shrink(&mut self) {
        if self.live == 0 && self.jobs.len() > KEPT_ROOM {
            self.jobs = Vec::new();
            self.first_free = NO_SLOT;
            if !self.failed.keeps() {
                self.terms.clear();
            }
            self.ready.clear();
            self.delayed = Heap::default();
            (self.stale_ready, self.stale_delayed) = (0, 0);
        }
    }
}
