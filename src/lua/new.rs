//! `queue.new`: options become a queue.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;

use super::args::{Callee, check_memory, out_of_memory};
use super::crew::Crew;
use super::ffi::{Fail, LUA_TNIL, Outcome, State};
use super::flight::Flight;
use super::poll::Polled;
use super::queue::Queue;
use super::slots::Values;
use super::wait;
use crate::core::clock::Span;
use crate::core::scheduler::{Scheduler, Setup};

const NEW: Callee = Callee::function("new");

/// Memory of a queue with a few jobs, which the collector does not see. It is told, so that queues
/// which a script drops are collected before there are too many.
const KILOBYTES: c_int = 2;

/// The places on the stack: the callbacks, and an option while it is looked at.
const ON_ERROR: c_int = 2;
const ON_RETRY: c_int = 3;
const ON_SUCCESS: c_int = 4;
const VALUE: c_int = 6;
/// A field of an option that is a table.
const FIELD: c_int = 8;

/// `queue.new{ capacity = …, concurrency = …, on_error = …, … }`
pub fn new(l: State) -> Outcome {
    l.set_top(1);
    l.set_top(ON_SUCCESS);
    let (mut setup, mut concurrency) = (Setup::default(), 1);
    let read = |key: &[u8]| {
        match key {
            b"capacity" => setup.capacity = size(NEW.option("capacity", VALUE).count(l)?),
            b"keep_failed" => setup.keep_failed = size(NEW.option("keep_failed", VALUE).count(l)?),
            b"concurrency" => concurrency = NEW.option("concurrency", VALUE).concurrency(l)?,
            b"limit" => setup.limit = Some(limit(l)?),
            b"on_error" => callback(l, "on_error", ON_ERROR)?,
            b"on_retry" => callback(l, "on_retry", ON_RETRY)?,
            b"on_success" => callback(l, "on_success", ON_SUCCESS)?,
            _ => return Ok(false),
        }
        Ok(true)
    };
    if !l.is_nil_or_none(1) {
        NEW.each_option(l, 1, read)?;
    }
    make(l, setup, concurrency)?;
    let place = l.top();
    let Some(queue) = l.object::<Queue>(place) else { return Err(out_of_memory(l)) };
    l.push_values(place);
    for (callback, slot) in
        [(ON_ERROR, &queue.on_error), (ON_RETRY, &queue.on_retry), (ON_SUCCESS, &queue.on_success)]
    {
        if l.kind(callback) != LUA_TNIL {
            slot.set(queue.values.store(l, place + 1, callback)?);
        }
    }
    l.pop(1);
    Ok(1)
}

/// A bound on a number of things; there are never so many that it does not fit.
fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Takes the option as a callback to where it belongs.
fn callback(l: State, name: &'static str, to: c_int) -> Result<(), Fail> {
    NEW.option(name, VALUE).callable(l)?;
    l.push_value(VALUE);
    l.replace(to);
    Ok(())
}

/// Reads `limit = { jobs = n, per_ms = t }`.
fn limit(l: State) -> Result<(usize, Span), Fail> {
    NEW.option("limit", VALUE).table(l)?;
    NEW.each_field(l, "limit.", VALUE, |key| Ok(matches!(key, b"jobs" | b"per_ms")))?;
    l.raw_field(VALUE, "jobs");
    let jobs = NEW.option("limit.jobs", FIELD - 1).positive(l)?;
    l.raw_field(VALUE, "per_ms");
    let window = NEW.option("limit.per_ms", FIELD).window(l)?;
    l.pop(2);
    Ok((jobs, window))
}

/// Pushes a queue without callbacks.
fn make(l: State, setup: Setup, concurrency: usize) -> Result<(), Fail> {
    check_memory(l)?;
    // Stock 5.1 would run finalizers within finalizers, which no step of its own does.
    if !cfg!(feature = "lua51") {
        l.account(KILOBYTES);
    }
    let mut out_of_room = false;
    let parker = wait::parker(l)?;
    let ticks = wait::ticks(l)?;
    l.try_new_object(|| {
        let flight = match concurrency {
            1 => Ok(None),
            _ => Crew::new(&parker).map(|crew| Some(Flight::new(crew, concurrency))),
        };
        let (Ok(flight), Ok(scheduler)) = (flight, Scheduler::new(setup)) else {
            out_of_room = true;
            return None;
        };
        Some(Queue {
            scheduler: RefCell::new(scheduler),
            values: Values::default(),
            on_error: Cell::new(0),
            on_retry: Cell::new(0),
            on_success: Cell::new(0),
            flight,
            left: Rc::default(),
            parked_pumps: RefCell::default(),
            ticks,
            polled: Polled::default(),
        })
    });
    drop(parker);
    if out_of_room { Err(out_of_memory(l)) } else { Ok(()) }
}
