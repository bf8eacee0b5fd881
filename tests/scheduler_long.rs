//! Long runs of the scheduler on a manual clock: a series keeps its phase, and what has gone takes
//! neither room nor time.

#![cfg(not(loom))]

use std::time::{Duration, Instant};

use queue::core::clock::{Moment, Span};

use queue::core::scheduler::{Cancelled, Cursor, Next, Plan, Scheduler, Setup, Verdict};

/// A job to run at once, once.
const PLAN: Plan<u64> = Plan {
    priority: 0,
    delay: Span::ZERO,
    retries: 0,
    backoff: Span::ZERO,
    patience: Span::FOREVER,
    name: None,
    is_unique: false,
    every: None,
    values: 0,
};

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn push(scheduler: &mut Scheduler<u64>, mut plan: Plan<u64>, now: Moment) {
    assert_eq!(scheduler.refusal(None, plan.every.is_some()), None);
    scheduler.reserve(&plan, plan.name.is_some()).unwrap();
    scheduler.push(&mut plan, now);
}

fn cancel(scheduler: &mut Scheduler<u64>, id: &[u8], values: u64) {
    let mut cursor = Cursor::default();
    assert_eq!(scheduler.cancel_next(id, &mut cursor), Some(Cancelled::Job(values)));
    assert_eq!(scheduler.cancel_next(id, &mut cursor), None);
}

/// As much as there is to tell of all that is in it: a measure of its room.
fn size(scheduler: &Scheduler<u64>) -> usize {
    format!("{scheduler:?}").len()
}

/// Does it among few jobs and among many, and compares the times. Somebody else may take the processor
/// meanwhile, so it has three tries, and what grows with the number of jobs is much slower than that.
fn assert_near(what: &str, mut times: impl FnMut() -> (Duration, Duration)) {
    let is_near = |(few, many): &(Duration, Duration)| *many < 8 * *few;
    let tries: Vec<_> = (0..3).map(|_| times()).take_while(|times| !is_near(times)).collect();
    assert!(tries.len() < 3, "{what} among few jobs and among many took {tries:?}");
}

/// Random numbers, the same in every run: Knuth's generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 32) % bound
    }
}

/// Whoever runs the beats comes up to `lateness` late, and takes up to `work` for each. Tells how
/// many beats were made up for others.
fn run_beats(beats: u64, lateness: u64, work: u64) -> u64 {
    const INTERVAL: u64 = 1_000_003;
    const FIRST: u64 = 777;
    let mut scheduler = Scheduler::new(Setup { keep_failed: 3, ..Setup::default() }).unwrap();
    let (every, delay) = (Some(Span::from_nanos(INTERVAL)), Span::from_nanos(FIRST));
    push(&mut scheduler, Plan { every, delay, values: 1, ..PLAN }, at(0));
    let mut dice = Dice(1);
    let (mut now, mut nth, mut missed) = (0, 0, 0);
    for beat in 0..beats {
        let time = FIRST + nth * INTERVAL;
        assert_eq!(scheduler.next_due(at(now)), Some(at(time.max(now))), "beat {nth}");
        if time > now {
            assert_eq!(scheduler.next(at(time - 1)), Next::Nothing, "beat {nth} is early");
        }
        now = time.max(now) + dice.below(lateness);
        let Next::Start(slot, 1) = scheduler.next(at(now)) else { panic!("no beat {nth}") };
        assert_eq!(scheduler.next(at(now)), Next::Nothing, "two beats at once");
        now += dice.below(work);
        if dice.below(3) == 0 {
            assert_eq!(scheduler.raise(slot, at(now)), Some(Verdict::GiveUp));
            let evicted = scheduler.leave(slot, Some(2), at(now));
            assert!(evicted == [None, None] || evicted == [None, Some(2)]);
        } else {
            assert_eq!(scheduler.succeed(slot, at(now)), None, "the series goes on");
        }
        // The next one, or else the latest that has passed.
        let latest = (now - FIRST) / INTERVAL;
        missed += latest.saturating_sub(nth + 1);
        nth = latest.max(nth + 1);
        assert_eq!(scheduler.metrics().enqueued, beat + 2, "beats");
    }
    assert_eq!(scheduler.pending(), 1);
    assert!(size(&scheduler) < 20_000, "{}", size(&scheduler));
    missed
}

#[test]
fn a_series_keeps_its_phase_over_100_000_beats() {
    assert_eq!(run_beats(100_000, 500_000, 500_000), 0);
}

#[test]
fn a_series_that_misses_beats_keeps_its_phase_over_100_000_others() {
    assert!(run_beats(100_000, 2_000_000, 3_000_000) > 50_000);
}

/// Pushes and cancels 250,000 jobs, of which `alive` are there at a time, beside one that stays.
fn push_and_cancel(alive: u64, delay: Span, is_named: bool) {
    const JOBS: u64 = 250_000;
    let mut scheduler = Scheduler::new(Setup::default()).unwrap();
    push(&mut scheduler, Plan { values: JOBS, ..PLAN }, at(0));
    push(&mut scheduler, Plan { delay: Span::FOREVER, values: JOBS, ..PLAN }, at(0));
    let id_of = |job: u64| format!("job-{}", job + if is_named { 1_000_000 } else { 3 });
    let mut most = 0;
    for job in 0..JOBS {
        let name = is_named.then(|| id_of(job).into_bytes().into_boxed_slice());
        let plan = Plan { priority: (job % 3).cast_signed(), delay, retries: 1, name, ..PLAN };
        push(&mut scheduler, Plan { values: job, ..plan }, at(job));
        if let Some(old) = job.checked_sub(alive) {
            cancel(&mut scheduler, id_of(old).as_bytes(), old);
        }
        if job % 12_345 == 0 {
            most = most.max(size(&scheduler));
        }
    }
    assert_eq!(scheduler.pending() as u64, alive + 2);
    // A job takes some 300 letters to tell, its entries some 100.
    let bound = 40_000 + 600 * usize::try_from(alive).unwrap();
    assert!(most < bound, "it took {most} letters to tell of {alive} jobs");
}

#[test]
fn cancelled_jobs_leave_no_room_behind() {
    push_and_cancel(0, Span::ZERO, false);
    push_and_cancel(100, Span::from_nanos(1_000_000), false);
}

#[test]
fn cancelled_jobs_of_given_ids_leave_no_room_behind() {
    push_and_cancel(0, Span::from_nanos(1_000_000), true);
    push_and_cancel(100, Span::ZERO, true);
}

#[test]
fn a_burst_leaves_no_room_behind() {
    let mut scheduler = Scheduler::new(Setup::default()).unwrap();
    let mut numbers = 1..;
    for delay in [Span::ZERO, Span::from_nanos(1)] {
        for is_named in [false, true] {
            let mut ids = Vec::new();
            for values in 0..10_000 {
                let id = if is_named { values.to_string() } else { String::new() };
                let name = is_named.then(|| id.clone().into_bytes().into_boxed_slice());
                ids.push(if is_named { id } else { format!("job-{}", numbers.next().unwrap()) });
                push(&mut scheduler, Plan { delay, retries: 1, name, values, ..PLAN }, at(0));
            }
            assert!(size(&scheduler) > 1_000_000, "the size tells of the jobs");
            for (values, id) in (0..).zip(&ids) {
                cancel(&mut scheduler, id.as_bytes(), values);
            }
            assert!(size(&scheduler) < 4_000, "{} letters", size(&scheduler));
        }
    }
}

#[test]
fn jobs_that_ran_leave_no_room_behind() {
    const JOBS: u64 = 250_000;
    let limit = Some((10, Span::from_nanos(1_000)));
    let setup = Setup { keep_failed: 10, limit, ..Setup::default() };
    let mut scheduler = Scheduler::new(setup).unwrap();
    push(&mut scheduler, Plan { delay: Span::FOREVER, ..PLAN }, at(0));
    let mut back = 0;
    for job in 1..=JOBS {
        push(&mut scheduler, Plan { retries: 1, values: job, ..PLAN }, at(200 * job));
        for attempt in 0..2 {
            let now = at(200 * job + 100 * attempt);
            let Next::Start(slot, values) = scheduler.next(now) else { panic!("job {job}") };
            assert_eq!(values, job);
            match scheduler.raise(slot, now) {
                Some(Verdict::Retry) => {
                    assert_eq!(scheduler.retry(slot, None, now), Some(Span::ZERO));
                }
                _ => back += scheduler.leave(slot, Some(job), now).iter().flatten().count(),
            }
        }
        if job % 12_345 == 0 {
            assert!(size(&scheduler) < 40_000, "{}", size(&scheduler));
        }
    }
    assert_eq!((back as u64, scheduler.pending()), (JOBS - 10, 1));
}

/// Pushes so many jobs, and cancels them one by one. Tells the time of the fastest of five rounds.
fn cancel_each(jobs: u64, delay: Span) -> Duration {
    let mut scheduler = Scheduler::new(Setup::default()).unwrap();
    push(&mut scheduler, PLAN, at(0));
    let mut number = 1;
    let rounds = (0..5).map(|_| {
        for values in 0..jobs {
            push(&mut scheduler, Plan { delay, values, ..PLAN }, at(0));
        }
        let ids: Vec<String> = (0..jobs).map(|job| format!("job-{}", number + job + 1)).collect();
        number += jobs;
        let start = Instant::now();
        for (values, id) in (0..).zip(&ids) {
            cancel(&mut scheduler, id.as_bytes(), values);
        }
        start.elapsed()
    });
    rounds.min().unwrap()
}

#[test]
fn a_cancel_costs_as_much_among_many_jobs() {
    const FEW: u64 = 500;
    const MANY: u64 = 16_000;
    for delay in [Span::ZERO, Span::from_nanos(1)] {
        assert_near("cancels", || {
            (cancel_each(FEW, delay), cancel_each(MANY, delay) / u32::try_from(MANY / FEW).unwrap())
        });
    }
}

/// Moves one job to and fro 500,000 times, where there are `others`. Tells the time of the fastest
/// tenth.
fn toggle(others: u64) -> Duration {
    let mut scheduler = Scheduler::new(Setup::default()).unwrap();
    for values in 0..=others {
        push(&mut scheduler, Plan { values, ..PLAN }, at(0));
    }
    let bound = 40_000 + 600 * usize::try_from(others).unwrap();
    let tenths = (0..10).map(|_| {
        let start = Instant::now();
        for toggle in 0..50_000 {
            assert_eq!(scheduler.set_priority(b"job-1", toggle % 2), Ok(1));
        }
        let time = start.elapsed();
        assert!(size(&scheduler) < bound, "{} letters, {others} jobs", size(&scheduler));
        time
    });
    let fastest = tenths.min().unwrap();
    assert_eq!(scheduler.set_priority(b"job-1", 0), Ok(1));
    for values in 0..=others {
        assert!(matches!(scheduler.next(at(0)), Next::Start(_, it) if it == values));
    }
    assert_eq!(scheduler.next(at(0)), Next::Nothing);
    fastest
}

#[test]
fn a_job_that_is_moved_to_and_fro_a_million_times_takes_no_room() {
    assert_near("moves", || (toggle(0), toggle(1_000)));
}
