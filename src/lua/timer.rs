//! `queue.after` and `queue.tick`: channels that a timer thread feeds.

use std::io;

use super::args::{Callee, Text, check_memory, out_of_memory};
use super::channel::{Channel, Kind};
use super::ffi::{Outcome, State, for_timers};
use crate::core::channel::Crossing;
use crate::core::clock::Span;
use crate::core::sync::Arc;
use crate::core::timer;
use crate::core::wire::Item;

const AFTER: Callee = Callee::function("after");
const TICK: Callee = Callee::function("tick");

/// Memory of a timer's thread, which the collector does not see. It is told, so that handles which
/// a script drops are collected, and their threads end, before there are too many.
const THREAD_KILOBYTES: i32 = 10;

/// `queue.after(ms, value)`
pub fn after(l: State) -> Outcome {
    let delay = AFTER.argument(1).duration(l)?;
    l.set_top(2);
    if l.is_nil_or_none(2) {
        l.push_bool(true);
        l.replace(2);
    }
    check_memory(l)?;
    push_channel(l, delay);
    let value = match l.object::<Channel>(3) {
        // Nothing is refused: it stays within this Lua state.
        Some(channel) => {
            let item = channel.stow(l, 3, (2, l.kind(2)), |_| out_of_memory(l))?;
            if let (Item::Slot(slot), Kind::Timer(timer)) = (&item, &channel.kind) {
                timer.value.set(*slot);
            }
            item
        }
        None => Item::Bool(true),
    };
    start(l, AFTER, delay, |core| timer::after(core, delay, value.clone()))
}

/// `queue.tick(ms)`
pub fn tick(l: State) -> Outcome {
    let interval = TICK.argument(1).interval(l)?;
    check_memory(l)?;
    push_channel(l, interval);
    start(l, TICK, interval, |core| timer::tick(core, interval, Item::Bool(true)))
}

/// A timer that is never due feeds nothing: who waits for it waits in vain.
fn push_channel(l: State, due: Span) {
    l.new_object(|| Channel::timer(due != Span::FOREVER));
}

/// Starts the thread of the timer whose channel is on the top, and returns the channel.
fn start(
    l: State,
    callee: Callee,
    due: Span,
    spawn: impl Fn(&Arc<Crossing<Item>>) -> io::Result<()>,
) -> Outcome {
    if due == Span::FOREVER {
        return Ok(1);
    }
    l.account(THREAD_KILOBYTES);
    if refusal(l, &spawn).is_some() {
        // Perhaps the threads of handles that nobody holds any more are in the way.
        l.collect();
        if let Some(why) = refusal(l, &spawn) {
            return Err(callee.fail(l, format_args!("cannot start a timer thread: {why}")));
        }
    }
    Ok(1)
}

/// Tries to start a thread; gives the system's reason where it refuses.
fn refusal(l: State, spawn: impl Fn(&Arc<Crossing<Item>>) -> io::Result<()>) -> Option<Text> {
    let Kind::Timer(timer) = &l.object::<Channel>(-1)?.kind else { return None };
    let error = for_timers(|| spawn(&timer.core)).err()?;
    Some(Text::new(format_args!("{error}")))
}
