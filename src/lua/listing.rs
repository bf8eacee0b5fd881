//! A list of jobs that becomes an array of tables.
//!
//! Making tables can run a finalizer that uses the queue, so each job is looked for anew when its
//! turn comes; one that has gone, or gone on, since then is left out. The list is an object of its
//! own, so that it is garbage like any other where an error is raised.

use std::cell::RefCell;
use std::ffi::c_int;

use super::args::out_of_memory;
use super::ffi::{Key, Object, Outcome, State};
use super::push::push_name;
use super::queue::{Held, Queue};
use crate::core::OutOfMemory;
use crate::core::scheduler::{Name, Scheduler, Sighting, View};

/// See the module's page.
struct Listing {
    jobs: Vec<Sighting>,
    /// The id of the job whose turn it is.
    name: RefCell<Name>,
}

impl Object for Listing {
    const KEY: &'static Key = {
        static KEY: Key = Key(9);
        &KEY
    };
    const NAME: &'static str = "queue.listing";
}

/// Where things are on the stack while a job's table is filled.
const LISTING: c_int = 2;
const LIST: c_int = 3;
const TABLE: c_int = 4;
const PAYLOAD: c_int = 5;
/// The table of what was noted when the job failed, or nil.
pub const NOTES: c_int = 6;

/// Takes the metatable of listings from the top.
pub fn open(l: State) -> Outcome {
    l.keep_metatable::<Listing>();
    Ok(0)
}

pub fn finalize(l: State) -> Outcome {
    l.finalize::<Listing>(1);
    Ok(0)
}

/// Makes an array of tables, one for each of the jobs that `list` finds in the queue at 1. In each
/// are id, priority, attempts and payload, and what `tell` sets in the table on the top.
pub fn push(
    l: State,
    list: impl FnOnce(&mut Scheduler<Held>) -> Result<Vec<Sighting>, OutOfMemory>,
    tell: impl Fn(&View<Held>),
) -> Outcome {
    l.set_top(1);
    l.try_new_object(|| {
        let jobs = list(&mut l.object::<Queue>(1)?.scheduler.borrow_mut()).ok()?;
        Some(Listing { jobs, name: RefCell::new(Name::Made(0)) })
    });
    let Some(listing) = l.object::<Listing>(LISTING) else { return Err(out_of_memory(l)) };
    l.new_table(c_int::try_from(listing.jobs.len()).unwrap_or(0), 0);
    let mut count = 0;
    for &sighting in &listing.jobs {
        l.new_table(0, 8);
        // Until the payload and the notes are on the stack nothing runs the collector.
        let Some(queue) = l.object::<Queue>(1) else { break };
        let viewed = queue.scheduler.borrow().view(sighting);
        let Ok(viewed) = viewed else { return Err(out_of_memory(l)) };
        let Some((name, view)) = viewed else {
            l.pop(1);
            continue;
        };
        l.push_values(1);
        let values = l.top();
        l.raw_get(values, view.values.payload);
        l.raw_get(values, view.values.notes);
        l.remove(values);
        listing.name.replace(name);

        l.push_value(TABLE);
        push_name(l, &listing.name.borrow());
        l.set_field(c"id");
        l.push_integer(view.priority);
        l.set_field(c"priority");
        l.push_count(view.attempts);
        l.set_field(c"attempts");
        l.push_value(PAYLOAD);
        l.set_field(c"payload");
        tell(&view);
        l.set_top(TABLE);
        count += 1;
        l.raw_set(LIST, count);
    }
    Ok(1)
}
