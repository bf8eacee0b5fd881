//! A queue as a script holds it, and what it says of itself. `queue.new` is in `new.rs`; `run` and
//! `poll` are in `front.lua`, and stand on the steps in `pump.rs`.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;

use super::args::{Callee, Text};
use super::ffi::{self, Key, Object, Outcome, State};
use super::flight::Flight;
use super::poll::Polled;
use super::slots::Values;
use super::turns;
use crate::core::clock::{Moment, Span};
use crate::core::scheduler::Scheduler;
use crate::core::ticks::Ticks;
use crate::core::waiter::{Outcome as Ending, Waiter};
use crate::core::wire::Item;

const PAUSE: Callee = Callee::method("pause");
const RESUME: Callee = Callee::method("resume");
const IS_PAUSED: Callee = Callee::method("is_paused");
const STOP: Callee = Callee::method("stop");
const IS_STOPPED: Callee = Callee::method("is_stopped");
const SIZE: Callee = Callee::method("size");
const EMPTY: Callee = Callee::method("empty");
const CLEAR: Callee = Callee::method("clear");
const IN_FLIGHT: Callee = Callee::method("in_flight");
const NEXT_DUE: Callee = Callee::method("next_due");
const TOSTRING: Callee = Callee::method("tostring");

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
    /// What was noted when it failed, while it is kept.
    pub notes: u32,
}

/// A job queue, as a script holds it.
pub struct Queue {
    pub scheduler: RefCell<Scheduler<Held>>,
    pub values: Values,
    /// The slots of the callbacks; 0: none.
    pub on_error: Cell<u32>,
    pub on_retry: Cell<u32>,
    pub on_success: Cell<u32>,
    /// The jobs in flight, where they wait side by side.
    pub flight: Option<Flight>,
    /// Elsewhere: those of pumps that went without having said what becomes of them.
    pub left: Rc<RefCell<Vec<u32>>>,
    /// The waits of pumps that are parked as jobs of other queues: something may change for them.
    pub parked_pumps: RefCell<Vec<Waiter<Item>>>,
    pub ticks: Rc<RefCell<Ticks>>,
    pub polled: Polled,
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
        self.values.free(l, table, held.function);
        let others = [held.args, held.payload, held.backoff, held.notes];
        if others != [0; 4] {
            for slot in others {
                self.values.free(l, table, slot);
            }
        }
    }

    /// The time for metrics.
    #[inline]
    pub fn stamp(&self) -> Moment {
        self.ticks.borrow_mut().now(ffi::ticks, Moment::now)
    }

    /// The time, read from the clock where it decides anything.
    #[inline]
    pub fn now(&self) -> Moment {
        if self.scheduler.borrow().is_timeless() { self.stamp() } else { Moment::now() }
    }

    /// When a job may start: one that is due, while the queue takes any and has room in flight.
    pub fn next_start(&self, now: Moment) -> Moment {
        let mut scheduler = self.scheduler.borrow_mut();
        let is_full = self.flight.as_ref().is_some_and(Flight::is_full);
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

// --- holding back and ending ------------------------------------------------------------------------------------

/// `q:pause(ms)`
pub fn pause(l: State) -> Outcome {
    let queue = PAUSE.object::<Queue>(&l)?;
    let until = Moment::deadline(PAUSE.limit(l, 2)?);
    queue.scheduler.borrow_mut().pause(until);
    queue.nudge();
    Ok(0)
}

/// `q:resume()`
pub fn resume(l: State) -> Outcome {
    let queue = RESUME.object::<Queue>(&l)?;
    queue.scheduler.borrow_mut().resume();
    queue.nudge();
    Ok(0)
}

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

/// `q:is_paused()`
pub fn is_paused(l: State) -> Outcome {
    let queue = IS_PAUSED.object::<Queue>(&l)?;
    l.push_bool(queue.scheduler.borrow().is_paused(Moment::now()));
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
    let has_left = !queue.left.borrow().is_empty();
    let mut due = if has_left { now } else { queue.next_start(now) };
    if let Some(flight) = &queue.flight {
        let mut crew = flight.crew.borrow_mut();
        let change = crew.next_change(now);
        // A timer whose time has come, but whose thread has not, takes a moment more.
        let is_late = change <= now && !crew.has_ready() && crew.next_deadline() > now;
        due = due.min(if is_late { now.after(SOON) } else { change });
        if flight.has_leftover() {
            due = now;
        }
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
