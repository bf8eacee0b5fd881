//! What a script asks of the jobs of an id, or of all of them: `cancel`, `status`, `set_priority`
//! and `jobs`.

use super::args::{Callee, out_of_memory};
use super::ffi::{Outcome, State};
use super::listing;
use super::queue::Queue;
use crate::core::clock::Moment;
use crate::core::scheduler::{Cancelled, Cursor, Status};

const CANCEL: Callee = Callee::method("cancel");
const STATUS: Callee = Callee::method("status");
const SET_PRIORITY: Callee = Callee::method("set_priority");
const JOBS: Callee = Callee::method("jobs");

const fn name_of(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Ready => "ready",
        Status::Delayed => "delayed",
    }
}

/// `q:cancel(id)`
pub fn cancel(l: State) -> Outcome {
    let queue = CANCEL.object::<Queue>(&l)?;
    CANCEL.argument(2).string(l)?;
    l.push_values(1);
    let table = l.top();
    let (mut count, mut cursor) = (0, Cursor::default());
    // Freeing values runs nothing that could use the queue.
    let id = l.bytes_at(2).unwrap_or_default();
    loop {
        let next = queue.scheduler.borrow_mut().cancel_next(id, &mut cursor);
        match next {
            None => break,
            Some(Cancelled::Job(held)) => queue.free(l, table, held),
            Some(Cancelled::Series) => {}
        }
        count += 1;
    }
    l.pop(1);
    queue.nudge();
    queue.values.tidy(l, 1);
    l.push_count(count);
    Ok(1)
}

/// `q:status(id)`
pub fn status(l: State) -> Outcome {
    let queue = STATUS.object::<Queue>(&l)?;
    STATUS.argument(2).string(l)?;
    let id = l.bytes_at(2).unwrap_or_default();
    let status = queue.scheduler.borrow_mut().status(id, Moment::now());
    match status {
        Some(status) => l.push_str(name_of(status)),
        None => l.push_nil(),
    }
    Ok(1)
}

/// `q:set_priority(id, n)`
pub fn set_priority(l: State) -> Outcome {
    let queue = SET_PRIORITY.object::<Queue>(&l)?;
    SET_PRIORITY.argument(2).string(l)?;
    let priority = SET_PRIORITY.argument(3).integer(l)?;
    let id = l.bytes_at(2).unwrap_or_default();
    let moved = queue.scheduler.borrow_mut().set_priority(id, priority);
    let Ok(moved) = moved else { return Err(out_of_memory(l)) };
    l.push_count(moved as u64);
    Ok(1)
}

/// `q:jobs()`
pub fn jobs(l: State) -> Outcome {
    JOBS.object::<Queue>(&l)?;
    let now = Moment::now();
    listing::push(
        l,
        |scheduler| scheduler.sightings(now),
        |view| {
            let Some(status) = view.status else { return };
            l.push_str(name_of(status));
            l.set_field(c"status");
            if status == Status::Running {
                l.push_number(now.since(view.since).as_ms());
                l.set_field(c"running_ms");
            } else {
                l.push_number(view.since.since(now).as_ms());
                l.set_field(c"due_ms");
            }
        },
    )
}
