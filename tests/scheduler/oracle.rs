//! What a queue should do, said with a plain list of jobs that is searched from end to end for every
//! question.

use std::cmp::Reverse;

use queue::core::clock::Span;
use queue::core::scheduler::{Name, Next, Refusal, Status};

use super::ledger::Held;
use super::ops::{IDS, Id, Order, PICKS, Pick, Setup};

/// What the oracle's nanoseconds say where the clock says [`queue::core::clock::Moment::NEVER`].
pub const NEVER: u64 = u64::MAX;

/// The last moment that comes.
pub const LAST: u64 = NEVER - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Pending,
    Running,
    Raised,
    Shed,
    /// It has failed, and may be tried again.
    Kept,
}

/// A job is a beat of a series.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    interval: Span,
    /// Its time in the phase.
    time: u64,
    /// It is the last one.
    is_last: bool,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub held: Held,
    /// `None`: nobody was told.
    pub slot: Option<u32>,
    pub stage: Stage,
    pub name: Name,
    /// Its place in the order of all pushes, retries, starts and failures.
    pub place: u64,
    /// When it may start; once it has: when it did.
    pub since: u64,
    pub attempts: u64,
    pub order: Order,
    beat: Option<Beat>,
}

#[derive(Debug, Default)]
pub struct Counts {
    pub enqueued: u64,
    pub processed: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub retried: u64,
    pub expired: u64,
    pub dropped: u64,
    pub cleared: u64,
    pub cancelled: u64,
}

#[derive(Debug, Default)]
pub struct Oracle {
    capacity: usize,
    pub keep_failed: usize,
    limit: Option<(usize, Span)>,
    pub stopped: bool,
    pub paused_until: u64,
    pub jobs: Vec<Job>,
    places: u64,
    /// Ids that were made up.
    pub made: u64,
    pub counts: Counts,
    /// All starts that there ever were.
    starts: Vec<u64>,
    pub waits: Vec<u64>,
    pub execs: Vec<u64>,
}

/// `now` plus `span`; what is finite stays finite.
pub fn after(now: u64, span: Span) -> u64 {
    if span == Span::FOREVER || now == NEVER {
        return NEVER;
    }
    let sum = u128::from(now) + u128::from(span.nanos());
    u64::try_from(sum).map_or(LAST, |sum| sum.min(LAST))
}

impl Beat {
    /// The next time of the phase, or the latest one of those that were missed.
    fn time_after(self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.time) / self.interval.nanos();
        let times = u128::from(self.interval.nanos()) * u128::from(passed.max(1));
        u64::try_from(times).map_or(LAST, |nanos| after(self.time, Span::from_nanos(nanos)))
    }
}

impl Job {
    pub fn is_named(&self, id: &[u8]) -> bool {
        self.name.with_text(|text| text == id)
    }

    pub fn is_in_flight(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Raised)
    }

    pub fn is_pending(&self) -> bool {
        self.stage == Stage::Pending
    }

    fn is_due(&self, now: u64) -> bool {
        self.is_pending() && self.since <= now
    }

    pub fn status(&self, now: u64) -> Option<Status> {
        match self.stage {
            Stage::Running | Stage::Raised => Some(Status::Running),
            Stage::Pending if self.since <= now => Some(Status::Ready),
            Stage::Pending => Some(Status::Delayed),
            Stage::Shed | Stage::Kept => None,
        }
    }

    /// A beat follows, unless the queue is stopped.
    fn goes_on(&self) -> bool {
        self.beat.is_some_and(|beat| !beat.is_last)
    }

    /// No beat follows any more. False: none would have.
    fn end_series(&mut self) -> bool {
        let goes_on = self.goes_on();
        self.beat.iter_mut().for_each(|beat| beat.is_last = true);
        goes_on
    }
}

impl Oracle {
    pub fn new(setup: &Setup) -> Self {
        let &Setup { capacity, keep_failed, limit, .. } = setup;
        Self { capacity, keep_failed, limit, ..Self::default() }
    }

    // --- looking -------------------------------------------------------------------------------

    pub fn pending(&self) -> usize {
        self.jobs.iter().filter(|job| job.stage == Stage::Pending).count()
    }

    pub fn in_flight(&self) -> usize {
        self.jobs.iter().filter(|job| job.is_in_flight()).count()
    }

    pub fn due_jobs(&self, now: u64) -> usize {
        self.jobs.iter().filter(|job| job.is_due(now)).count()
    }

    /// When the pause and the limit next let a job start.
    fn opens(&self, now: u64) -> u64 {
        let Some((most, window)) = self.limit else { return now.max(self.paused_until) };
        let ends = || self.starts.iter().map(|&start| after(start, window));
        let is_open = |&time: &u64| ends().filter(|&end| end > time).count() < most;
        let opens = ends().filter(|&end| end > now).chain([now]).filter(is_open).min();
        opens.unwrap_or(NEVER).max(self.paused_until)
    }

    pub fn next_due(&self, now: u64) -> Option<u64> {
        let pending = self.jobs.iter().filter(|job| job.stage == Stage::Pending);
        pending.map(|job| job.since.max(self.opens(now))).min()
    }

    pub fn is_over(&self) -> bool {
        self.stopped || self.pending() == 0 || self.paused_until == NEVER
    }

    pub fn refusal(&self, unique: Option<&[u8]>, is_series: bool) -> Option<Refusal> {
        // A job that runs or waits, at any time.
        let is_alive =
            |id: &[u8]| self.jobs.iter().any(|job| job.status(LAST).is_some() && job.is_named(id));
        if self.stopped {
            Some(Refusal::Stopped)
        } else if unique.is_some_and(is_alive) {
            Some(Refusal::Duplicate)
        } else if !is_series && self.capacity > 0 && self.pending() >= self.capacity {
            Some(Refusal::Full)
        } else {
            None
        }
    }

    pub fn status(&self, id: &[u8], now: u64) -> Option<Status> {
        let all = self.jobs.iter().filter(|job| job.is_named(id));
        let mut all: Vec<Status> = all.filter_map(|job| job.status(now)).collect();
        all.sort_unstable();
        all.first().copied()
    }

    /// Those that are alive, as one is to see them.
    pub fn alive(&self, now: u64) -> Vec<&Job> {
        let mut all: Vec<&Job> = self.jobs.iter().filter(|job| job.status(now).is_some()).collect();
        all.sort_by_key(|job| {
            let status = job.status(now);
            let due = if status == Some(Status::Delayed) { job.since } else { 0 };
            let rank = (status == Some(Status::Ready)).then_some(Reverse(job.order.priority));
            (status, due, rank, job.place)
        });
        all
    }

    /// Those that have failed, the oldest first.
    pub fn kept(&self) -> Vec<&Job> {
        let mut kept: Vec<&Job> = self.jobs.iter().filter(|job| job.stage == Stage::Kept).collect();
        kept.sort_by_key(|job| job.place);
        kept
    }

    /// Whether another attempt follows where that of a job in flight raises.
    pub fn may_retry(&self, job: &Job) -> bool {
        let is_last_beat = job.beat.is_some_and(|beat| beat.is_last);
        !self.stopped && !is_last_beat && job.attempts <= job.order.retries
    }

    /// Whether a job in flight that fails would be kept as a copy.
    pub fn keeps_copy(&self, job: &Job) -> bool {
        self.keep_failed > 0 && !self.stopped && job.goes_on()
    }

    // --- choosing ------------------------------------------------------------------------------

    /// One of the jobs of which `is_one` is true.
    fn pick(&self, pick: Pick, is_one: impl Fn(&Job) -> bool) -> Option<&Job> {
        let all: Vec<&Job> = self.jobs.iter().filter(|job| is_one(job)).collect();
        (!all.is_empty()).then(|| all[all.len() - 1 - pick * all.len() / PICKS])
    }

    /// The slot of one of the jobs of which `is_one` is true.
    pub fn choose(&self, pick: Pick, is_one: impl Fn(&Job) -> bool) -> Option<u32> {
        self.pick(pick, |job| job.slot.is_some() && is_one(job))?.slot
    }

    pub fn text(&self, id: Id) -> Option<Vec<u8>> {
        let text_of = |job: &Job| job.name.with_text(<[u8]>::to_vec);
        match id {
            Id::Known(nth) => IDS.get(nth).map(|id| id.to_vec()),
            Id::Of(pick) => self.pick(pick, |_| true).map(text_of),
            Id::Kept(pick) => self.pick(pick, |job| job.stage == Stage::Kept).map(text_of),
            Id::Coming(later) => Some(format!("job-{}", self.made + 1 + later).into_bytes()),
        }
    }

    pub fn at(&mut self, slot: u32) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.slot == Some(slot))
    }

    fn position(&self, slot: u32) -> Option<usize> {
        self.jobs.iter().position(|job| job.slot == Some(slot))
    }

    pub fn take(&mut self, slot: u32) -> Option<Job> {
        self.position(slot).map(|nth| self.jobs.remove(nth))
    }

    // --- doing ---------------------------------------------------------------------------------

    fn new_place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    pub fn push(&mut self, (slot, held): (u32, Held), name: Name, order: &Order, now: u64) {
        let since = after(now, order.delay);
        let beat = |interval| Beat { interval, time: since, is_last: false };
        let place = self.new_place();
        self.counts.enqueued += 1;
        self.jobs.push(Job {
            held,
            slot: Some(slot),
            stage: Stage::Pending,
            name,
            place,
            since,
            attempts: 0,
            order: order.clone(),
            beat: order.every.map(beat),
        });
    }

    /// Starts the job whose turn it is, the one of the highest priority, and then the first in the
    /// order; or sheds it.
    pub fn next(&mut self, now: u64) -> Next<Held> {
        if self.stopped || self.opens(now) > now {
            return Next::Nothing;
        }
        let place = self.new_place();
        let due = self.jobs.iter_mut().filter(|job| job.is_due(now));
        let best = due.max_by_key(|job| (job.order.priority, Reverse(job.place)));
        let Some((job, slot)) = best.and_then(|job| job.slot.map(|slot| (job, slot))) else {
            return Next::Nothing;
        };
        if now > after(job.since, job.order.patience) {
            job.stage = Stage::Shed;
            self.counts.expired += 1;
            return Next::Shed(slot);
        }
        self.waits.push(now - job.since);
        self.starts.push(now);
        (job.stage, job.since, job.place) = (Stage::Running, now, place);
        job.attempts += 1;
        Next::Start(slot, job.held)
    }

    /// The attempt of a job in `slot` has ended, if one ran there.
    pub fn end_attempt(&mut self, slot: u32, now: u64) -> bool {
        let Some(job) = self.at(slot).filter(|job| job.stage == Stage::Running) else {
            return false;
        };
        job.stage = Stage::Raised;
        let exec = now - job.since;
        self.execs.push(exec);
        self.counts.processed += 1;
        true
    }

    pub fn retry(&mut self, slot: u32, backoff: Option<Span>, now: u64) -> Option<Span> {
        let place = self.new_place();
        let job = self.jobs.iter().find(|job| job.slot == Some(slot))?;
        if !self.may_retry(job) {
            return None;
        }
        self.counts.retried += 1;
        let job = self.at(slot)?;
        let backoff = backoff.unwrap_or(job.order.backoff);
        (job.stage, job.place, job.since) = (Stage::Pending, place, after(now, backoff));
        Some(backoff)
    }

    /// The job has ended for good: gives its values back, or files the next beat.
    pub fn end(&mut self, slot: u32, now: u64) -> Option<Held> {
        let place = self.new_place();
        let stopped = self.stopped;
        let job = self.at(slot)?;
        let goes_on = job.goes_on() && !stopped;
        let Some(beat) = job.beat.as_mut().filter(|_| goes_on) else {
            return self.take(slot).map(|job| job.held);
        };
        beat.time = beat.time_after(now);
        job.since = beat.time.max(now);
        (job.stage, job.place, job.attempts) = (Stage::Pending, place, 0);
        self.counts.enqueued += 1;
        None
    }

    /// A job that has failed is kept, or a copy of it. Tells whose values are nobody's any longer.
    pub fn keep(&mut self, slot: u32, held: Held, now: u64) -> [Option<Held>; 2] {
        let place = self.new_place();
        let Some(nth) = self.position(slot) else { return [None, None] };
        let job = self.jobs[nth].clone();
        let is_copy = self.keeps_copy(&job);
        let kept = Job { held, slot: None, stage: Stage::Kept, place, beat: None, ..job };
        if is_copy {
            self.jobs.push(kept);
        } else {
            self.jobs[nth] = kept;
        }
        let own = if is_copy { self.end(slot, now) } else { None };
        let kept = self.kept();
        let first = kept.first().filter(|_| kept.len() > self.keep_failed).map(|job| job.place);
        let evicted = self.jobs.iter().position(|job| Some(job.place) == first);
        [own, evicted.map(|nth| self.jobs.remove(nth).held)]
    }

    /// The newest failed job of this id.
    pub fn newest_failed(&mut self, id: &[u8]) -> Option<&mut Job> {
        let failed =
            self.jobs.iter_mut().filter(|job| job.stage == Stage::Kept && job.is_named(id));
        failed.max_by_key(|job| job.place)
    }

    /// A failed job is pushed again.
    pub fn revive(&mut self, id: &[u8], slot: u32, now: u64) {
        let place = self.new_place();
        self.counts.enqueued += 1;
        let Some(job) = self.newest_failed(id) else { return };
        (job.slot, job.stage, job.place) = (Some(slot), Stage::Pending, place);
        (job.name, job.since, job.attempts) = (Name::Given(Box::from(id)), now, 0);
        job.held.notes = 0;
    }

    /// Takes the pending jobs of an id out, and ends the series of which a beat is in flight: gives
    /// back what the first held, and tells how many the second are.
    pub fn cancel(&mut self, id: &[u8]) -> (Vec<Held>, usize) {
        let is_gone = |job: &Job| job.stage == Stage::Pending && job.is_named(id);
        let gone = self.jobs.iter().filter(|job| is_gone(job)).map(|job| job.held).collect();
        self.jobs.retain(|job| !is_gone(job));
        let ended = self.jobs.iter_mut().filter(|job| job.is_named(id));
        (gone, ended.map(Job::end_series).filter(|&goes_on| goes_on).count())
    }

    /// Drops the pending job in the first slot from `cursor` on, and ends the series of which a beat
    /// is in flight before it.
    pub fn clear_next(&mut self, cursor: &mut u32) -> Option<Held> {
        let pending = self.jobs.iter().filter(|job| job.stage == Stage::Pending);
        let slot = pending.filter_map(|job| job.slot).filter(|slot| slot >= cursor).min();
        let passed = *cursor..slot.unwrap_or(u32::MAX);
        let is_passed = |job: &&mut Job| job.slot.is_some_and(|slot| passed.contains(&slot));
        for job in self.jobs.iter_mut().filter(is_passed) {
            job.end_series();
        }
        *cursor = slot? + 1;
        self.counts.dropped += 1;
        self.counts.cleared += 1;
        self.take(slot?).map(|job| job.held)
    }

    pub fn set_priority(&mut self, id: &[u8], priority: i64) -> usize {
        let moved = |job: &&mut Job| job.stage == Stage::Pending && job.is_named(id);
        self.jobs.iter_mut().filter(moved).map(|job| job.order.priority = priority).count()
    }
}
