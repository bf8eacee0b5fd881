//! The failed jobs that a queue keeps: `failed` and `retry`.

use std::ffi::c_int;
use std::mem;

use super::args::{Callee, out_of_memory};
use super::ffi::{Fail, Outcome, State};
use super::listing::{self, NOTES};
use super::push::refuse;
use super::queue::{Held, Queue};
use crate::core::clock::Moment;

const FAILED: Callee = Callee::method("failed");
const RETRY: Callee = Callee::method("retry");

/// `q:failed()`
pub fn failed(l: State) -> Outcome {
    FAILED.object::<Queue>(&l)?;
    listing::push(
        l,
        |scheduler| scheduler.failed(),
        |view| {
            l.push_count(view.retries);
            l.set_field(c"retries");
            l.push_bool(false);
            l.set_field(c"expired");
            for (name, key) in
                [("message", c"message"), ("error", c"error"), ("traceback", c"traceback")]
            {
                l.raw_field(NOTES, name);
                l.set_field(key);
            }
        },
    )
}

/// `q:retry(id)`
pub fn retry(l: State) -> Outcome {
    let queue = RETRY.object::<Queue>(&l)?;
    RETRY.argument(2).string(l)?;
    l.set_top(2);
    let id = l.bytes_at(2).unwrap_or_default();
    let mut scheduler = queue.scheduler.borrow_mut();
    let notes = match scheduler.revive(id, Moment::now()) {
        Ok(None) => {
            drop(scheduler);
            l.push_nil();
            l.push_str("no such job");
            return Ok(2);
        }
        Err(Err(_)) => {
            drop(scheduler);
            return Err(out_of_memory(l));
        }
        Err(Ok(refusal)) => {
            scheduler.count_refused();
            drop(scheduler);
            return refuse(l, refusal);
        }
        Ok(Some(held)) => mem::take(&mut held.notes),
    };
    drop(scheduler);
    l.push_values(1);
    queue.values.free(l, 3, notes);
    l.set_top(2);
    queue.nudge();
    Ok(1)
}

/// Pushes a table of what is told of a failed job: message, error and traceback, which lie one after
/// the other from `first` on.
pub fn push_notes(l: State, first: c_int) {
    l.new_table(0, 3);
    for (place, key) in (first..).zip([c"message", c"error", c"traceback"]) {
        l.push_value(place);
        l.set_field(key);
    }
}

/// Stores such a table, which is at `notes`, and gives what a failed job is to hold where it is
/// kept: what it held and that, or copies for `is_copy`. `values` is the place of the queue's values.
///
/// # Errors
/// `not enough memory`.
pub fn keep(
    l: State,
    queue: &Queue,
    (values, notes): (c_int, c_int),
    held: Held,
    is_copy: bool,
) -> Result<Held, Fail> {
    let notes = queue.values.store(l, values, notes)?;
    if !is_copy {
        return Ok(Held { notes, ..held });
    }
    let mut copies = [held.function, held.args, held.payload, held.backoff];
    for slot in copies.iter_mut().filter(|slot| **slot != 0) {
        l.raw_get(values, *slot);
        *slot = queue.values.store(l, values, l.top())?;
        l.pop(1);
    }
    let [function, args, payload, backoff] = copies;
    Ok(Held { function, args, payload, backoff, notes })
}
