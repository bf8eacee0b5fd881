//! `queue.channel` and the methods of channels, timers' among them.

use std::ffi::c_int;

use super::args::{Callee, Text, out_of_memory};
use super::ffi::{Exact, Fail, Key, LUA_TBOOLEAN, LUA_TNIL, LUA_TNUMBER, Object, Outcome, State};
use super::slots::Values;
use super::wait::{self, End};
use crate::core::channel::{self, Unreceived, Unsent, Wait};
use crate::core::clock::{Moment, Span};
use crate::core::sync::Arc;
use crate::core::waiter::{Outcome as Ending, Waiter};

const CHANNEL: Callee = Callee::function("channel");
const SEND: Callee = Callee::method("send");
const TRY_SEND: Callee = Callee::method("try_send");
const RECEIVE: Callee = Callee::method("receive");
const TRY_RECEIVE: Callee = Callee::method("try_receive");
const ITER: Callee = Callee::method("iter");
const CLOSE: Callee = Callee::method("close");
const IS_CLOSED: Callee = Callee::method("is_closed");
const LEN: Callee = Callee::method("len");
const CAP: Callee = Callee::method("cap");
const STOP: Callee = Callee::method("stop");
const TOSTRING: Callee = Callee::method("tostring");

/// What travels through a channel: a number or a boolean as it is, anything else by its slot in the
/// channel's table of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item {
    Slot(u32),
    Bool(bool),
    Integer(i64),
    Number(f64),
}

pub type Core = channel::Channel<Item>;

/// A channel, as a script holds it.
pub struct Channel {
    pub core: Arc<Core>,
    pub values: Values,
    /// A timer feeds it, and nobody else may.
    pub is_timer: bool,
}

impl Object for Channel {
    const KEY: &'static Key = {
        static KEY: Key = Key(3);
        &KEY
    };
    const NAME: &'static str = "channel";
}

impl Channel {
    pub fn new(core: Core, is_timer: bool) -> Self {
        Self { core: Arc::new(core), values: Values::default(), is_timer }
    }

    /// Makes an item of the value at `value`, which it stores where need be; the channel is at
    /// `object`.
    pub fn stow(&self, l: State, object: c_int, value: c_int) -> Result<Item, Fail> {
        self.stow_kind(l, object, value, l.kind(value))
    }

    fn stow_kind(&self, l: State, object: c_int, value: c_int, kind: c_int) -> Result<Item, Fail> {
        Ok(match kind {
            LUA_TBOOLEAN => Item::Bool(l.to_bool(value)),
            LUA_TNUMBER => match l.to_exact(value) {
                Exact::Integer(integer) => Item::Integer(integer),
                Exact::Float(number) => Item::Number(number),
            },
            _ => {
                l.push_values(object);
                let slot = self.values.store(l, l.top(), value)?;
                l.pop(1);
                Item::Slot(slot)
            }
        })
    }

    /// Forgets an item that was not sent.
    fn discard(&self, l: State, item: Item) {
        if let Item::Slot(slot) = item {
            l.push_values(1);
            self.values.free(l, l.top(), slot);
            l.pop(1);
        }
    }

    /// Pushes the value of an item that was received.
    fn push(&self, l: State, item: Item) {
        match item {
            Item::Bool(value) => l.push_bool(value),
            Item::Integer(value) => l.push_integer(value),
            Item::Number(value) => l.push_number(value),
            Item::Slot(slot) => {
                l.push_values(1);
                self.values.take(l, l.top(), slot);
                l.remove(-2);
            }
        }
    }

    /// `channel(2/3, closed)`
    fn text(&self) -> Text {
        let closed = if self.core.is_closed() { ", closed" } else { "" };
        Text::new(format_args!("channel({}/{}{closed})", self.core.len(), self.core.capacity()))
    }

    fn deadlock(&self, l: State, callee: Callee) -> Fail {
        let what = if callee.name == SEND.name { "send" } else { "receive" };
        let text = self.text();
        callee.fail(l, format_args!("deadlock: {what} on {text} can never complete"))
    }

    /// Closes a timer's channel and forgets what was not received.
    fn drop_all(&self, l: State) {
        self.core.stop();
        self.values.clear(l, 1);
    }
}

/// `queue.channel(capacity)`
pub fn new(l: State) -> Outcome {
    let capacity = CHANNEL.argument(1).optional_count(l)?;
    let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    l.new_object(|| Channel::new(Core::new(capacity), false));
    Ok(1)
}

/// The value at 2 as an item for the channel, which must be one to send it on.
fn stow_argument(l: State, callee: Callee, channel: &Channel) -> Result<Item, Fail> {
    if channel.is_timer {
        return Err(callee.fail(l, format_args!("{} on a timer's channel", callee.name)));
    }
    let kind = l.kind(2);
    if kind <= LUA_TNIL {
        return Err(callee.argument(2).bad(l, format_args!("cannot send nil")));
    }
    channel.stow_kind(l, 1, 2, kind)
}

/// `ch:send(v, timeout_ms)`
pub fn send(l: State) -> Outcome {
    let channel = SEND.object::<Channel>(&l)?;
    let limit = SEND.argument(3).limit(l)?;
    let item = stow_argument(l, SEND, channel)?;
    match channel.core.send(item, 0, &Wait::No) {
        Err(Unsent::Full(item)) if limit > Span::ZERO => wait_to_send(l, channel, item, limit),
        result => sent(l, channel, result),
    }
}

fn wait_to_send(l: State, channel: &Channel, item: Item, limit: Span) -> Outcome {
    let core = Arc::clone(&channel.core);
    let (nothing, waiter) = match wait::prepare(l) {
        Ok(prepared) => prepared,
        Err(fail) => return broken(l, fail, Some(item)),
    };
    let end = match core.send(item, 0, &how(&waiter, limit)) {
        Ok(false) => wait::block(l, nothing, &core, &waiter, Moment::now().after(limit)),
        Ok(true) => End::Served(Ending::Sent),
        Err(Unsent::Closed(item)) => End::Served(Ending::Closed(Some(item))),
        Err(refusal) => {
            waiter.leave();
            return sent(l, channel, Err(refusal));
        }
    };
    waiter.leave();
    drop((core, waiter));
    // A hook may have run a script meanwhile: the channel is looked up anew.
    match end {
        End::Served(Ending::Closed(Some(item))) => {
            sent(l, SEND.object(&l)?, Err(Unsent::Closed(item)))
        }
        End::Timeout(Some(item)) => sent(l, SEND.object(&l)?, Err(Unsent::Full(item))),
        End::Served(_) | End::Timeout(None) => sent(l, SEND.object(&l)?, Ok(true)),
        End::Broken(fail, item) => broken(l, fail, item),
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
            channel.discard(l, item);
            return refused(l, "timeout");
        }
        Err(Unsent::Closed(item)) => (item, SEND.fail(l, format_args!("send on closed channel"))),
        Err(Unsent::Endless(item)) => (item, channel.deadlock(l, SEND)),
        Err(Unsent::OutOfMemory(item)) => (item, out_of_memory(l)),
    };
    channel.discard(l, item);
    Err(fail)
}

/// `false, reason`
fn refused(l: State, reason: &str) -> Outcome {
    l.push_bool(false);
    l.push_str(reason);
    Ok(2)
}

/// A wait to send that a hook's error ended.
fn broken(l: State, fail: Fail, item: Option<Item>) -> Outcome {
    if let (Some(item), Some(channel)) = (item, l.object::<Channel>(1)) {
        channel.discard(l, item);
    }
    Err(fail)
}

/// `ch:try_send(v)`
pub fn try_send(l: State) -> Outcome {
    let channel = TRY_SEND.object::<Channel>(&l)?;
    let item = stow_argument(l, TRY_SEND, channel)?;
    match channel.core.send(item, 0, &Wait::No) {
        Ok(_) => {
            l.push_bool(true);
            Ok(1)
        }
        Err(Unsent::Closed(item)) => {
            channel.discard(l, item);
            refused(l, "closed")
        }
        Err(Unsent::Full(item) | Unsent::Endless(item)) => {
            channel.discard(l, item);
            refused(l, "full")
        }
        Err(Unsent::OutOfMemory(item)) => {
            channel.discard(l, item);
            Err(out_of_memory(l))
        }
    }
}

// --- receiving ---------------------------------------------------------------------------------

/// `ch:receive(timeout_ms)`
pub fn receive(l: State) -> Outcome {
    receive_as(l, RECEIVE)
}

/// A step of `for v in ch:iter()`; `front.lua` calls it for the loop.
pub fn receive_next(l: State) -> Outcome {
    receive_as(l, ITER.wrapped())
}

fn receive_as(l: State, callee: Callee) -> Outcome {
    let channel = settled(&l, callee)?;
    let limit = callee.argument(2).limit(l)?;
    match channel.core.receive(0, &Wait::No) {
        Err(Unreceived::Empty) if limit > Span::ZERO => wait_to_receive(l, callee, channel, limit),
        result => received(l, callee, channel, result, "timeout"),
    }
}

fn wait_to_receive(l: State, callee: Callee, channel: &Channel, limit: Span) -> Outcome {
    let core = Arc::clone(&channel.core);
    let (nothing, waiter) = wait::prepare(l)?;
    let end = match core.receive(0, &how(&waiter, limit)) {
        Ok(None) => wait::block(l, nothing, &core, &waiter, Moment::now().after(limit)),
        Ok(Some(item)) => End::Served(Ending::Received(item)),
        Err(Unreceived::Closed) => End::Served(Ending::Closed(None)),
        Err(refusal) => {
            waiter.leave();
            return received(l, callee, channel, Err(refusal), "timeout");
        }
    };
    waiter.leave();
    drop((core, waiter));
    let result = match end {
        End::Served(ending) => ending.into_value().map(Some).ok_or(Unreceived::Closed),
        End::Timeout(_) => Err(Unreceived::Empty),
        End::Broken(fail, _) => return Err(fail),
    };
    // A hook may have run a script meanwhile: the channel is looked up anew.
    received(l, callee, callee.object(&l)?, result, "timeout")
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
            channel.push(l, item);
            l.push_bool(true);
            return Ok(2);
        }
        Ok(None) | Err(Unreceived::Empty) => empty,
        Err(Unreceived::Closed) => "closed",
        Err(Unreceived::Endless) => return Err(channel.deadlock(l, callee)),
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
    let result = channel.core.receive(0, &Wait::No);
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

fn how(waiter: &Waiter<Item>, limit: Span) -> Wait<'_, Item> {
    if limit == Span::FOREVER { Wait::Unlimited(waiter) } else { Wait::Limited(waiter) }
}

/// `ch:iter()` looks at its channel here, and the rest is in `front.lua`.
pub fn check_iter(l: State) -> Outcome {
    ITER.wrapped().object::<Channel>(&l)?;
    Ok(0)
}

// --- ending ------------------------------------------------------------------------------------

/// `ch:close()`
pub fn close(l: State) -> Outcome {
    CLOSE.object::<Channel>(&l)?.core.close();
    Ok(0)
}

/// `ch:stop()`
pub fn stop(l: State) -> Outcome {
    let channel = STOP.object::<Channel>(&l)?;
    if !channel.is_timer {
        return Err(STOP.argument(1).bad(l, format_args!("timer expected, got channel")));
    }
    channel.drop_all(l);
    Ok(0)
}

/// `<close>`
pub fn close_scope(l: State) -> Outcome {
    if let Some(channel) = l.object::<Channel>(1) {
        if channel.is_timer {
            channel.drop_all(l);
        } else {
            channel.core.close();
        }
    }
    Ok(0)
}

/// The handle has gone: nobody can wait for it any more, and a timer's thread ends.
pub fn finalize(l: State) -> Outcome {
    if let Some(channel) = l.object::<Channel>(1) {
        channel.core.stop();
    }
    l.finalize::<Channel>(1);
    Ok(0)
}

// --- looking -----------------------------------------------------------------------------------

/// `ch:is_closed()`
pub fn is_closed(l: State) -> Outcome {
    l.push_bool(IS_CLOSED.object::<Channel>(&l)?.core.is_closed());
    Ok(1)
}

/// `ch:len()`, `#ch`
pub fn len(l: State) -> Outcome {
    l.push_count(LEN.object::<Channel>(&l)?.core.len() as u64);
    Ok(1)
}

/// `ch:cap()`
pub fn cap(l: State) -> Outcome {
    l.push_count(CAP.object::<Channel>(&l)?.core.capacity() as u64);
    Ok(1)
}

/// `tostring(ch)`
pub fn tostring(l: State) -> Outcome {
    let text = TOSTRING.object::<Channel>(&l)?.text();
    l.push_bytes(text.bytes());
    Ok(1)
}
