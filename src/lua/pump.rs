//! The steps of the pump in `front.lua`: which job comes next, and what becomes of one that has
//! run. The pump itself is Lua, since only Lua can call a job in such a way that what it throws and
//! yields passes through untouched.
//!
//! These functions are not exported. The pump has checked its queue, and passes the slot of a job
//! that it started itself.

use std::ffi::c_int;

use super::args::Callee;
use super::ffi::{Fail, Outcome, State};
use super::queue::{Queue, push_name};
use super::wait;
use crate::core::clock::{Moment, Span};
use crate::core::scheduler::{Facts, Next, Verdict};

const RUN: Callee = Callee::method("run").wrapped();
const POLL: Callee = Callee::method("poll").wrapped();

/// The queue at 1, which the pump has checked.
fn queue(l: &State) -> Result<&Queue, Fail> {
    RUN.object(l)
}

/// `check_run(q)` → whether it has an `on_error`
pub fn check_run(l: State) -> Outcome {
    let queue = RUN.object::<Queue>(&l)?;
    l.push_bool(queue.on_error.get() != 0);
    Ok(1)
}

/// `check_poll(q, max)` → whether it has an `on_error`, attempts at most, sheds at most
pub fn check_poll(l: State) -> Outcome {
    let queue = POLL.object::<Queue>(&l)?;
    let max = POLL.argument(2).optional_count(l)?;
    let due = queue.scheduler.borrow_mut().due_jobs(Moment::now()) as u64;
    l.push_bool(queue.on_error.get() != 0);
    l.push_count(if max == 0 { due } else { max });
    l.push_count(due);
    Ok(3)
}

/// `start(q)` → function, job, args of the attempt that begins; or nil, job, `"expired"`; or nothing
pub fn start(l: State) -> Outcome {
    let queue = queue(&l)?;
    l.push_values(1);
    begin(l, queue, l.top(), Moment::now())
}

/// `step(q, job, more, ok, error)` ends the attempt of `job`, and begins the next like `start`,
/// where `more` is true. Where the attempt raised it begins none but returns nil, job, and
/// `"raised"`, or `"failed"` where no retry is left, and the error.
pub fn step(l: State) -> Outcome {
    let queue = queue(&l)?;
    let job = l.to_slot(2);
    let now = Moment::now();
    if !l.to_bool(4) {
        let verdict = queue.scheduler.borrow_mut().raise(job, now);
        l.push_nil();
        l.push_value(2);
        l.push_str(if matches!(verdict, Some(Verdict::Retry)) { "raised" } else { "failed" });
        l.push_value(5);
        return Ok(4);
    }
    let more = l.to_bool(3);
    let held = queue.scheduler.borrow_mut().succeed(job, now).unwrap_or_default();
    l.push_values(1);
    let table = l.top();
    queue.free(l, table, held);
    // The first place where an error can be raised: the job that ended is counted, no other has
    // begun.
    if queue.values.tidy(l, 1) {
        return if more { start(l) } else { Ok(0) };
    }
    if more { begin(l, queue, table, now) } else { Ok(0) }
}

/// Begins the next attempt; `table` is the place of the queue's values.
fn begin(l: State, queue: &Queue, table: c_int, now: Moment) -> Outcome {
    let next = queue.scheduler.borrow_mut().next(now);
    match next {
        Next::Start(job, held) => {
            l.raw_get(table, held.function);
            l.push_count(job.into());
            if held.args == 0 {
                return Ok(2);
            }
            l.raw_get(table, held.args);
            Ok(3)
        }
        Next::Shed(job) => {
            l.push_nil();
            l.push_count(job.into());
            l.push_str("expired");
            Ok(3)
        }
        Next::Nothing => Ok(0),
    }
}

/// `backoff(q, job)` → the `backoff_ms` of the job where it is a function, and its attempts
pub fn backoff(l: State) -> Outcome {
    let queue = queue(&l)?;
    let facts = queue.scheduler.borrow().facts(l.to_slot(2));
    let (function, attempts) = facts.map_or((0, 0), |facts| (facts.values.backoff, facts.attempts));
    l.push_values(1);
    l.raw_get(l.top(), function);
    l.push_count(attempts);
    Ok(2)
}

/// `retry(q, job, ms)` files a retry, after `ms` or the job's own backoff → whether it did. A queue
/// that was stopped files none.
pub fn retry(l: State) -> Outcome {
    let queue = queue(&l)?;
    let job = l.to_slot(2);
    let given = l.to_number(3).and_then(Span::from_ms);
    let filed = queue.scheduler.borrow_mut().retry(job, given, Moment::now());
    l.push_bool(filed);
    Ok(1)
}

/// `leave(q, job)` takes a failed or an expired job out → `on_error`, id, priority, attempts,
/// retries, payload
pub fn leave(l: State) -> Outcome {
    let queue = queue(&l)?;
    let job = l.to_slot(2);
    let facts = queue.scheduler.borrow_mut().leave(job);
    let Some(facts) = facts else { return Ok(0) };
    l.push_values(1);
    let table = l.top();
    l.raw_get(table, queue.on_error.get());
    l.raw_get(table, facts.values.payload);
    queue.free(l, table, facts.values);
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

/// `wait(q)` sleeps until a job is due, but no longer than a slice → true; false where there is
/// nothing to wait for; nothing where no job is ever due
pub fn wait(l: State) -> Outcome {
    let queue = queue(&l)?;
    let due = {
        let mut scheduler = queue.scheduler.borrow_mut();
        if scheduler.is_stopped() { None } else { scheduler.next_due(Moment::now()) }
    };
    match due {
        None => l.push_bool(false),
        Some(Moment::NEVER) => return Ok(0),
        Some(due) => {
            l.push_nothing();
            wait::slice(l, l.top(), due)?;
            l.push_bool(true);
        }
    }
    Ok(1)
}
