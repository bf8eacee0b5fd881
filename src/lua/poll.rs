//! Channels and queues in other event loops: descriptors to poll, and the names under which
//! luasocket and cqueues ask for them.

use std::cell::OnceCell;

use super::args::{Callee, Text, check_memory, out_of_memory};
use super::channel::Channel;
use super::ffi::{Descriptor, Outcome, State};
use super::queue::Queue;
use crate::core::OutOfMemory;
use crate::core::poll::Signal;
use crate::core::sync::Arc;

const GETFD: Callee = Callee::method("getfd");
const DIRTY: Callee = Callee::method("dirty");
const POLLFD: Callee = Callee::method("pollfd");
const EVENTS: Callee = Callee::method("events");
const TIMEOUT: Callee = Callee::method("timeout");

/// The descriptor of a channel or a queue, made when it is first asked for.
#[derive(Default)]
pub struct Polled(OnceCell<Arc<Descriptor>>);

impl Polled {
    /// As what shows a state.
    pub fn signal(&self) -> Option<Arc<dyn Signal>> {
        self.0.get().map(|descriptor| Arc::clone(descriptor) as Arc<dyn Signal>)
    }

    /// Pushes the number of the descriptor, or nil and why there is none. `attach` makes a new one
    /// show what it is to show.
    fn push(
        &self,
        l: State,
        attach: impl FnOnce(Arc<dyn Signal>) -> Result<(), OutOfMemory>,
    ) -> Outcome {
        if self.0.get().is_none() {
            check_memory(l)?;
            let made = match Descriptor::new() {
                Ok(descriptor) => Arc::new(descriptor),
                Err(error) => {
                    let why = Text::new(format_args!("{error}"));
                    drop(error);
                    l.push_nil();
                    l.push_bytes(why.bytes());
                    return Ok(2);
                }
            };
            if attach(Arc::clone(&made) as Arc<dyn Signal>).is_err() {
                drop(made);
                return Err(out_of_memory(l));
            }
            // Nobody else can have set it meanwhile.
            let _ = self.0.set(made);
        }
        l.push_integer(self.0.get().map_or(-1, |descriptor| descriptor.number().into()));
        Ok(1)
    }
}

fn channel_fd(l: State, callee: Callee) -> Outcome {
    let channel = callee.object::<Channel>(&l)?;
    channel.core.check_signals();
    channel.polled.push(l, |signal| channel.core.add_signal(signal))
}

/// `ch:getfd()` → a descriptor that polls readable while a receive would not wait
pub fn getfd(l: State) -> Outcome {
    channel_fd(l, GETFD)
}

/// `ch:pollfd()`, which cqueues asks for
pub fn pollfd(l: State) -> Outcome {
    channel_fd(l, POLLFD)
}

/// `ch:events()`, which cqueues asks for: readable
pub fn events(l: State) -> Outcome {
    EVENTS.object::<Channel>(&l)?;
    l.push_str("r");
    Ok(1)
}

/// `ch:timeout()`, which cqueues asks for: none
pub fn timeout(l: State) -> Outcome {
    TIMEOUT.object::<Channel>(&l)?;
    l.push_nil();
    Ok(1)
}

/// `ch:dirty()`, which luasocket asks for: a receive would not wait
pub fn dirty(l: State) -> Outcome {
    l.push_bool(DIRTY.object::<Channel>(&l)?.core.is_ready());
    Ok(1)
}

/// `q:getfd()` → a descriptor that polls readable while something outside has made a job ready
pub fn queue_getfd(l: State) -> Outcome {
    let queue = GETFD.object::<Queue>(&l)?;
    queue.polled.push(l, |signal| {
        if let Some(flight) = &queue.flight {
            let crew = flight.crew.borrow();
            crew.parker().show_woken(crew.group(), signal);
        }
        Ok(())
    })
}
