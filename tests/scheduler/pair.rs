//! The same done to both, and what comes of it compared.

use std::mem;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use queue::core::clock::{Moment, Span};
use queue::core::scheduler::{
    self, Cancelled, Cursor, Name, Next, Plan, Scheduler, Sighting, Verdict,
};

use super::ledger::{Held, Ledger};
use super::ops::{Id, Op, Order, Pick, Setup, Step};
use super::oracle::{Job, LAST, NEVER, Oracle, Stage, after};

pub struct Pair {
    pub real: Scheduler<Held>,
    pub oracle: Oracle,
    pub ledger: Ledger,
    pub now: u64,
    /// The most jobs that there were at once.
    pub most: usize,
    /// What was seen, and the place in the oracle's order of what it was.
    pub seen: Vec<(Sighting, u64)>,
}

impl Pair {
    pub fn new(setup: &Setup) -> Result<Self, TestCaseError> {
        let &Setup { capacity, keep_failed, limit, start, .. } = setup;
        let real = Scheduler::new(scheduler::Setup { capacity, keep_failed, limit });
        Ok(Self {
            real: real.map_err(|_| TestCaseError::fail("out of memory"))?,
            oracle: Oracle::new(setup),
            ledger: Ledger::default(),
            now: start,
            most: 0,
            seen: Vec::new(),
        })
    }

    pub fn moment(&self) -> Moment {
        Moment::from_nanos(self.now)
    }

    pub fn apply(&mut self, op: &Op) -> TestCaseResult {
        match op {
            Op::Push(order) => self.push(order),
            Op::Next => self.next().map(drop),
            Op::Succeed(pick) => self.succeed(*pick),
            Op::Raise(pick) => self.raise(*pick),
            Op::Retry(pick, backoff) => self.retry(*pick, *backoff),
            Op::Leave(pick, is_kept) => self.leave(*pick, *is_kept),
            Op::Close(pick) => self.close(*pick),
            Op::Meddle(slot) => self.meddle(*slot),
            Op::Look => self.look(),
            Op::DueJobs => self.compare_due_jobs(),
            Op::NextDue => self.compare_next_due(),
            Op::ClearOne => self.clear_next(&mut 0).map(drop),
            Op::Clear => self.clear(),
            Op::Burst(count, order, variety) => self.burst(*count, order, *variety),
            Op::CancelSome(every) => self.cancel_some(*every),
            Op::Churn(count, order) => self.churn(*count, order),
            Op::Drain(is_well) => self.drain(*is_well),
            Op::Finish => self.finish(),
            Op::Step(step) => {
                self.step(*step);
                Ok(())
            }
            Op::Pause(_) | Op::Resume | Op::Stop => {
                self.hold(op);
                Ok(())
            }
            Op::Revive(id)
            | Op::Cancel(id)
            | Op::Status(id)
            | Op::SetPriority(id, _)
            | Op::Toggle(id, ..) => {
                let text = self.oracle.text(*id);
                text.map_or(Ok(()), |text| self.apply_to(&text, op))
            }
        }
    }

    fn apply_to(&mut self, id: &[u8], op: &Op) -> TestCaseResult {
        match op {
            Op::Revive(_) => self.revive(id),
            Op::Cancel(_) => self.cancel(id),
            Op::Status(_) => self.compare_status(id),
            Op::SetPriority(_, priority) => self.set_priority(id, *priority),
            Op::Toggle(_, both, times) => {
                (0..*times).try_for_each(|nth| self.set_priority(id, both[nth % 2]))
            }
            _ => Ok(()),
        }
    }

    /// These values are nobody's any longer, says the scheduler.
    fn free(&mut self, held: impl IntoIterator<Item = Held>) -> TestCaseResult {
        held.into_iter().try_for_each(|held| self.ledger.free(held))
    }

    // --- pushes --------------------------------------------------------------------------------

    fn push(&mut self, order: &Order) -> TestCaseResult {
        let id = order.id.and_then(|id| self.oracle.text(id));
        let unique = id.as_deref().filter(|_| order.is_unique);
        let refusal = self.oracle.refusal(unique, order.every.is_some());
        prop_assert_eq!(self.real.refusal(unique, order.every.is_some()), refusal);
        if refusal.is_some() {
            self.real.count_refused();
            self.oracle.counts.dropped += 1;
            return Ok(());
        }
        let held = Held { own: self.ledger.give(), notes: 0 };
        let given: Option<Box<[u8]>> = id.map(Vec::into_boxed_slice);
        let mut plan = Plan {
            priority: order.priority,
            delay: order.delay,
            retries: order.retries,
            backoff: order.backoff,
            patience: order.patience,
            name: given.clone(),
            is_unique: order.is_unique,
            every: order.every,
            values: held,
        };
        prop_assert_eq!(self.real.reserve(&plan, given.is_some()), Ok(()));
        let slot = self.real.push(&mut plan, self.moment());
        let name = given.map_or_else(
            || {
                self.oracle.made += 1;
                Name::Made(self.oracle.made)
            },
            Name::Given,
        );
        self.oracle.push((slot, held), name, order, self.now);
        self.most = self.most.max(self.oracle.jobs.len());
        prop_assert!((slot as usize) < self.most, "slot {slot} is new, though others are free");
        Ok(())
    }

    fn burst(&mut self, count: usize, order: &Order, variety: u32) -> TestCaseResult {
        (0..variety).cycle().take(count).try_for_each(|nth| {
            let priority = order.priority.wrapping_add(nth.into());
            // The delays are in another order.
            let more = if order.delay == Span::ZERO { 0 } else { 7 * nth % variety };
            let delay = Span::from_nanos(order.delay.nanos().saturating_add(more.into()));
            self.push(&Order { priority, delay, ..order.clone() })
        })
    }

    fn revive(&mut self, id: &[u8]) -> TestCaseResult {
        let now = self.moment();
        let Some(job) = self.oracle.newest_failed(id) else {
            prop_assert_eq!(self.real.revive(id, now), Ok(None));
            return Ok(());
        };
        let (held, is_unique) = (job.held, job.order.is_unique);
        if let Some(refusal) = self.oracle.refusal(is_unique.then_some(id), false) {
            prop_assert_eq!(self.real.revive(id, now), Err(Ok(refusal)));
            self.real.count_refused();
            self.oracle.counts.dropped += 1;
            return Ok(());
        }
        let Ok(Some(seen)) = self.real.revive(id, now) else {
            return Err(TestCaseError::fail("a failed job is not tried again"));
        };
        prop_assert_eq!(*seen, held);
        let notes = mem::take(&mut seen.notes);
        self.ledger.free(Held { own: 0, notes })?;
        // Nobody tells where it is.
        let slots: Vec<u32> = (0..=u32::try_from(self.most).unwrap_or(u32::MAX))
            .filter(|&slot| self.real.values(slot).is_some_and(|(it, _)| it.own == held.own))
            .collect();
        prop_assert_eq!(slots.len(), 1, "a job that is tried again is there once");
        self.oracle.revive(id, slots[0], self.now);
        Ok(())
    }

    // --- attempts ------------------------------------------------------------------------------

    /// Begins an attempt, or sheds a job, and tells of which slot.
    fn next(&mut self) -> Result<Option<(u32, Stage)>, TestCaseError> {
        let next = self.oracle.next(self.now);
        prop_assert_eq!(self.real.next(self.moment()), next);
        Ok(match next {
            Next::Start(slot, _) => Some((slot, Stage::Running)),
            Next::Shed(slot) => Some((slot, Stage::Shed)),
            Next::Nothing => None,
        })
    }

    fn succeed(&mut self, pick: Pick) -> TestCaseResult {
        let slot = self.oracle.choose(pick, |job| job.stage == Stage::Running);
        slot.map_or(Ok(()), |slot| self.succeed_at(slot))
    }

    fn succeed_at(&mut self, slot: u32) -> TestCaseResult {
        self.oracle.end_attempt(slot, self.now);
        self.oracle.counts.succeeded += 1;
        let freed = self.oracle.end(slot, self.now);
        prop_assert_eq!(self.real.succeed(slot, self.moment()), freed);
        self.free(freed)
    }

    fn raise(&mut self, pick: Pick) -> TestCaseResult {
        let slot = self.oracle.choose(pick, |job| job.stage == Stage::Running);
        slot.map_or(Ok(()), |slot| self.raise_at(slot))
    }

    fn raise_at(&mut self, slot: u32) -> TestCaseResult {
        self.oracle.end_attempt(slot, self.now);
        let again = self.oracle.at(slot).cloned().is_some_and(|job| self.oracle.may_retry(&job));
        let verdict = if again { Verdict::Retry } else { Verdict::GiveUp };
        prop_assert_eq!(self.real.raise(slot, self.moment()), Some(verdict));
        Ok(())
    }

    fn retry(&mut self, pick: Pick, backoff: Option<Span>) -> TestCaseResult {
        // A queue may be stopped, and a series may end, between the verdict and the retry.
        let may = |job: &Job| job.stage == Stage::Raised && job.attempts <= job.order.retries;
        let Some(slot) = self.oracle.choose(pick, may) else { return Ok(()) };
        let due = self.oracle.retry(slot, backoff, self.now);
        prop_assert_eq!(self.real.retry(slot, backoff, self.moment()), due);
        Ok(())
    }

    fn leave(&mut self, pick: Pick, is_kept: bool) -> TestCaseResult {
        let may = |job: &Job| matches!(job.stage, Stage::Raised | Stage::Shed);
        let slot = self.oracle.choose(pick, may);
        slot.map_or(Ok(()), |slot| self.leave_at(slot, is_kept))
    }

    fn leave_at(&mut self, slot: u32, is_kept: bool) -> TestCaseResult {
        let Some(job) = self.oracle.at(slot).cloned() else { return Ok(()) };
        self.compare_facts(&job)?;
        let has_failed = job.stage == Stage::Raised;
        self.oracle.counts.failed += u64::from(has_failed);
        if !is_kept || !has_failed || self.oracle.keep_failed == 0 {
            // One that was shed is not kept.
            let of_shed = (is_kept && !has_failed)
                .then(|| Held { own: self.ledger.give(), notes: self.ledger.give() });
            let freed = [self.oracle.end(slot, self.now), of_shed];
            prop_assert_eq!(self.real.leave(slot, of_shed, self.moment()), freed);
            return self.free(freed.into_iter().flatten());
        }
        let is_copy = self.oracle.keeps_copy(&job);
        let own = if is_copy { self.ledger.give() } else { job.held.own };
        let kept = Held { own, notes: self.ledger.give() };
        self.most = self.most.max(self.oracle.jobs.len() + usize::from(is_copy));
        let freed = self.oracle.keep(slot, kept, self.now);
        prop_assert_eq!(self.real.leave(slot, Some(kept), self.moment()), freed);
        self.free(freed.into_iter().flatten())
    }

    fn close(&mut self, pick: Pick) -> TestCaseResult {
        let Some(slot) = self.oracle.choose(pick, Job::is_in_flight) else { return Ok(()) };
        let freed = self.oracle.take(slot).map(|job| job.held);
        self.oracle.counts.cancelled += 1;
        prop_assert_eq!(self.real.cancel_running(slot), freed);
        self.free(freed)
    }

    /// Nothing comes of it where no attempt runs.
    fn meddle(&mut self, slot: u32) -> TestCaseResult {
        let now = self.moment();
        let job = self.oracle.at(slot);
        if job.as_ref().is_some_and(|job| job.is_in_flight()) {
            return Ok(());
        }
        let is_shed = job.is_some_and(|job| job.stage == Stage::Shed);
        prop_assert_eq!(self.real.succeed(slot, now), None);
        prop_assert_eq!(self.real.raise(slot, now), None);
        prop_assert_eq!(self.real.retry(slot, None, now), None);
        prop_assert_eq!(self.real.cancel_running(slot), None);
        prop_assert!(!self.real.keeps_copy(slot));
        if !is_shed {
            prop_assert_eq!(self.real.leave(slot, None, now), [None, None]);
            let kept = Held { own: self.ledger.give(), notes: self.ledger.give() };
            prop_assert_eq!(self.real.leave(slot, Some(kept), now), [None, Some(kept)]);
            self.free([kept])?;
        }
        Ok(())
    }

    // --- by id ---------------------------------------------------------------------------------

    fn cancel(&mut self, id: &[u8]) -> TestCaseResult {
        let (mut gone, series) = self.oracle.cancel(id);
        self.oracle.counts.cancelled += gone.len() as u64;
        let (mut cursor, mut freed, mut ended) = (Cursor::default(), Vec::new(), 0);
        while let Some(cancelled) = self.real.cancel_next(id, &mut cursor) {
            match cancelled {
                Cancelled::Job(held) => freed.push(held),
                Cancelled::Series => ended += 1,
            }
        }
        prop_assert_eq!(self.real.cancel_next(id, &mut cursor), None);
        self.free(freed.iter().copied())?;
        gone.sort_unstable();
        freed.sort_unstable();
        prop_assert_eq!(freed, gone, "cancelled jobs");
        prop_assert_eq!(ended, series, "cancelled series");
        Ok(())
    }

    fn cancel_some(&mut self, every: usize) -> TestCaseResult {
        let ids = self.oracle.jobs.iter().step_by(every);
        let ids: Vec<Vec<u8>> = ids.map(|job| job.name.with_text(<[u8]>::to_vec)).collect();
        ids.iter().try_for_each(|id| self.cancel(id))
    }

    fn churn(&mut self, count: usize, order: &Order) -> TestCaseResult {
        for nth in 0..count {
            self.push(order)?;
            if nth % 16 == 0 {
                self.next()?;
            }
            if let Some(id) = self.oracle.text(Id::Of(0)) {
                self.cancel(&id)?;
            }
        }
        Ok(())
    }

    fn set_priority(&mut self, id: &[u8], priority: i64) -> TestCaseResult {
        let moved = self.oracle.set_priority(id, priority);
        prop_assert_eq!(self.real.set_priority(id, priority), Ok(moved));
        Ok(())
    }

    // --- all of them ---------------------------------------------------------------------------

    fn step(&mut self, step: Step) {
        let to = match (step, self.oracle.next_due(self.now)) {
            (Step::By(nanos), _) => self.now.saturating_add(nanos),
            (_, None | Some(NEVER)) => self.now,
            (Step::BeforeDue, Some(due)) => due.saturating_sub(1),
            (Step::ToDue, Some(due)) => due,
            (Step::PastDue, Some(due)) => due.saturating_add(1),
        };
        self.now = to.clamp(self.now, LAST);
    }

    fn hold(&mut self, op: &Op) {
        match op {
            Op::Pause(span) => {
                let until = after(self.now, span.unwrap_or(Span::FOREVER));
                self.oracle.paused_until = until;
                self.real.pause(Moment::from_nanos(until));
            }
            Op::Resume => {
                self.oracle.paused_until = 0;
                self.real.resume();
            }
            Op::Stop => {
                self.oracle.stopped = true;
                self.real.stop();
            }
            _ => {}
        }
    }

    fn clear_next(&mut self, cursor: &mut u32) -> Result<bool, TestCaseError> {
        let dropped = self.oracle.clear_next(&mut cursor.clone());
        prop_assert_eq!(self.real.clear_next(cursor), dropped);
        self.free(dropped)?;
        Ok(dropped.is_some())
    }

    fn clear(&mut self) -> TestCaseResult {
        let mut cursor = 0;
        while self.clear_next(&mut cursor)? {}
        prop_assert_eq!(self.oracle.pending(), 0);
        Ok(())
    }

    fn drain(&mut self, is_well: bool) -> TestCaseResult {
        // At the end of all time there is always a beat to come.
        for _ in 0..=3 * self.oracle.jobs.len() {
            match self.next()? {
                None => return Ok(()),
                Some((slot, Stage::Shed)) => self.leave_at(slot, false)?,
                Some((slot, _)) if is_well => self.succeed_at(slot)?,
                Some((slot, _)) => {
                    self.raise_at(slot)?;
                    self.leave_at(slot, true)?;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> TestCaseResult {
        let is_left = |job: &Job| job.stage != Stage::Pending;
        while let Some(slot) = self.oracle.choose(0, is_left) {
            match self.oracle.at(slot).map(|job| job.stage) {
                Some(Stage::Running) => self.succeed_at(slot)?,
                _ => self.leave_at(slot, true)?,
            }
        }
        self.clear()
    }

    /// Whatever came before, the rest comes out in order, and all values come back but those of the
    /// failed jobs.
    pub fn wind_up(&mut self) -> TestCaseResult {
        self.hold(&Op::Resume);
        for _ in 0..4 {
            self.drain(true)?;
            self.compare(true)?;
            self.step(Step::ToDue);
        }
        self.finish()?;
        self.compare(true)?;
        self.compare_percentiles()?;
        let failed: Vec<Held> = self.oracle.kept().iter().map(|job| job.held).collect();
        self.ledger.compare(failed.into_iter())
    }
}
