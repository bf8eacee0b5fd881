//! The attempts of jobs: how one begins, and what becomes of its job when it has ended.

use std::ptr;

use super::{Next, Scheduler, Verdict};
use crate::core::OutOfMemory;
use crate::core::clock::{Moment, Span};
use crate::core::job::{Job, State};

impl<V: Copy> Scheduler<V> {
    /// Picks the next job, begins an attempt of it, and tells its values.
    pub fn next(&mut self, now: Moment) -> Next<V> {
        if self.stopped || !self.gate.is_open(now) {
            return Next::Nothing;
        }
        self.promote(now);
        while let Some(entry) = self.ready.pop() {
            let job = &mut self.jobs[entry.slot as usize];
            if !job.is_at(entry) {
                self.stale_ready = self.stale_ready.saturating_sub(1);
                continue;
            }
            self.ready_jobs -= 1;
            if now > job.since.after(self.terms.of(job.terms).patience) {
                job.state = State::Shed;
                self.metrics.expired += 1;
                return Next::Shed(entry.slot);
            }
            self.metrics.wait.add(now.since(job.since));
            job.state = State::Running;
            job.since = now;
            job.attempts += 1;
            job.seq = self.seq;
            self.seq += 1;
            self.running_jobs += 1;
            self.gate.pass(now);
            return Next::Start(entry.slot, job.values);
        }
        Next::Nothing
    }

    /// Where the job lies that is likely to start next. Fetched from memory while the one before it
    /// runs, it costs no wait.
    #[inline]
    #[must_use]
    pub fn likely_next(&self) -> Option<*const Job<V>> {
        self.ready.likely_next().and_then(|slot| self.jobs.get(slot as usize)).map(ptr::from_ref)
    }

    /// The running attempt ended well. Gives the job's values back where they are nobody's any
    /// longer: `None` for a beat whose series goes on, and where no job runs in `slot`.
    pub fn succeed(&mut self, slot: u32, now: Moment) -> Option<V> {
        self.end_attempt(slot, now)?;
        self.metrics.succeeded += 1;
        self.running_jobs -= 1;
        self.end(slot, now)
    }

    /// The running attempt raised. The job stays in flight until [`Scheduler::retry`] or
    /// [`Scheduler::leave`]. `None` where no job runs in `slot`.
    pub fn raise(&mut self, slot: u32, now: Moment) -> Option<Verdict> {
        self.end_attempt(slot, now)?;
        self.jobs[slot as usize].state = State::Raised;
        Some(if self.may_retry(slot) { Verdict::Retry } else { Verdict::GiveUp })
    }

    /// If the attempt that runs in `slot` raises, another one is due.
    #[must_use]
    pub fn may_retry(&self, slot: u32) -> bool {
        self.job(slot).is_some_and(|job| {
            let terms = self.terms.of(job.terms);
            job.attempts <= terms.retries && !self.stopped && !terms.is_last_beat()
        })
    }

    /// Files a retry of the job in `slot`, due after `backoff` or else the job's own, at the back of
    /// its priority, and tells that time. `None`, with nothing done, where the queue was stopped or
    /// the series ended meanwhile, or no job runs there.
    pub fn retry(&mut self, slot: u32, backoff: Option<Span>, now: Moment) -> Option<Span> {
        if !self.may_retry(slot) {
            return None;
        }
        let terms = self.running(slot)?.terms;
        let backoff = backoff.unwrap_or(self.terms.of(terms).backoff);
        self.jobs[slot as usize].since = now.after(backoff);
        self.running_jobs -= 1;
        self.metrics.retried += 1;
        self.file(slot, now, false);
        Some(backoff)
    }

    /// The failed job in `slot` would be kept as a copy, since its series goes on.
    #[must_use]
    pub fn keeps_copy(&self, slot: u32) -> bool {
        self.failed.keeps()
            && self.job(slot).is_some_and(|job| {
                let goes_on = self.terms.of(job.terms).goes_on();
                job.state.is_in_flight() && !self.stopped && goes_on
            })
    }

    /// A failed job would be kept.
    #[must_use]
    pub fn keeps_failed(&self) -> bool {
        self.failed.keeps()
    }

    /// A job that has failed for good, or was shed, goes; the next beat of its series is filed.
    /// A failed one is kept where there is a `kept`, which only a queue that keeps failed jobs gives.
    /// `kept`: the values that it has from now on where it is kept, instead of its own, which are
    /// then among those; where it is kept as a copy its own stay with the series. Gives back values
    /// that are nobody's any longer: of the job, and of one that was kept so far.
    pub fn leave(&mut self, slot: u32, kept: Option<V>, now: Moment) -> [Option<V>; 2] {
        let mut copy = kept;
        match self.job(slot).map(|job| job.state) {
            Some(State::Running | State::Raised) => {
                self.running_jobs -= 1;
                self.metrics.failed += 1;
                if let Some(values) = kept {
                    let is_copy = self.keeps_copy(slot);
                    if !is_copy {
                        self.jobs[slot as usize].values = values;
                        copy = None;
                    }
                    if let Ok(evicted) = self.keep(slot, copy) {
                        let own = if is_copy { self.end(slot, now) } else { None };
                        return [own, evicted];
                    }
                }
            }
            Some(State::Shed) => {}
            _ => return [None, kept],
        }
        [self.end(slot, now), copy]
    }

    /// Keeps the failed job in `slot`, or a copy of it with the values given. Gives back those of
    /// one that was kept so far and goes for it.
    fn keep(&mut self, slot: u32, copy: Option<V>) -> Result<Option<V>, OutOfMemory> {
        self.failed.reserve()?;
        let mut job = if let Some(values) = copy {
            self.terms.reserve()?;
            let job = &self.jobs[slot as usize];
            let name = job.name.try_clone()?;
            let terms = self.terms.add(*self.terms.of(job.terms));
            Job { terms, name, values, ..*job }
        } else {
            self.names.remove(&mut self.jobs, slot);
            self.vacate(slot)
        };
        self.terms.leave_series(job.terms);
        job.seq = self.next_seq();
        let evicted = self.failed.keep(job);
        Ok(evicted.map(|job| {
            self.terms.release(job.terms);
            job.values
        }))
    }

    /// The job in `slot` has ended for good: files the next beat of its series, or frees the slot
    /// and gives its values back.
    fn end(&mut self, slot: u32, now: Moment) -> Option<V> {
        let terms = self.jobs[slot as usize].terms;
        if terms != 0
            && !self.stopped
            && let Some(beat) = self.terms.next_beat(terms, now)
        {
            let job = &mut self.jobs[slot as usize];
            job.since = beat;
            job.attempts = 0;
            self.metrics.enqueued += 1;
            self.file(slot, now, false);
            return None;
        }
        self.take(slot)
    }

    fn end_attempt(&mut self, slot: u32, now: Moment) -> Option<()> {
        let started = self.running(slot).filter(|job| job.state == State::Running)?.since;
        self.metrics.processed += 1;
        self.metrics.exec.add(now.since(started));
        Some(())
    }
}
