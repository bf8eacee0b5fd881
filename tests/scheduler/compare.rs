//! Everything that can be seen of both is the same.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use queue::core::clock::Moment;
use queue::core::metrics::Timing;
use queue::core::scheduler::{Name, Sighting, Status, View};

use super::ledger::Held;
use super::ops::IDS;
use super::oracle::Job;
use super::pair::Pair;

/// What was seen is looked up again for a while: so many of the latest sightings.
const REMEMBERED: usize = 16;

/// So many jobs, or a few more, are looked for by their ids.
const SOME: usize = 16;

/// How far a percentile may be off, as a share of it.
const ERROR: f64 = 1.0 / 64.0;

impl Pair {
    pub fn compare(&mut self, is_curious: bool) -> TestCaseResult {
        let (real, oracle) = (&self.real, &self.oracle);
        prop_assert_eq!(real.pending(), oracle.pending(), "pending");
        prop_assert_eq!(real.in_flight(), oracle.in_flight(), "in flight");
        prop_assert_eq!(real.is_stopped(), oracle.stopped, "stopped");
        prop_assert_eq!(real.is_paused(self.moment()), oracle.paused_until > self.now, "paused");
        prop_assert_eq!(real.is_over(), oracle.is_over(), "over");
        prop_assert_eq!(real.keeps_failed(), oracle.keep_failed > 0, "keeps failed ones");
        prop_assert_eq!(real.next_number(), oracle.made + 1, "next made-up id");
        for unique in [None, Some(IDS[0]), Some(IDS[2])] {
            for is_series in [false, true] {
                let refusal = oracle.refusal(unique, is_series);
                prop_assert_eq!(real.refusal(unique, is_series), refusal, "refusal");
            }
        }
        self.compare_metrics()?;
        self.compare_slots()?;
        self.compare_failed()?;
        self.seen
            .iter()
            .try_for_each(|&(sighting, place)| self.compare_view(sighting, place, false))?;
        if is_curious {
            self.compare_due_jobs()?;
            self.compare_next_due()?;
            self.look()?;
            let jobs = &self.oracle.jobs;
            let some = jobs.iter().step_by(jobs.len().div_ceil(SOME).max(1));
            let ids = some.map(|job| job.name.with_text(<[u8]>::to_vec));
            let ids: Vec<Vec<u8>> = ids.chain(IDS.map(<[u8]>::to_vec)).collect();
            ids.iter().try_for_each(|id| self.compare_status(id))?;
        }
        Ok(())
    }

    /// Each job is where it should be, and the values that were given and have not come back are
    /// those of the jobs.
    fn compare_slots(&self) -> TestCaseResult {
        let mut jobs: Vec<Option<&Job>> = vec![None; self.most + 1];
        for job in &self.oracle.jobs {
            let Some(slot) = job.slot else { continue };
            let before = jobs[slot as usize].replace(job);
            prop_assert!(before.is_none(), "slot {slot} holds two jobs");
        }
        let mut held: Vec<Held> = Vec::new();
        for (slot, job) in (0..).zip(jobs) {
            let seen = self.real.values(slot);
            prop_assert_eq!(seen, job.map(|job| (job.held, job.attempts)), "slot {}", slot);
            held.extend(seen.map(|(held, _)| held));
            let Some(job) = job.filter(|job| job.is_in_flight()) else { continue };
            prop_assert_eq!(self.real.may_retry(slot), self.oracle.may_retry(job), "may retry");
            prop_assert_eq!(self.real.keeps_copy(slot), self.oracle.keeps_copy(job), "copy");
        }
        for sighting in self.real.failed().map_err(out_of_memory)? {
            let seen = self.real.view(sighting).map_err(out_of_memory)?;
            held.extend(seen.map(|(_, view)| view.values));
        }
        self.ledger.compare(held.into_iter())
    }

    fn compare_failed(&self) -> TestCaseResult {
        let (failed, kept) = (self.real.failed().map_err(out_of_memory)?, self.oracle.kept());
        prop_assert_eq!(failed.len(), kept.len(), "failed jobs");
        failed
            .iter()
            .zip(kept)
            .try_for_each(|(&sighting, job)| self.compare_view(sighting, job.place, true))
    }

    /// All jobs that are alive, in the order in which one sees them; and all that have failed.
    pub fn look(&mut self) -> TestCaseResult {
        let now = self.moment();
        let sightings = self.real.sightings(now).map_err(out_of_memory)?;
        let places: Vec<u64> = self.oracle.alive(self.now).iter().map(|job| job.place).collect();
        prop_assert_eq!(sightings.len(), places.len(), "jobs seen");
        let alive: Vec<(Sighting, u64)> = sightings.into_iter().zip(places).collect();
        alive.iter().try_for_each(|&(sighting, place)| self.compare_view(sighting, place, true))?;
        let failed = self.real.failed().map_err(out_of_memory)?;
        let kept = self.oracle.kept();
        self.seen.extend(failed.into_iter().zip(kept.iter().map(|job| job.place)));
        // The first of them change soonest.
        self.seen.extend(alive.into_iter().take(REMEMBERED / 2));
        let forgotten = self.seen.len().saturating_sub(REMEMBERED);
        self.seen.drain(..forgotten);
        Ok(())
    }

    /// What one sees of a job that was seen at this place, now or `is_new`ly. Where time has gone on
    /// since, it may be that nobody has noticed yet that a job is due.
    fn compare_view(&self, sighting: Sighting, place: u64, is_new: bool) -> TestCaseResult {
        let view = self.real.view(sighting).map_err(out_of_memory)?;
        let job = self.oracle.jobs.iter().find(|job| job.place == place);
        let due = job.map(|job| (job.name.clone(), self.view_of(job)));
        let is_late = |(_, view): &(Name, View<Held>)| view.status == Some(Status::Delayed);
        let overlooked =
            !is_new && view.as_ref().is_some_and(is_late) && job.is_some_and(Job::is_pending);
        let due = due.map(|(name, view)| {
            let status = if overlooked { Some(Status::Delayed) } else { view.status };
            (name, View { status, ..view })
        });
        prop_assert_eq!(view, due, "view");
        Ok(())
    }

    fn view_of(&self, job: &Job) -> View<Held> {
        View {
            status: job.status(self.now),
            priority: job.order.priority,
            attempts: job.attempts,
            retries: job.order.retries,
            since: Moment::from_nanos(job.since),
            values: job.held,
        }
    }

    pub fn compare_facts(&self, job: &Job) -> TestCaseResult {
        let Some(slot) = job.slot else { return Ok(()) };
        let facts = self.real.facts(slot).map_err(out_of_memory)?;
        let seen = facts
            .map(|facts| (facts.values, facts.name, facts.priority, facts.attempts, facts.retries));
        let Job { held, name, order, attempts, .. } = job;
        let due = (*held, name.clone(), order.priority, *attempts, order.retries);
        prop_assert_eq!(seen, Some(due), "facts");
        Ok(())
    }

    pub fn compare_status(&mut self, id: &[u8]) -> TestCaseResult {
        let now = self.moment();
        let status = self.oracle.status(id, self.now);
        prop_assert_eq!(self.real.status(id, now), status, "status of {:?}", id);
        Ok(())
    }

    pub fn compare_due_jobs(&mut self) -> TestCaseResult {
        prop_assert_eq!(self.real.due_jobs(self.moment()), self.oracle.due_jobs(self.now), "due");
        Ok(())
    }

    pub fn compare_next_due(&mut self) -> TestCaseResult {
        let due = self.oracle.next_due(self.now).map(Moment::from_nanos);
        prop_assert_eq!(self.real.next_due(self.moment()), due, "next due");
        Ok(())
    }

    // --- metrics -------------------------------------------------------------------------------

    fn compare_metrics(&self) -> TestCaseResult {
        let (real, counts) = (self.real.metrics(), &self.oracle.counts);
        prop_assert_eq!(real.enqueued, counts.enqueued, "enqueued");
        prop_assert_eq!(real.processed, counts.processed, "processed");
        prop_assert_eq!(real.succeeded, counts.succeeded, "succeeded");
        prop_assert_eq!(real.failed, counts.failed, "failed");
        prop_assert_eq!(real.retried, counts.retried, "retried");
        prop_assert_eq!(real.expired, counts.expired, "expired");
        prop_assert_eq!(real.dropped, counts.dropped, "dropped");
        prop_assert_eq!(real.cleared, counts.cleared, "cleared");
        prop_assert_eq!(real.cancelled, counts.cancelled, "cancelled");
        compare_timing(&real.wait, &self.oracle.waits)?;
        compare_timing(&real.exec, &self.oracle.execs)?;

        let ended = real.succeeded + real.failed + real.expired + real.cancelled + real.cleared;
        let alive = self.real.pending() + self.real.in_flight();
        prop_assert_eq!(Some(real.enqueued - ended), u64::try_from(alive).ok(), "conservation");
        Ok(())
    }

    /// These take longer.
    pub fn compare_percentiles(&self) -> TestCaseResult {
        let real = self.real.metrics();
        compare_percentiles(&real.wait, &self.oracle.waits)?;
        compare_percentiles(&real.exec, &self.oracle.execs)
    }
}

fn out_of_memory(_: queue::core::OutOfMemory) -> TestCaseError {
    TestCaseError::fail("out of memory")
}

#[allow(clippy::cast_precision_loss, reason = "the comparison leaves room for it")]
fn compare_timing(real: &Timing, samples: &[u64]) -> TestCaseResult {
    let sum: u128 = samples.iter().map(|&nanos| u128::from(nanos)).sum();
    let average = sum as f64 / samples.len().max(1) as f64 / 1e6;
    let max = samples.iter().copied().max().unwrap_or(0) as f64 / 1e6;
    let near = |a: f64, b: f64| (a - b).abs() <= b * 1e-12;
    prop_assert!(near(real.average_ms(), average), "{} is not {average}", real.average_ms());
    prop_assert!(near(real.max_ms(), max), "{} is not {max}", real.max_ms());
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "the comparison leaves room for it")]
fn compare_percentiles(real: &Timing, samples: &[u64]) -> TestCaseResult {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    for percent in [50, 95, 99] {
        let rank = (percent * sorted.len()).div_ceil(100);
        let exact = rank.checked_sub(1).map_or(0, |place| sorted[place]) as f64;
        let found = real.percentile_ms(percent as f64 / 100.0) * 1e6;
        // Short spans are told apart to 8 ns.
        let room = (exact * ERROR).max(4.0) + exact * 1e-12;
        prop_assert!((found - exact).abs() <= room, "{found} is not {exact}, {percent} %");
    }
    Ok(())
}
