//! `q:metrics()`: what a queue counts.

use std::ffi::CStr;

use super::args::Callee;
use super::ffi::{Outcome, State};
use super::queue::{Held, Queue};
use crate::core::metrics::Metrics;
use crate::core::scheduler::Scheduler;

const METRICS: Callee = Callee::method("metrics");

/// `q:metrics()`
pub fn metrics(l: State) -> Outcome {
    let queue = METRICS.object::<Queue>(&l)?;
    // A copy, as making the table can run a finalizer that uses the queue.
    let (counts, times) = {
        let scheduler = queue.scheduler.borrow();
        (counts(&scheduler), times(scheduler.metrics()))
    };
    l.new_table(0, 20);
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

fn counts(scheduler: &Scheduler<Held>) -> [(&'static CStr, u64); 10] {
    let metrics = scheduler.metrics();
    [
        (c"enqueued", metrics.enqueued),
        (c"processed", metrics.processed),
        (c"succeeded", metrics.succeeded),
        (c"failed", metrics.failed),
        (c"retried", metrics.retried),
        (c"expired", metrics.expired),
        (c"dropped", metrics.dropped),
        (c"cancelled", metrics.cancelled),
        (c"pending", scheduler.pending() as u64),
        (c"in_flight", scheduler.in_flight() as u64),
    ]
}

fn times(metrics: &Metrics) -> [(&'static CStr, f64); 10] {
    let (wait, exec) = (metrics.wait.summary(), metrics.exec.summary());
    [
        (c"avg_wait_ms", wait.average_ms),
        (c"max_wait_ms", wait.max_ms),
        (c"p50_wait_ms", wait.p50_ms),
        (c"p95_wait_ms", wait.p95_ms),
        (c"p99_wait_ms", wait.p99_ms),
        (c"avg_exec_ms", exec.average_ms),
        (c"max_exec_ms", exec.max_ms),
        (c"p50_exec_ms", exec.p50_ms),
        (c"p95_exec_ms", exec.p95_ms),
        (c"p99_exec_ms", exec.p99_ms),
    ]
}
