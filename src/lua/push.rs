//! `q:push`: a function and its options become a job.

use std::ffi::c_int;

use super::args::{Callee, out_of_memory};
use super::ffi::{Fail, Outcome, State};
use super::queue::{Held, Queue};
use crate::core::clock::{Moment, Span};
use crate::core::scheduler::{Name, Plan, Refusal};

const PUSH: Callee = Callee::method("push");

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
    let mut plan = Plan {
        priority: 0,
        delay: Span::ZERO,
        retries: 0,
        backoff: Span::ZERO,
        patience: Span::FOREVER,
        name: None,
        values: Held::default(),
    };
    let given =
        if l.is_nil_or_none(OPTIONS) { Given::default() } else { read_options(l, &mut plan)? };
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
    if let Some(refusal) = scheduler.refusal() {
        scheduler.count_refused();
        drop(scheduler);
        l.push_nil();
        l.push_str(match refusal {
            Refusal::Stopped => "queue is stopped",
            Refusal::Full => "queue is full",
        });
        return Ok(2);
    }
    let room = scheduler.reserve(&plan);
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
    if given.id && !name(l, id, &mut plan) {
        queue.free(l, table, plan.values);
        return Err(out_of_memory(l));
    }
    queue.scheduler.borrow_mut().push(plan, Moment::now());
    queue.nudge();
    l.pop(1);
    Ok(1)
}

/// Reads the options at `OPTIONS` into the plan, and tells which values are among them.
fn read_options(l: State, plan: &mut Plan<Held>) -> Result<Given, Fail> {
    let mut given = Given::default();
    PUSH.each_option(l, OPTIONS, |key| {
        match key {
            b"priority" => plan.priority = PUSH.option("priority", VALUE).integer(l)?,
            b"delay_ms" => plan.delay = PUSH.option("delay_ms", VALUE).duration(l)?,
            b"retries" => plan.retries = PUSH.option("retries", VALUE).count(l)?,
            b"timeout_ms" => {
                let patience = PUSH.option("timeout_ms", VALUE).duration(l)?;
                plan.patience = if patience == Span::ZERO { Span::FOREVER } else { patience };
            }
            b"backoff_ms" if l.to_number(VALUE).is_none() && l.is_callable(VALUE) => {
                given.backoff = true;
            }
            b"backoff_ms" => plan.backoff = PUSH.option("backoff_ms", VALUE).duration(l)?,
            b"args" => {
                PUSH.option("args", VALUE).table(l)?;
                l.raw_field(VALUE, "n");
                PUSH.option("args.n", VALUE + 1).optional_count(l)?;
                l.pop(1);
                given.args = true;
            }
            b"payload" => given.payload = true,
            b"id" => {
                PUSH.option("id", VALUE).string(l)?;
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
        push_number(l, number);
        // Making the string may have run a finalizer that pushed a job itself.
        if queue.scheduler.borrow().next_number() == number {
            return;
        }
        l.pop(1);
    }
}

/// Pushes `job-N`.
fn push_number(l: State, number: u64) {
    const PREFIX: &[u8] = b"job-";
    let mut text = [0; PREFIX.len() + 20];
    let mut start = text.len();
    let mut left = number;
    loop {
        start -= 1;
        text[start] = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    start -= PREFIX.len();
    text[start..start + PREFIX.len()].copy_from_slice(PREFIX);
    l.push_bytes(&text[start..]);
}

/// Copies the id at `id` into the plan. False without memory.
fn name(l: State, id: c_int, plan: &mut Plan<Held>) -> bool {
    let bytes = l.bytes_at(id).unwrap_or_default();
    let mut copy = Vec::new();
    if copy.try_reserve_exact(bytes.len()).is_err() {
        return false;
    }
    copy.extend_from_slice(bytes);
    plan.name = Some(copy.into_boxed_slice());
    true
}

/// Pushes an id.
pub fn push_name(l: State, name: &Name) {
    match name {
        Name::Made(number) => push_number(l, *number),
        Name::Given(bytes) => l.push_bytes(bytes),
    }
}
