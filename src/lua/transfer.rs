//! Sending and receiving.
//!
//! Each call first tries once. Where it has to wait it enters a waiter and parks or blocks; what
//! the end of the wait gave is then told as if it had been there at once.

use super::args::{Callee, out_of_memory};
use super::channel::{Channel, Core};
use super::crew::{self, Resumed};
use super::ffi::{Fail, LUA_TNIL, Outcome, PARK, State};
use super::wait;
use crate::core::channel::{Unreceived, Unsent, Wait};
use crate::core::clock::{Moment, Span};
use crate::core::crew::{End, Places};
use crate::core::sync::Arc;
use crate::core::waiter::{Outcome as Ending, Waiter};
use crate::core::wire::Item;

const SEND: Callee = Callee::method("send").parking(3);
const TRY_SEND: Callee = Callee::method("try_send");
const RECEIVE: Callee = Callee::method("receive").parking(2);
const TRY_RECEIVE: Callee = Callee::method("try_receive");
const ITER: Callee = Callee::method("iter").wrapped();

fn deadlock(l: State, callee: Callee, what: &str, channel: &Channel) -> Fail {
    let text = channel.text();
    callee.fail(l, format_args!("deadlock: {what} on {text} can never complete"))
}

/// How a wait that blocks the thread is entered.
fn how(waiter: &Waiter<Item>, limit: Span) -> Wait<'_, Item> {
    if limit == Span::FOREVER { Wait::EnterFed(waiter) } else { Wait::Enter(waiter) }
}

// --- sending -----------------------------------------------------------------------------------

/// The value at 2 as an item for the channel, which must be one to send it on.
#[allow(clippy::inline_always, reason = "a send and a receive are 5 ns of 94 less")]
#[inline(always)]
fn stow_argument(l: State, callee: Callee, channel: &Channel) -> Result<Item, Fail> {
    if channel.is_timer() {
        return Err(callee.fail(l, format_args!("{} on a timer's channel", callee.name)));
    }
    let kind = l.kind(2);
    if kind <= LUA_TNIL {
        return Err(callee.argument(2).bad(l, format_args!("cannot send nil")));
    }
    channel.stow(l, 1, (2, kind), |why| callee.argument(2).bad(l, format_args!("{why}")))
}

/// `ch:send(v, timeout_ms)`
pub fn send(l: State) -> Outcome {
    let channel = SEND.object::<Channel>(&l)?;
    let limit = SEND.limit(l, 3)?;
    let item = stow_argument(l, SEND, channel)?;
    match channel.try_send(item) {
        Ok(()) => {
            l.push_bool(true);
            Ok(1)
        }
        Err(Unsent::Full(item)) if limit > Span::ZERO => wait_to_send(l, channel, item, limit),
        Err(refusal) => sent(l, channel, Err(refusal)),
    }
}

fn wait_to_send(l: State, channel: &Channel, item: Item, limit: Span) -> Outcome {
    let core = Arc::clone(&channel.core);
    if let Some(post) = crew::current(l) {
        let waiter = match post.sit(l) {
            Ok(waiter) => waiter,
            Err(fail) => return broken(l, fail, Some(item)),
        };
        return match core.send(item, &Wait::Enter(&waiter)) {
            Ok(false) => post.park(waiter, Places::Channel(core), limit),
            result => {
                waiter.leave();
                drop((core, waiter, post));
                sent(l, channel, result)
            }
        };
    }
    let item = match core.send_soon(item) {
        Err(Unsent::Full(item)) => item,
        result => {
            drop(core);
            return sent(l, channel, result.map(|()| true));
        }
    };
    let (nothing, waiter) = match wait::prepare(l) {
        Ok(prepared) => prepared,
        Err(fail) => return broken(l, fail, Some(item)),
    };
    let result = match core.send(item, &how(&waiter, limit)) {
        Ok(false) => {
            let (end, hooks) =
                wait::block(l, nothing, &waiter, core.is_prompt(), Moment::deadline(limit));
            let result = end_of_send(&core, &waiter, end);
            if let Err(fail) = hooks {
                drop((core, waiter));
                return broken(l, fail, result.err().map(Unsent::into_value));
            }
            result
        }
        result => {
            waiter.leave();
            result
        }
    };
    drop((core, waiter));
    // A hook may have run a script meanwhile: the channel is looked up anew.
    sent(l, SEND.object(&l)?, result)
}

/// What a parked `send` does when it is resumed.
pub fn send_resumed(l: State) -> Outcome {
    let Resumed::Ended(wait, end) = crew::resumed(l)? else { return Ok(PARK) };
    let Places::Channel(core) = &wait.places else { return Ok(PARK) };
    let result = end_of_send(core, &wait.waiter, end);
    drop(wait);
    sent(l, SEND.object(&l)?, result)
}

fn end_of_send(core: &Core, waiter: &Waiter<Item>, end: End<Item>) -> Result<bool, Unsent<Item>> {
    let (why, served): (fn(Item) -> Unsent<Item>, _) = match end {
        End::Timeout => (Unsent::Full, None),
        End::Served(served) => match served.outcome {
            Ending::Closed(value) => (Unsent::Closed, value),
            Ending::Endless => (Unsent::Endless, None),
            Ending::Sent | Ending::Received(_) | Ending::Woken => return Ok(true),
        },
    };
    match served.or_else(|| core.withdraw(waiter, 0)) {
        Some(item) => Err(why(item)),
        None => Ok(true),
    }
}

/// What `send` returns or raises; a value that was not sent is forgotten.
fn sent(l: State, channel: &Channel, result: Result<bool, Unsent<Item>>) -> Outcome {
    let (item, fail) = match result {
        Ok(_) => {
            l.push_bool(true);
            return Ok(1);
        }
        Err(Unsent::Full(item)) => {
            channel.discard(l, 1, item);
            return refused(l, "timeout");
        }
        Err(Unsent::Closed(item)) => (item, None),
        Err(Unsent::Endless(item)) => (item, Some(true)),
        Err(Unsent::OutOfMemory(item)) => (item, Some(false)),
    };
    channel.discard(l, 1, item);
    Err(match fail {
        None => SEND.fail(l, format_args!("send on closed channel")),
        Some(true) => deadlock(l, SEND, "send", channel),
        Some(false) => out_of_memory(l),
    })
}

/// `false, reason`
fn refused(l: State, reason: &str) -> Outcome {
    l.push_bool(false);
    l.push_str(reason);
    Ok(2)
}

/// A wait to send that an error ended.
fn broken(l: State, fail: Fail, item: Option<Item>) -> Outcome {
    if let (Some(item), Some(channel)) = (item, l.object::<Channel>(1)) {
        channel.discard(l, 1, item);
    }
    Err(fail)
}

/// `ch:try_send(v)`
pub fn try_send(l: State) -> Outcome {
    let channel = TRY_SEND.object::<Channel>(&l)?;
    let item = stow_argument(l, TRY_SEND, channel)?;
    let (item, reason) = match channel.try_send(item) {
        Ok(()) => {
            l.push_bool(true);
            return Ok(1);
        }
        Err(Unsent::Closed(item)) => (item, Some("closed")),
        Err(Unsent::Full(item) | Unsent::Endless(item)) => (item, Some("full")),
        Err(Unsent::OutOfMemory(item)) => (item, None),
    };
    channel.discard(l, 1, item);
    match reason {
        Some(reason) => refused(l, reason),
        None => Err(out_of_memory(l)),
    }
}

// --- receiving ---------------------------------------------------------------------------------

/// `ch:receive(timeout_ms)`
pub fn receive(l: State) -> Outcome {
    receive_as(l, RECEIVE)
}

/// What a parked `receive` does when it is resumed.
pub fn receive_resumed(l: State) -> Outcome {
    receive_resumed_as(l, RECEIVE)
}

/// A step of `for v in ch:iter()`; `front.lua` calls it for the loop.
pub fn next(l: State) -> Outcome {
    receive_as(l, ITER)
}

/// What a parked step does when it is resumed.
pub fn next_resumed(l: State) -> Outcome {
    receive_resumed_as(l, ITER)
}

#[allow(clippy::inline_always, reason = "a send and a receive are 5 ns of 94 less")]
#[inline(always)]
fn receive_as(l: State, callee: Callee) -> Outcome {
    let channel = settled(&l, callee)?;
    let limit = callee.limit(l, 2)?;
    match channel.try_receive() {
        Ok(item) => {
            channel.push(l, 1, item)?;
            l.push_bool(true);
            Ok(2)
        }
        Err(Unreceived::Empty) if limit > Span::ZERO => wait_to_receive(l, callee, channel, limit),
        Err(refusal) => received(l, callee, channel, Err(refusal), "timeout"),
    }
}

fn wait_to_receive(l: State, callee: Callee, channel: &Channel, limit: Span) -> Outcome {
    let core = Arc::clone(&channel.core);
    if let Some(post) = crew::current(l) {
        let waiter = post.sit(l)?;
        return match core.receive(&Wait::Enter(&waiter)) {
            Ok(None) => post.park(waiter, Places::Channel(core), limit),
            result => {
                waiter.leave();
                drop((core, waiter, post));
                received(l, callee, channel, result, "timeout")
            }
        };
    }
    match core.receive_soon() {
        Err(Unreceived::Empty) => {}
        result => {
            drop(core);
            return received(l, callee, channel, result.map(Some), "timeout");
        }
    }
    let (nothing, waiter) = wait::prepare(l)?;
    let result = match core.receive(&how(&waiter, limit)) {
        Ok(None) => {
            let (end, hooks) =
                wait::block(l, nothing, &waiter, core.is_prompt(), Moment::deadline(limit));
            let result = end_of_receive(&core, &waiter, end);
            if let Err(fail) = hooks {
                drop((core, waiter));
                // A value that came while the hook ran goes back to where it came from.
                if let (Ok(Some(item)), Some(channel)) = (result, l.object::<Channel>(1)) {
                    channel.put_back(l, 1, item);
                }
                return Err(fail);
            }
            result
        }
        result => {
            waiter.leave();
            result
        }
    };
    drop((core, waiter));
    // A hook may have run a script meanwhile: the channel is looked up anew.
    received(l, callee, callee.object(&l)?, result, "timeout")
}

fn receive_resumed_as(l: State, callee: Callee) -> Outcome {
    let Resumed::Ended(wait, end) = crew::resumed(l)? else { return Ok(PARK) };
    let Places::Channel(core) = &wait.places else { return Ok(PARK) };
    let result = end_of_receive(core, &wait.waiter, end);
    drop(wait);
    received(l, callee, callee.object(&l)?, result, "timeout")
}

fn end_of_receive(
    core: &Core,
    waiter: &Waiter<Item>,
    end: End<Item>,
) -> Result<Option<Item>, Unreceived> {
    let why = match end {
        End::Timeout => Unreceived::Empty,
        End::Served(served) => match served.outcome {
            Ending::Received(item) => return Ok(Some(item)),
            Ending::Endless => Unreceived::Endless,
            Ending::Closed(_) | Ending::Sent | Ending::Woken => return Err(Unreceived::Closed),
        },
    };
    core.withdraw(waiter, 0);
    Err(why)
}

/// What `receive` and `try_receive` return or raise.
fn received(
    l: State,
    callee: Callee,
    channel: &Channel,
    result: Result<Option<Item>, Unreceived>,
    empty: &str,
) -> Outcome {
    let reason = match result {
        Ok(Some(item)) => {
            channel.push(l, 1, item)?;
            l.push_bool(true);
            return Ok(2);
        }
        Ok(None) | Err(Unreceived::Empty) => empty,
        Err(Unreceived::Closed) => "closed",
        Err(Unreceived::Endless) => return Err(deadlock(l, callee, "receive", channel)),
        Err(Unreceived::OutOfMemory) => return Err(out_of_memory(l)),
    };
    l.push_nil();
    l.push_bool(false);
    l.push_str(reason);
    Ok(3)
}

/// `ch:try_receive()`
pub fn try_receive(l: State) -> Outcome {
    let channel = settled(&l, TRY_RECEIVE)?;
    let result = channel.try_receive().map(Some);
    received(l, TRY_RECEIVE, channel, result, "empty")
}

/// The channel to receive from, with its table of values at its proper size.
fn settled(l: &State, callee: Callee) -> Result<&Channel, Fail> {
    let channel = callee.object::<Channel>(l)?;
    if channel.values.tidy(*l, 1) {
        // That ran the collector, and so perhaps a script.
        return callee.object(l);
    }
    Ok(channel)
}

/// `ch:iter()` looks at its channel here, and the rest is in `front.lua`.
pub fn check_iter(l: State) -> Outcome {
    ITER.object::<Channel>(&l)?;
    Ok(0)
}
