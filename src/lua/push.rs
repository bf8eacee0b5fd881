//! `q:push` and `q:every`: a function and its options become a job.

use std::ffi::c_int;

use super::args::{Callee, out_of_memory};
use super::ffi::{Fail, Outcome, State};
use super::queue::{Held, Queue};
use crate::core::clock::{Moment, Span};
use crate::core::job::{boxed, made_text};
use crate::core::scheduler::{Name, Plan, Refusal};

const PUSH: Callee = Callee::method("push");
const EVERY: Callee = Callee::method("every");

/// The places of the arguments, and of an option while it is looked at.
const FUNCTION: c_int = 2;
const OPTIONS: c_int = 3;
const VALUE: c_int = 5;

/// The options that are Lua values, in the order in which `push` fetches them after the others.
#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "which are there")]
struct Given {
    args: bool,
    payload: bool,
    backoff: bool,
    id: bool,
}

/// `q:push(fn, opts)`
pub fn push(l: State) -> Outcome {
    let queue = PUSH.object::<Queue>(&l)?;
    PUSH.argument(FUNCTION).callable(l)?;
    if l.top() != OPTIONS {
        l.set_top(OPTIONS);
    }
    file(l, PUSH, queue, None)
}

/// `q:every(ms, fn, opts)`
pub fn every(l: State) -> Outcome {
    let queue = EVERY.object::<Queue>(&l)?;
    let interval = EVERY.argument(2).interval(l)?;
    EVERY.argument(3).callable(l)?;
    l.set_top(4);
    if !l.is_nil_or_none(4) {
        EVERY.argument(4).table(l)?;
    }
    // From here on as for `push`.
    l.remove(2);
    file(l, EVERY, queue, Some(interval))
}

/// Makes a job of the function and the options at their places.
#[inline]
fn file(l: State, callee: Callee, queue: &Queue, every: Option<Span>) -> Outcome {
    let mut plan = Plan {
        priority: 0,
        // The first beat of a series is due after an interval, unless an option says otherwise.
        delay: every.unwrap_or(Span::ZERO),
        retries: 0,
        backoff: Span::ZERO,
        patience: Span::FOREVER,
        name: None,
        is_unique: false,
        every,
        values: Held::default(),
    };
    let given = if l.is_nil_or_none(OPTIONS) {
        Given::default()
    } else {
        read_options(l, callee, &mut plan)?
    };
    // The values that were given lie between the options and the id.
    for (is_given, key) in
        [(given.args, "args"), (given.payload, "payload"), (given.backoff, "backoff_ms")]
    {
        if is_given {
            l.raw_field(OPTIONS, key);
        }
    }
    push_id(l, queue, given.id);

    // From here to the end nothing runs the collector, so no finalizer can come in between.
    let id = l.top();
    let mut scheduler = queue.scheduler.borrow_mut();
    let unique = if plan.is_unique { l.bytes_at(id) } else { None };
    if let Some(refusal) = scheduler.refusal(unique, every.is_some()) {
        scheduler.count_refused();
        drop(scheduler);
        return refuse(l, refusal);
    }
    let room = scheduler.reserve(&plan, given.id);
    drop(scheduler);
    if room.is_err() {
        return Err(out_of_memory(l));
    }
    l.push_values(1);
    let table = id + 1;
    plan.values.function = queue.values.store(l, table, FUNCTION)?;
    let mut place = OPTIONS;
    for (is_given, slot) in [
        (given.args, &mut plan.values.args),
        (given.payload, &mut plan.values.payload),
        (given.backoff, &mut plan.values.backoff),
    ] {
        if is_given {
            place += 1;
            *slot = queue.values.store(l, table, place)?;
        }
    }
    if given.id {
        let Ok(name) = boxed(l.bytes_at(id).unwrap_or_default()) else {
            queue.free(l, table, plan.values);
            return Err(out_of_memory(l));
        };
        plan.name = Some(name);
    }
    let now = if plan.is_timeless() { queue.stamp() } else { Moment::now() };
    queue.scheduler.borrow_mut().push(&mut plan, now);
    queue.nudge();
    l.pop(1);
    Ok(1)
}

/// A push that was refused returns nil and the reason.
pub fn refuse(l: State, refusal: Refusal) -> Outcome {
    l.push_nil();
    l.push_str(match refusal {
        Refusal::Stopped => "queue is stopped",
        Refusal::Duplicate => "duplicate id",
        Refusal::Full => "queue is full",
    });
    Ok(2)
}

/// Reads the options at `OPTIONS` into the plan, and tells which values are among them.
fn read_options(l: State, callee: Callee, plan: &mut Plan<Held>) -> Result<Given, Fail> {
    let mut given = Given::default();
    callee.each_option(l, OPTIONS, |key| {
        match key {
            b"priority" => plan.priority = callee.option("priority", VALUE).integer(l)?,
            b"delay_ms" => plan.delay = callee.option("delay_ms", VALUE).duration(l)?,
            b"retries" => plan.retries = callee.option("retries", VALUE).count(l)?,
            b"timeout_ms" => {
                let patience = callee.option("timeout_ms", VALUE).duration(l)?;
                plan.patience = if patience == Span::ZERO { Span::FOREVER } else { patience };
            }
            b"backoff_ms" if l.to_number(VALUE).is_none() && l.is_callable(VALUE) => {
                given.backoff = true;
            }
            b"backoff_ms" => plan.backoff = callee.option("backoff_ms", VALUE).duration(l)?,
            b"args" => {
                callee.option("args", VALUE).table(l)?;
                l.raw_field(VALUE, "n");
                callee.option("args.n", VALUE + 1).optional_count(l)?;
                l.pop(1);
                given.args = true;
            }
            b"unique" => plan.is_unique = callee.option("unique", VALUE).boolean(l)?,
            b"payload" => given.payload = true,
            b"id" => {
                callee.option("id", VALUE).string(l)?;
                given.id = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(given)
}

/// Pushes the id that the job will have.
fn push_id(l: State, queue: &Queue, is_given: bool) {
    if is_given {
        return l.raw_field(OPTIONS, "id");
    }
    loop {
        let number = queue.scheduler.borrow().next_number();
        made_text(number, |text| l.push_bytes(text));
        // Making the string may have run a finalizer that pushed a job itself.
        if queue.scheduler.borrow().next_number() == number {
            return;
        }
        l.pop(1);
    }
}

/// Pushes an id.
pub fn push_name(l: State, name: &Name) {
    name.with_text(|text| l.push_bytes(text));
}
