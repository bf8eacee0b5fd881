//! `queue.new` and the methods of queues, except for those that call a job: they are in
//! `front.lua`, and stand on the steps in `pump.rs`.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int};
use std::rc::Rc;

use super::args::{Callee, Text, check_memory, out_of_memory};
use super::crew::Crew;
use super::ffi::{Key, Object, Outcome, State};
use super::poll::Polled;
use super::slots::Values;
use super::turns::{self, Turn};
use super::wait;
use crate::core::clock::{Moment, Span};
use crate::core::scheduler::Scheduler;
use crate::core::waiter::{Outcome as Ending, Waiter};
use crate::core::wire::Item;

const NEW: Callee = Callee::function("new");
const STOP: Callee = Callee::method("stop");
const IS_STOPPED: Callee = Callee::method("is_stopped");
const SIZE: Callee = Callee::method("size");
const EMPTY: Callee = Callee::method("empty");
const CLEAR: Callee = Callee::method("clear");
const METRICS: Callee = Callee::method("metrics");
const IN_FLIGHT: Callee = Callee::method("in_flight");
const NEXT_DUE: Callee = Callee::method("next_due");
const TOSTRING: Callee = Callee::method("tostring");

/// Memory of a queue with a few jobs, which the collector does not see. It is told, so that queues
/// which a script drops are collected before there are too many.
const KILOBYTES: c_int = 2;

/// How long a timer's thread may take to get going.
const SOON: Span = Span::from_nanos(500_000);

/// The slots of what a job holds. 0: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    pub function: u32,
    pub args: u32,
    pub payload: u32,
    /// A `backoff_ms` that is a function.
    pub backoff: u32,
}

/// A job queue, as a script holds it.
pub struct Queue {
    pub scheduler: RefCell<Scheduler<Held>>,
    pub values: Values,
    /// The slot of the callback; 0: none.
    pub on_error: Cell<u32>,
    /// The jobs in flight, where they wait side by side.
    pub flight: Option<Flight>,
    /// The waits of pumps that are parked as jobs of other queues: something may change for them.
    pub parked_pumps: RefCell<Vec<Waiter<Item>>>,
    pub polled: Polled,
}

/// How a queue with a `concurrency` above 1 runs.
pub struct Flight {
    pub crew: Rc<RefCell<Crew>>,
    /// Jobs in flight at most.
    pub concurrency: usize,
    pub turn: Rc<Cell<Turn>>,
}

impl Object for Queue {
    const KEY: &'static Key = {
        static KEY: Key = Key(4);
        &KEY
    };
    const NAME: &'static str = "queue";
}

impl Queue {
    /// Frees what a job held; `table` is the place of the queue's values.
    pub fn free(&self, l: State, table: c_int, held: Held) {
        for slot in [held.function, held.args, held.payload, held.backoff] {
            self.values.free(l, table, slot);
        }
    }

    /// When a job may start: one that is due, while the queue takes any and has room in flight.
    pub fn next_start(&self, now: Moment) -> Moment {
        let mut scheduler = self.scheduler.borrow_mut();
        let is_full = self
            .flight
            .as_ref()
            .is_some_and(|flight| flight.crew.borrow().busy() >= flight.concurrency);
        if is_full || scheduler.is_stopped() {
            return Moment::NEVER;
        }
        scheduler.next_due(now).unwrap_or(Moment::NEVER)
    }

    /// Lets parked pumps look again.
    #[inline]
    pub fn nudge(&self) {
        if !self.parked_pumps.borrow().is_empty() {
            self.nudge_all();
        }
    }

    fn nudge_all(&self) {
        let mut parked = self.parked_pumps.borrow_mut();
        for waiter in parked.drain(..) {
            // One that goes on already need not be told.
            let _ = waiter.serve(0, Ending::Woken);
        }
    }

    /// Drops all pending jobs and returns how many there were. The queue is at 1.
    fn clear(&self, l: State) -> u64 {
        l.push_values(1);
        let table = l.top();
        let (mut dropped, mut cursor) = (0, 0);
        loop {
            let next = self.scheduler.borrow_mut().clear_next(&mut cursor);
            let Some(held) = next else { break };
            self.free(l, table, held);
            dropped += 1;
        }
        l.pop(1);
        self.nudge();
        self.values.tidy(l, 1);
        dropped
    }
}

/// `queue.new{ capacity = …, concurrency = …, on_error = … }`
pub fn new(l: State) -> Outcome {
    l.set_top(1);
    l.push_nil();
    let on_error = 2;
    let (mut capacity, mut concurrency) = (0, 1);
    let at = 4;
    let read = |key: &[u8]| {
        match key {
            b"capacity" => capacity = NEW.option("capacity", at).count(l)?,
            b"concurrency" => concurrency = NEW.option("concurrency", at).concurrency(l)?,
            b"on_error" => {
                NEW.option("on_error", at).callable(l)?;
                l.push_value(at);
                l.replace(on_error);
            }
            _ => return Ok(false),
        }
        Ok(true)
    };
    if !l.is_nil_or_none(1) {
        NEW.each_option(l, 1, read)?;
    }
    let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    check_memory(l)?;
    // Stock 5.1 would run finalizers within finalizers, which no step of its own does.
    if !cfg!(feature = "lua51") {
        l.account(KILOBYTES);
    }
    let mut out_of_room = false;
    let parker = wait::parker(l)?;
    l.try_new_object(|| {
        let flight = if concurrency == 1 {
            None
        } else if let Ok(crew) = Crew::new(&parker) {
            let crew = Rc::new(RefCell::new(crew));
            Some(Flight { crew, concurrency, turn: Rc::default() })
        } else {
            out_of_room = true;
            return None;
        };
        Some(Queue {
            scheduler: RefCell::new(Scheduler::new(capacity)),
            values: Values::default(),
            on_error: Cell::new(0),
            flight,
            parked_pumps: RefCell::default(),
            polled: Polled::default(),
        })
    });
    drop(parker);
    if out_of_room {
        return Err(out_of_memory(l));
    }
    if !l.is_nil_or_none(on_error)
        && let Some(queue) = l.object::<Queue>(3)
    {
        l.push_values(3);
        queue.on_error.set(queue.values.store(l, 4, on_error)?);
        l.pop(1);
    }
    Ok(1)
}

// --- ending ------------------------------------------------------------------------------------

/// `q:stop()`
pub fn stop(l: State) -> Outcome {
    let queue = STOP.object::<Queue>(&l)?;
    queue.scheduler.borrow_mut().stop();
    queue.nudge();
    Ok(0)
}

/// `q:clear()`
pub fn clear(l: State) -> Outcome {
    let dropped = CLEAR.object::<Queue>(&l)?.clear(l);
    l.push_count(dropped);
    Ok(1)
}

/// `close(q)` stops and clears → the coroutines of the jobs that waited, which `front.lua` closes
pub fn close_scope(l: State) -> Outcome {
    let Some(queue) = l.object::<Queue>(1) else { return Ok(0) };
    queue.scheduler.borrow_mut().stop();
    queue.clear(l);
    turns::cancel_parked(l)
}

/// Nobody holds the queue any more.
pub fn finalize(l: State) -> Outcome {
    if let Some(flight) = l.object::<Queue>(1).and_then(|queue| queue.flight.as_ref()) {
        flight.crew.borrow_mut().close();
    }
    l.finalize::<Queue>(1);
    Ok(0)
}

// --- looking -----------------------------------------------------------------------------------

/// `q:is_stopped()`
pub fn is_stopped(l: State) -> Outcome {
    l.push_bool(IS_STOPPED.object::<Queue>(&l)?.scheduler.borrow().is_stopped());
    Ok(1)
}

/// `q:size()`, `#q`
pub fn size(l: State) -> Outcome {
    l.push_count(SIZE.object::<Queue>(&l)?.scheduler.borrow().pending() as u64);
    Ok(1)
}

/// `q:empty()`
pub fn empty(l: State) -> Outcome {
    l.push_bool(EMPTY.object::<Queue>(&l)?.scheduler.borrow().pending() == 0);
    Ok(1)
}

/// `q:in_flight()`
pub fn in_flight(l: State) -> Outcome {
    l.push_count(IN_FLIGHT.object::<Queue>(&l)?.scheduler.borrow().in_flight() as u64);
    Ok(1)
}

/// `q:next_due()`
pub fn next_due(l: State) -> Outcome {
    let queue = NEXT_DUE.object::<Queue>(&l)?;
    let now = Moment::now();
    let in_flight = queue.scheduler.borrow().in_flight();
    let mut due = queue.next_start(now);
    if let Some(flight) = &queue.flight {
        let mut crew = flight.crew.borrow_mut();
        let change = crew.next_change(now);
        // A timer whose time has come, but whose thread has not, takes a moment more.
        let is_late = change <= now && !crew.has_ready() && crew.next_deadline() > now;
        due = due.min(if is_late { now.after(SOON) } else { change });
    }
    let is_over = {
        let scheduler = queue.scheduler.borrow();
        scheduler.is_stopped() || scheduler.pending() == 0
    };
    if is_over && in_flight == 0 {
        l.push_nil();
    } else {
        l.push_number(due.since(now).as_ms());
    }
    Ok(1)
}

/// `q:metrics()`
pub fn metrics(l: State) -> Outcome {
    let queue = METRICS.object::<Queue>(&l)?;
    // A copy, as making the table can run a finalizer that uses the queue.
    let (metrics, pending, in_flight) = {
        let scheduler = queue.scheduler.borrow();
        (*scheduler.metrics(), scheduler.pending() as u64, scheduler.in_flight() as u64)
    };
    let counts: [(&CStr, u64); 10] = [
        (c"enqueued", metrics.enqueued),
        (c"processed", metrics.processed),
        (c"succeeded", metrics.succeeded),
        (c"failed", metrics.failed),
        (c"retried", metrics.retried),
        (c"expired", metrics.expired),
        (c"dropped", metrics.dropped),
        (c"cancelled", metrics.cancelled),
        (c"pending", pending),
        (c"in_flight", in_flight),
    ];
    let times: [(&CStr, f64); 4] = [
        (c"avg_wait_ms", metrics.wait.average_ms()),
        (c"max_wait_ms", metrics.wait.max_ms()),
        (c"avg_exec_ms", metrics.exec.average_ms()),
        (c"max_exec_ms", metrics.exec.max_ms()),
    ];
    l.new_table(0, 14);
    for (name, count) in counts {
        l.push_count(count);
        l.set_field(name);
    }
    for (name, time) in times {
        l.push_number(time);
        l.set_field(name);
    }
    Ok(1)
}

/// `tostring(q)`
pub fn tostring(l: State) -> Outcome {
    let queue = TOSTRING.object::<Queue>(&l)?;
    let text = {
        let scheduler = queue.scheduler.borrow();
        let stopped = if scheduler.is_stopped() { ", stopped" } else { "" };
        Text::new(format_args!("queue(pending={}{stopped})", scheduler.pending()))
    };
    l.push_bytes(text.bytes());
    Ok(1)
}
