//! The steps of the pumps in `front.lua`: which job comes next, and what becomes of one that has
//! run. The pumps themselves are Lua, since only Lua can call a job in such a way that what it
//! throws and yields passes through untouched.
//!
//! These functions are not exported. A pump has checked its queue, and passes its [`Hand`]: which
//! job it has begun and not yet brought to an end. That is noted here and not in a Lua local, as a
//! hook can raise between any two steps of Lua.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;

use super::args::{Callee, out_of_memory};
use super::crew::{self, Resumed};
use super::failed;
use super::ffi::{Fail, Key, Object, Outcome, PARK, State, prefetch};
use super::flight::Pump;
use super::push::push_name;
use super::queue::{Held, Queue};
use super::wait;
use crate::core::clock::{Moment, Span};
use crate::core::crew::{Places, Wait};
use crate::core::scheduler::{Facts, Next, Verdict};

pub const RUN: Callee = Callee::method("run").wrapped();
const POLL: Callee = Callee::method("poll").wrapped();

/// Why a job has failed whose pump went without having said what becomes of it.
pub const LEFT: &str = "the run that had the job was left";

/// No job.
const NONE: u32 = u32::MAX;

/// What a pump has in hand.
pub struct Hand {
    /// The job that it has begun and not yet brought to an end.
    job: Cell<u32>,
    /// Attempts that it may start, and jobs that it may shed.
    most: Cell<u64>,
    sheds: Cell<u64>,
    /// Attempts that it started, every one of which ends in its hand.
    started: Cell<u64>,
    /// It is inside a queue of concurrent jobs.
    inside: OnceCell<Pump>,
    /// In another: where it leaves a job.
    left: OnceCell<Rc<RefCell<Vec<u32>>>>,
}

impl Object for Hand {
    const KEY: &'static Key = {
        static KEY: Key = Key(8);
        &KEY
    };
    const NAME: &'static str = "queue.hand";
}

impl Drop for Hand {
    /// The coroutine that its pump ran in was closed or collected, perhaps with a job in hand.
    fn drop(&mut self) {
        let job = self.job.get();
        if job == NONE {
            return;
        }
        if let Some(pump) = self.inside.get() {
            pump.orphan(job);
        } else if let Some(left) = self.left.get() {
            // Without memory for it the job stays in flight for good.
            let mut left = left.borrow_mut();
            if left.try_reserve(1).is_ok() {
                left.push(job);
            }
        }
    }
}

impl Hand {
    pub fn hold(&self, job: u32) {
        self.job.set(job);
    }
}

/// Takes the metatable of hands from the top.
pub fn open(l: State) -> Outcome {
    l.keep_metatable::<Hand>();
    Ok(0)
}

pub fn finalize(l: State) -> Outcome {
    l.finalize::<Hand>(1);
    Ok(0)
}

/// The queue at 1, which the pump has checked, and its hand at 2.
pub fn pumped(l: &State) -> Result<(&Queue, &Hand), Fail> {
    let parts = l.trusted(1).zip(l.trusted(2));
    // They are there unless a script called a finalizer by hand.
    parts.ok_or_else(|| RUN.argument(1).expected(*l, Queue::NAME))
}

/// `check_run(q)` → the pump's hand, whether the queue's jobs are concurrent, whether it has an
/// `on_success`
pub fn check_run(l: State) -> Outcome {
    RUN.object::<Queue>(&l)?;
    enter(l, RUN, u64::MAX, u64::MAX)
}

/// `check_poll(q, max)` → the same
pub fn check_poll(l: State) -> Outcome {
    let queue = POLL.object::<Queue>(&l)?;
    let max = POLL.argument(2).optional_count(l)?;
    let due = queue.scheduler.borrow_mut().due_jobs(Moment::now()) as u64;
    let most = if max == 0 { due } else { max };
    enter(l, POLL, most, due)
}

fn enter(l: State, callee: Callee, most: u64, sheds: u64) -> Outcome {
    l.new_object(|| Hand {
        job: Cell::new(NONE),
        most: Cell::new(most),
        sheds: Cell::new(sheds),
        started: Cell::new(0),
        inside: OnceCell::new(),
        left: OnceCell::new(),
    });
    let queue = callee.object::<Queue>(&l)?;
    if let Some(flight) = &queue.flight {
        let pump = flight.enter(l, callee, (most, sheds))?;
        if let Some(hand) = l.trusted::<Hand>(-1) {
            // It is new.
            let _ = hand.inside.set(pump);
        }
    } else if let Some(hand) = l.trusted::<Hand>(-1) {
        let _ = hand.left.set(Rc::clone(&queue.left));
    }
    l.push_bool(queue.flight.is_some());
    l.push_bool(queue.on_success.get() != 0);
    Ok(3)
}

/// `start(q, hand)` → function and args of the attempt that begins; or nil, nil, `"expired"`; or
/// nothing, where there is none to begin. A job that an earlier pump has left comes first, and is told
/// like one whose attempt raised.
pub fn start(l: State) -> Outcome {
    let (queue, hand) = pumped(&l)?;
    let left = queue.left.borrow_mut().pop();
    if let Some(job) = left {
        return fail_left(l, queue, hand, job);
    }
    l.push_values(1);
    begin(l, queue, hand, queue.now())
}

/// Tells of a job that an earlier pump has left, which takes it in hand.
#[cold]
fn fail_left(l: State, queue: &Queue, hand: &Hand, job: u32) -> Outcome {
    hand.hold(job);
    let verdict = queue.scheduler.borrow_mut().raise(job, Moment::now());
    l.push_nil();
    l.push_nil();
    l.push_str(outcome_of(verdict));
    l.push_str(LEFT);
    Ok(4)
}

/// `step(q, hand, ok, error)` ends the attempt in hand, and begins the next like `start`. Where the
/// attempt raised it begins none but returns nil, nil, and `"raised"`, or `"failed"` where no retry
/// is left, and the error.
pub fn step(l: State) -> Outcome {
    let (queue, hand) = pumped(&l)?;
    let now = queue.now();
    if !l.to_bool(3) {
        let verdict = queue.scheduler.borrow_mut().raise(hand.job.get(), now);
        l.push_nil();
        l.push_nil();
        l.push_str(outcome_of(verdict));
        l.push_value(4);
        return Ok(4);
    }
    let job = hand.job.replace(NONE);
    let held = queue.scheduler.borrow_mut().succeed(job, now).unwrap_or_default();
    l.push_values(1);
    queue.free(l, l.top(), held);
    // The first place where an error can be raised: the job that ended is counted, no other has
    // begun.
    if queue.values.tidy(l, 1) {
        return start(l);
    }
    begin(l, queue, hand, now)
}

/// `ended(hand)` → how many attempts the pump has seen end
pub fn ended(l: State) -> Outcome {
    l.push_count(l.trusted::<Hand>(1).map_or(0, |hand| hand.started.get()));
    Ok(1)
}

/// How the pump is told that an attempt raised.
pub fn outcome_of(verdict: Option<Verdict>) -> &'static str {
    if matches!(verdict, Some(Verdict::Retry)) { "raised" } else { "failed" }
}

/// Begins the next attempt; the queue's values are on the top.
fn begin(l: State, queue: &Queue, hand: &Hand, now: Moment) -> Outcome {
    let started = hand.started.get();
    if started >= hand.most.get() || hand.sheds.get() == 0 {
        return Ok(0);
    }
    let mut scheduler = queue.scheduler.borrow_mut();
    let next = scheduler.next(now);
    if let Some(job) = scheduler.likely_next() {
        prefetch(job);
    }
    drop(scheduler);
    match next {
        Next::Start(job, held) => {
            hand.hold(job);
            hand.started.set(started + 1);
            l.raw_get(-1, held.function);
            if held.args == 0 {
                return Ok(1);
            }
            l.raw_get(-2, held.args);
            Ok(2)
        }
        Next::Shed(job) => {
            hand.hold(job);
            hand.sheds.set(hand.sheds.get() - 1);
            l.push_nil();
            l.push_nil();
            l.push_str("expired");
            Ok(3)
        }
        Next::Nothing => Ok(0),
    }
}

/// `succeed(q, hand, number)`: the attempt in hand, or that of job `number` where jobs are concurrent,
/// ended well → `on_success` and what [`tell`] tells
pub fn succeed(l: State) -> Outcome {
    let (queue, hand) = pumped(&l)?;
    let now = queue.now();
    let number = l.to_slot(3);
    let job = match &queue.flight {
        Some(flight) => flight.crew.borrow().job(number),
        None => hand.job.replace(NONE),
    };
    let facts = queue.scheduler.borrow().facts(job);
    let held = queue.scheduler.borrow_mut().succeed(job, now);
    if let Some(flight) = &queue.flight {
        flight.dismiss(number);
    }
    let Ok(facts) = facts else { return Err(out_of_memory(l)) };
    tell(l, queue, queue.on_success.get(), facts, [held, None])
}

/// Pushes a callback, id, priority, attempts, retries and payload of a job, and frees what is
/// nobody's any longer.
fn tell(
    l: State,
    queue: &Queue,
    callback: u32,
    facts: Option<Facts<Held>>,
    freed: [Option<Held>; 2],
) -> Outcome {
    l.push_values(1);
    let table = l.top();
    let payload = facts.as_ref().map_or(0, |facts| facts.values.payload);
    l.raw_get(table, callback);
    l.raw_get(table, payload);
    for held in freed.into_iter().flatten() {
        queue.free(l, table, held);
    }
    let Some(facts) = facts.filter(|_| callback != 0) else { return Ok(0) };
    let Facts { name, priority, attempts, retries, .. } = facts;
    push_name(l, &name);
    drop(name);
    l.push_integer(priority);
    l.push_count(attempts);
    l.push_count(retries);
    l.push_value(table + 2);
    l.remove(table + 2);
    Ok(6)
}

/// `backoff(q, hand)` → the `backoff_ms` of the job where it is a function, and its attempts
pub fn backoff(l: State) -> Outcome {
    let (queue, hand) = pumped(&l)?;
    let (held, attempts) = queue.scheduler.borrow().values(hand.job.get()).unwrap_or_default();
    l.push_values(1);
    l.raw_get(l.top(), held.backoff);
    l.push_count(attempts);
    Ok(2)
}

/// `wants_trace(q, hand)` → whether anybody will see the traceback of the attempt in hand, which has
/// raised
pub fn wants_trace(l: State) -> Outcome {
    let (queue, hand) = pumped(&l)?;
    let scheduler = queue.scheduler.borrow();
    let job = hand.job.get();
    let gives_up = || {
        let backoff = scheduler.values(job).unwrap_or_default().0.backoff;
        backoff != 0 || !scheduler.may_retry(job)
    };
    let on_end = queue.on_error.get() != 0 || scheduler.keeps_failed();
    l.push_bool(queue.on_retry.get() != 0 || on_end && gives_up());
    drop(scheduler);
    Ok(1)
}

/// `retry(q, hand, ms)` files a retry, after `ms` or the job's own backoff → false where there is
/// none, as in a queue that was stopped; else the delay and, where the queue has an `on_retry`, that
/// and what [`tell`] tells
pub fn retry(l: State) -> Outcome {
    let (queue, hand) = pumped(&l)?;
    let given = l.to_number(3).and_then(Span::from_ms);
    let job = hand.job.get();
    let mut facts = None;
    if queue.on_retry.get() != 0 {
        let told = queue.scheduler.borrow().facts(job);
        let Ok(told) = told else { return Err(out_of_memory(l)) };
        facts = told;
    }
    let filed = queue.scheduler.borrow_mut().retry(job, given, Moment::now());
    let Some(delay) = filed else {
        drop(facts);
        l.push_bool(false);
        return Ok(1);
    };
    hand.job.set(NONE);
    let told = tell(l, queue, queue.on_retry.get(), facts, [None, None])?;
    // Below what was told lie the queue's values, which are of no more use.
    let below = l.top() - told;
    l.push_number(delay.as_ms());
    if told > 0 {
        l.replace(below);
    }
    Ok(told + 1)
}

/// `leave(q, hand, message, error, traceback)` takes a failed or an expired job out, and keeps it
/// where the queue keeps failed ones and there is a message → `on_error` and what [`tell`] tells;
/// nothing where there is none in hand, or no `on_error`
pub fn leave(l: State) -> Outcome {
    const MESSAGE: c_int = 3;
    const NOTES: c_int = 6;
    let (queue, hand) = pumped(&l)?;
    let job = hand.job.get();
    let mut kept = None;
    if queue.scheduler.borrow().keeps_failed() && !l.is_nil_or_none(MESSAGE) {
        l.set_top(NOTES - 1);
        failed::push_notes(l, MESSAGE);
        l.push_values(1);
        let (held, is_copy) = {
            let scheduler = queue.scheduler.borrow();
            (scheduler.values(job).unwrap_or_default().0, scheduler.keeps_copy(job))
        };
        kept = Some(failed::keep(l, queue, (l.top(), NOTES), held, is_copy)?);
    }
    hand.job.set(NONE);
    let mut scheduler = queue.scheduler.borrow_mut();
    let facts = if queue.on_error.get() == 0 { Ok(None) } else { scheduler.facts(job) };
    let freed = scheduler.leave(job, kept, Moment::now());
    drop(scheduler);
    let Ok(facts) = facts else { return Err(out_of_memory(l)) };
    tell(l, queue, queue.on_error.get(), facts, freed)
}

/// `wait(q)` sleeps until a job is due, but no longer than a slice, or parks where the pump is in a
/// concurrent job → true; false where there is nothing to wait for; nothing where no job is ever due
pub fn wait(l: State) -> Outcome {
    let queue = RUN.object::<Queue>(&l)?;
    let due = {
        let mut scheduler = queue.scheduler.borrow_mut();
        if scheduler.is_over() { None } else { scheduler.next_due(Moment::now()) }
    };
    match due {
        None => l.push_bool(false),
        Some(Moment::NEVER) => return Ok(0),
        Some(due) => {
            if let Some(post) = crew::current(l) {
                let waiter = post.sit(l)?;
                queue.parked_pumps.borrow_mut().push(waiter.clone());
                let wait = Wait { waiter, places: Places::Nowhere, deadline: due };
                post.crew.borrow_mut().park(post.number, wait);
                return Ok(PARK);
            }
            l.push_nothing();
            wait::slice(l, l.top(), due)?;
            l.push_bool(true);
        }
    }
    Ok(1)
}

/// What a parked `wait` does when it is resumed.
pub fn wait_resumed(l: State) -> Outcome {
    let Resumed::Ended(wait, _) = crew::resumed(l)? else { return Ok(PARK) };
    if let Some(queue) = l.object::<Queue>(1) {
        queue.parked_pumps.borrow_mut().retain(|parked| *parked != wait.waiter);
    }
    drop(wait);
    l.push_bool(true);
    Ok(1)
}
