//! The scheduler against a naive oracle: a plain list of jobs, searched from end to end for every
//! question. Both take the same random operations, on a manual clock, and after each of them must
//! agree on everything that can be seen.

#![cfg(not(loom))]

mod scripts;
mod seeds;

use std::cmp::Reverse;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;

use queue::core::clock::{Moment, Span};
use queue::core::metrics::Timing;
use queue::core::scheduler::{Facts, Name, Next, Plan, Refusal, Scheduler, Verdict};

use scripts::Script;

/// What the oracle's nanoseconds say where the clock says [`Moment::NEVER`].
const NEVER: u64 = u64::MAX;

/// The last moment that comes.
const LAST: u64 = NEVER - 1;

// --- operations --------------------------------------------------------------------------------

/// What a job is pushed with; its values are a number that no other job has.
#[derive(Clone, Debug)]
struct Order {
    priority: i64,
    delay: Span,
    retries: u64,
    backoff: Span,
    patience: Span,
    name: Option<u8>,
}

/// How far the clock goes on.
#[derive(Clone, Copy, Debug)]
enum Step {
    By(u64),
    /// To the moment when the next job is due, or a nanosecond to either side of it.
    BeforeDue,
    ToDue,
    PastDue,
}

/// One of those that the operation can be done to; nothing is done where there are none.
type Pick = usize;

/// Picks are below this. A pick is a share of those that there are, from 0 for the newest on: so it
/// means much the same when there are fewer.
const PICKS: usize = 16;

#[derive(Clone, Debug)]
enum Op {
    Push(Order),
    Next,
    /// An attempt ends well.
    Succeed(Pick),
    /// An attempt raises. Its job stays until `Retry` or `Leave`.
    Raise(Pick),
    Retry(Pick, Option<Span>),
    /// A job that raised or was shed goes.
    Leave(Pick),
    /// An attempt does not end: its coroutine was closed.
    Cancel(Pick),
    /// The end of an attempt is told of a slot where none runs.
    Meddle(u32),
    DueJobs,
    NextDue,
    Step(Step),
    /// One pending job is dropped; which one is not said.
    ClearOne,
    Clear,
    Stop,
    /// Many pushes of the same.
    Burst(usize, Order),
    /// Jobs run, or are shed, until nothing is left to start.
    Drain,
    /// Everything that is left ends or is dropped.
    Finish,
}

#[derive(Clone, Debug)]
struct Setup {
    /// Pending jobs at most; 0: any number.
    capacity: usize,
    /// Where the clock begins.
    start: u64,
    /// Whether what is due is asked for after every step. That moves jobs from heap to heap, and so
    /// may hide a mistake: half of the runs ask only when told to.
    is_curious: bool,
}

/// Mostly spans that meet each other, now and then an extreme one.
fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![
        4 => Just(Span::ZERO),
        8 => (0..6u64).prop_map(Span::from_nanos),
        1 => (0..3_000_000_000u64).prop_map(Span::from_nanos),
        1 => select(vec![Span::FOREVER, Span::from_nanos(LAST), Span::from_nanos(LAST / 2)]),
    ]
}

fn orders() -> impl Strategy<Value = Order> {
    let priorities = prop_oneof![
        9 => -1..=1i64,
        1 => select(vec![i64::MIN, i64::MAX, i64::MIN + 1, 1 << 53, (1 << 53) + 1]),
    ];
    let retries = prop_oneof![9 => 0..4u64, 1 => Just(u64::MAX)];
    let patience = prop_oneof![2 => Just(Span::FOREVER), 1 => spans()];
    let names = prop_oneof![3 => Just(None), 1 => (0..3u8).prop_map(Some)];
    (priorities, spans(), retries, spans(), patience, names).prop_map(
        |(priority, delay, retries, backoff, patience, name)| Order {
            priority,
            delay,
            retries,
            backoff,
            patience,
            name,
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4u64).prop_map(Step::By),
        1 => (0..2_000_000_000u64).prop_map(Step::By),
        1 => Just(Step::BeforeDue),
        3 => Just(Step::ToDue),
        1 => Just(Step::PastDue),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let pick = || 0..PICKS;
    let of_jobs = prop_oneof![
        30 => orders().prop_map(Op::Push),
        25 => Just(Op::Next),
        10 => pick().prop_map(Op::Succeed),
        15 => pick().prop_map(Op::Raise),
        13 => (pick(), option::of(spans())).prop_map(|(pick, span)| Op::Retry(pick, span)),
        8 => pick().prop_map(Op::Leave),
        3 => pick().prop_map(Op::Cancel),
        2 => (0..12u32).prop_map(Op::Meddle),
    ];
    let of_all = prop_oneof![
        30 => steps().prop_map(Op::Step),
        8 => Just(Op::DueJobs),
        8 => Just(Op::NextDue),
        4 => Just(Op::ClearOne),
        2 => Just(Op::Clear),
        1 => Just(Op::Stop),
    ];
    prop_oneof![103 => of_jobs, 53 => of_all]
}

fn setups(capacity: impl Strategy<Value = usize>) -> impl Strategy<Value = Setup> {
    let starts = prop_oneof![6 => 0..10u64, 2 => Just(LAST / 2), 1 => (LAST - 20)..=LAST];
    (capacity, starts, any::<bool>()).prop_map(|(capacity, start, is_curious)| Setup {
        capacity,
        start,
        is_curious,
    })
}

fn scripts() -> impl Strategy<Value = Script<Setup, Op>> {
    let capacity = prop_oneof![1 => Just(0), 1 => 1..6usize];
    (setups(capacity), vec(ops(), 1..100)).prop_map(|(setup, ops)| Script { setup, ops })
}

/// Runs in which so much comes and goes at once that memory is given back.
fn bursts() -> impl Strategy<Value = Script<Setup, Op>> {
    let sizes = prop_oneof![1 => 1..40usize, 1 => 1000..1050usize, 1 => 1100..1300usize];
    let op = prop_oneof![
        4 => (sizes, orders()).prop_map(|(count, order)| Op::Burst(count, order)),
        2 => Just(Op::Drain),
        3 => Just(Op::Finish),
        1 => Just(Op::ClearOne),
        4 => ops(),
    ];
    (setups(Just(0)), vec(op, 1..16)).prop_map(|(setup, ops)| Script { setup, ops })
}

// --- oracle ------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Pending,
    Running { since: u64 },
    Raised,
    Shed,
}

#[derive(Debug)]
struct Job {
    /// Its values.
    serial: u64,
    slot: u32,
    stage: Stage,
    name: Name,
    /// Its place in the order of pushes and retries.
    place: u64,
    due: u64,
    attempts: u64,
    order: Order,
}

#[derive(Debug, Default)]
struct Counts {
    enqueued: u64,
    processed: u64,
    succeeded: u64,
    failed: u64,
    retried: u64,
    expired: u64,
    dropped: u64,
    cleared: u64,
    cancelled: u64,
}

#[derive(Debug, Default)]
struct Oracle {
    capacity: usize,
    stopped: bool,
    jobs: Vec<Job>,
    places: u64,
    serials: u64,
    /// Ids that were made up.
    made: u64,
    counts: Counts,
    waits: Vec<u64>,
    execs: Vec<u64>,
}

/// `now` plus `span`; what is finite stays finite.
fn after(now: u64, span: Span) -> u64 {
    if span == Span::FOREVER {
        return NEVER;
    }
    let sum = u128::from(now) + u128::from(span.nanos());
    u64::try_from(sum).map_or(LAST, |sum| sum.min(LAST))
}

impl Oracle {
    fn pending(&self) -> usize {
        self.jobs.iter().filter(|job| job.stage == Stage::Pending).count()
    }

    fn in_flight(&self) -> usize {
        let flies = |job: &&Job| matches!(job.stage, Stage::Running { .. } | Stage::Raised);
        self.jobs.iter().filter(flies).count()
    }

    fn due_jobs(&self, now: u64) -> usize {
        self.jobs.iter().filter(|job| job.stage == Stage::Pending && job.due <= now).count()
    }

    fn next_due(&self, now: u64) -> Option<u64> {
        let pending = self.jobs.iter().filter(|job| job.stage == Stage::Pending);
        pending.map(|job| job.due.max(now)).min()
    }

    fn refusal(&self) -> Option<Refusal> {
        if self.stopped {
            Some(Refusal::Stopped)
        } else if self.capacity > 0 && self.pending() >= self.capacity {
            Some(Refusal::Full)
        } else {
            None
        }
    }

    fn new_place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    /// The job whose turn it is: the highest priority, then the first in the order.
    fn best(&mut self, now: u64) -> Option<&mut Job> {
        if self.stopped {
            return None;
        }
        let due = self.jobs.iter_mut().filter(|job| job.stage == Stage::Pending && job.due <= now);
        due.max_by_key(|job| (job.order.priority, Reverse(job.place)))
    }

    /// The slot of one of the jobs of which `is_one` is true.
    fn choose(&self, pick: Pick, is_one: impl Fn(&Job) -> bool) -> Option<u32> {
        let all: Vec<u32> =
            self.jobs.iter().filter(|job| is_one(job)).map(|job| job.slot).collect();
        (!all.is_empty()).then(|| all[all.len() - 1 - pick * all.len() / PICKS])
    }

    fn at(&mut self, slot: u32) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.slot == slot)
    }

    fn take(&mut self, slot: u32) -> Option<Job> {
        let place = self.jobs.iter().position(|job| job.slot == slot)?;
        Some(self.jobs.remove(place))
    }
}

// --- both, side by side ------------------------------------------------------------------------

struct Pair {
    real: Scheduler<u64>,
    oracle: Oracle,
    now: u64,
    /// The most jobs that there were at once.
    most: usize,
}

impl Pair {
    fn new(setup: &Setup) -> Self {
        let oracle = Oracle { capacity: setup.capacity, ..Oracle::default() };
        Self { real: Scheduler::new(setup.capacity), oracle, now: setup.start, most: 0 }
    }

    fn moment(&self) -> Moment {
        Moment::from_nanos(self.now)
    }

    fn apply(&mut self, op: &Op) -> TestCaseResult {
        match op {
            Op::Push(order) => self.push(order),
            Op::Next => self.next().map(drop),
            Op::Succeed(pick) => self.succeed(*pick),
            Op::Raise(pick) => self.raise(*pick),
            Op::Retry(pick, backoff) => self.retry(*pick, *backoff),
            Op::Leave(pick) => self.leave(*pick),
            Op::Cancel(pick) => self.cancel(*pick),
            Op::Meddle(slot) => self.meddle(*slot),
            Op::DueJobs => self.compare_due_jobs(),
            Op::NextDue => self.compare_next_due(),
            Op::Step(step) => {
                self.step(*step);
                Ok(())
            }
            Op::ClearOne => self.clear_next(&mut 0).map(drop),
            Op::Clear => self.clear(),
            Op::Stop => {
                self.real.stop();
                self.oracle.stopped = true;
                Ok(())
            }
            Op::Burst(count, order) => (0..*count).try_for_each(|_| self.push(order)),
            Op::Drain => self.drain(),
            Op::Finish => self.finish(),
        }
    }

    fn push(&mut self, order: &Order) -> TestCaseResult {
        let refusal = self.oracle.refusal();
        prop_assert_eq!(self.real.refusal(), refusal);
        if refusal.is_some() {
            self.real.count_refused();
            self.oracle.counts.dropped += 1;
            return Ok(());
        }
        let serial = self.oracle.serials;
        let given: Option<Box<[u8]>> = order.name.map(|letter| Box::from([letter]));
        let plan = Plan {
            priority: order.priority,
            delay: order.delay,
            retries: order.retries,
            backoff: order.backoff,
            patience: order.patience,
            name: given.clone(),
            values: serial,
        };
        prop_assert_eq!(self.real.reserve(&plan), Ok(()));
        let slot = self.real.push(plan, self.moment());
        let name = given.map_or_else(
            || {
                self.oracle.made += 1;
                Name::Made(self.oracle.made)
            },
            Name::Given,
        );
        let place = self.oracle.new_place();
        self.oracle.serials += 1;
        self.oracle.counts.enqueued += 1;
        self.oracle.jobs.push(Job {
            serial,
            slot,
            stage: Stage::Pending,
            name,
            place,
            due: after(self.now, order.delay),
            attempts: 0,
            order: order.clone(),
        });
        self.most = self.most.max(self.oracle.jobs.len());
        prop_assert!((slot as usize) < self.most, "slot {slot} is new, though others are free");
        Ok(())
    }

    /// Begins an attempt, or sheds a job, and tells of which slot.
    fn next(&mut self) -> Result<Option<(u32, Stage)>, TestCaseError> {
        let now = self.now;
        let Some(job) = self.oracle.best(now) else {
            prop_assert_eq!(self.real.next(self.moment()), Next::Nothing);
            return Ok(None);
        };
        let (slot, serial, due) = (job.slot, job.serial, job.due);
        if now > after(due, job.order.patience) {
            job.stage = Stage::Shed;
            self.oracle.counts.expired += 1;
            prop_assert_eq!(self.real.next(self.moment()), Next::Shed(slot));
            return Ok(Some((slot, Stage::Shed)));
        }
        let stage = Stage::Running { since: now };
        job.stage = stage;
        job.attempts += 1;
        self.oracle.waits.push(now - due);
        prop_assert_eq!(self.real.next(self.moment()), Next::Start(slot, serial));
        Ok(Some((slot, stage)))
    }

    fn succeed(&mut self, pick: Pick) -> TestCaseResult {
        let running = |job: &Job| matches!(job.stage, Stage::Running { .. });
        match self.oracle.choose(pick, running) {
            Some(slot) => self.succeed_at(slot),
            None => Ok(()),
        }
    }

    fn succeed_at(&mut self, slot: u32) -> TestCaseResult {
        let job = self.oracle.take(slot).filter(|job| matches!(job.stage, Stage::Running { .. }));
        prop_assert_eq!(self.real.succeed(slot, self.moment()), job.as_ref().map(|job| job.serial));
        if let Some(Job { stage: Stage::Running { since }, .. }) = job {
            self.oracle.execs.push(self.now - since);
            self.oracle.counts.processed += 1;
            self.oracle.counts.succeeded += 1;
        }
        Ok(())
    }

    fn raise(&mut self, pick: Pick) -> TestCaseResult {
        let now = self.now;
        let stopped = self.oracle.stopped;
        let running = |job: &Job| matches!(job.stage, Stage::Running { .. });
        let Some(slot) = self.oracle.choose(pick, running) else { return Ok(()) };
        let Some(job) = self.oracle.at(slot) else { return Ok(()) };
        let Stage::Running { since } = job.stage else { return Ok(()) };
        job.stage = Stage::Raised;
        let again = !stopped && job.attempts <= job.order.retries;
        self.oracle.execs.push(now - since);
        self.oracle.counts.processed += 1;
        let verdict = if again { Verdict::Retry } else { Verdict::GiveUp };
        prop_assert_eq!(self.real.raise(slot, self.moment()), Some(verdict));
        Ok(())
    }

    fn retry(&mut self, pick: Pick, backoff: Option<Span>) -> TestCaseResult {
        let now = self.now;
        let stopped = self.oracle.stopped;
        // A queue may be stopped between the verdict and the retry.
        let may = |job: &Job| job.stage == Stage::Raised && job.attempts <= job.order.retries;
        let Some(slot) = self.oracle.choose(pick, may) else { return Ok(()) };
        if !stopped {
            let place = self.oracle.new_place();
            self.oracle.counts.retried += 1;
            let Some(job) = self.oracle.at(slot) else { return Ok(()) };
            job.stage = Stage::Pending;
            job.place = place;
            job.due = after(now, backoff.unwrap_or(job.order.backoff));
        }
        prop_assert_eq!(self.real.retry(slot, backoff, self.moment()), !stopped);
        Ok(())
    }

    fn leave(&mut self, pick: Pick) -> TestCaseResult {
        let may = |job: &Job| matches!(job.stage, Stage::Raised | Stage::Shed);
        match self.oracle.choose(pick, may) {
            Some(slot) => self.leave_at(slot),
            None => Ok(()),
        }
    }

    fn leave_at(&mut self, slot: u32) -> TestCaseResult {
        let job = self.oracle.take(slot);
        if job.as_ref().is_some_and(|job| job.stage == Stage::Raised) {
            self.oracle.counts.failed += 1;
        }
        compare_facts(self.real.leave(slot), job.as_ref())
    }

    fn cancel(&mut self, pick: Pick) -> TestCaseResult {
        let may = |job: &Job| matches!(job.stage, Stage::Running { .. } | Stage::Raised);
        let Some(slot) = self.oracle.choose(pick, may) else { return Ok(()) };
        let job = self.oracle.take(slot);
        self.oracle.counts.cancelled += 1;
        prop_assert_eq!(self.real.cancel_running(slot), job.map(|job| job.serial));
        Ok(())
    }

    /// Nothing comes of it where no attempt runs.
    fn meddle(&mut self, slot: u32) -> TestCaseResult {
        let now = self.moment();
        let stage = self.oracle.at(slot).map(|job| job.stage);
        if matches!(stage, Some(Stage::Running { .. } | Stage::Raised)) {
            return Ok(());
        }
        prop_assert_eq!(self.real.succeed(slot, now), None);
        prop_assert_eq!(self.real.raise(slot, now), None);
        prop_assert!(!self.real.retry(slot, None, now));
        prop_assert_eq!(self.real.cancel_running(slot), None);
        if stage != Some(Stage::Shed) {
            prop_assert!(self.real.leave(slot).is_none());
        }
        Ok(())
    }

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

    fn clear_next(&mut self, cursor: &mut u32) -> Result<bool, TestCaseError> {
        let Some(serial) = self.real.clear_next(cursor) else {
            prop_assert_eq!(self.oracle.pending(), 0, "a clear has left something");
            return Ok(false);
        };
        let jobs = &mut self.oracle.jobs;
        let place = jobs.iter().position(|job| job.serial == serial);
        prop_assert!(place.is_some(), "a clear has dropped job {serial}, which was gone");
        let job = jobs.remove(place.unwrap_or(0));
        prop_assert_eq!(job.stage, Stage::Pending, "a clear has dropped job {}", serial);
        self.oracle.counts.dropped += 1;
        self.oracle.counts.cleared += 1;
        Ok(true)
    }

    fn clear(&mut self) -> TestCaseResult {
        let mut cursor = 0;
        while self.clear_next(&mut cursor)? {}
        Ok(())
    }

    fn drain(&mut self) -> TestCaseResult {
        while let Some((slot, stage)) = self.next()? {
            if stage == Stage::Shed { self.leave_at(slot)? } else { self.succeed_at(slot)? }
        }
        Ok(())
    }

    fn finish(&mut self) -> TestCaseResult {
        while let Some(slot) = self.oracle.choose(0, |job| job.stage != Stage::Pending) {
            match self.oracle.at(slot).map(|job| job.stage) {
                Some(Stage::Running { .. }) => self.succeed_at(slot)?,
                _ => self.leave_at(slot)?,
            }
        }
        self.clear()
    }

    // --- comparing -----------------------------------------------------------------------------

    fn compare(&mut self, is_curious: bool) -> TestCaseResult {
        let (real, oracle) = (&self.real, &self.oracle);
        prop_assert_eq!(real.pending(), oracle.pending(), "pending");
        prop_assert_eq!(real.in_flight(), oracle.in_flight(), "in flight");
        prop_assert_eq!(real.is_stopped(), oracle.stopped, "stopped");
        prop_assert_eq!(real.refusal(), oracle.refusal(), "refusal");
        prop_assert_eq!(real.next_number(), oracle.made + 1, "next made-up id");
        self.compare_metrics()?;
        let mut jobs: Vec<Option<&Job>> = vec![None; self.most + 1];
        for job in &oracle.jobs {
            let before = jobs[job.slot as usize].replace(job);
            prop_assert!(before.is_none(), "slot {} holds two jobs", job.slot);
        }
        for (slot, job) in (0..).zip(jobs) {
            let seen = real.backoff(slot, |values| values);
            prop_assert_eq!(seen, job.map(|job| (job.serial, job.attempts)), "slot {}", slot);
        }
        if is_curious {
            self.compare_due_jobs()?;
            self.compare_next_due()?;
        }
        Ok(())
    }

    fn compare_due_jobs(&mut self) -> TestCaseResult {
        prop_assert_eq!(self.real.due_jobs(self.moment()), self.oracle.due_jobs(self.now));
        Ok(())
    }

    fn compare_next_due(&mut self) -> TestCaseResult {
        let due = self.oracle.next_due(self.now).map(Moment::from_nanos);
        prop_assert_eq!(self.real.next_due(self.moment()), due);
        Ok(())
    }

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
}

fn compare_facts(facts: Option<Facts<u64>>, job: Option<&Job>) -> TestCaseResult {
    let seen = facts
        .map(|facts| (facts.values, facts.name, facts.priority, facts.attempts, facts.retries));
    let due = job.map(|job| {
        (job.serial, job.name.clone(), job.order.priority, job.attempts, job.order.retries)
    });
    prop_assert_eq!(seen, due, "facts");
    Ok(())
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

fn agree(script: &Script<Setup, Op>) -> TestCaseResult {
    let mut pair = Pair::new(&script.setup);
    pair.compare(script.setup.is_curious)?;
    for op in &script.ops {
        pair.apply(op)?;
        pair.compare(script.setup.is_curious)?;
    }
    // Whatever came before, the rest comes out in order.
    pair.drain()?;
    pair.compare(true)
}

#[test]
fn the_scheduler_agrees_with_the_oracle() {
    scripts::check("the_scheduler_agrees_with_the_oracle", 4_000, &scripts(), agree);
}

#[test]
fn bursts_agree_with_the_oracle() {
    scripts::check("bursts_agree_with_the_oracle", 30, &bursts(), agree);
}
