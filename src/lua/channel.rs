//! `queue.channel`, and what all channels have in common: timers' and shared ones are channels too.
//! Sending and receiving is in `transfer.rs`.

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr;

use super::args::{Callee, Text, check_memory};
use super::copy;
use super::ffi::{Exact, Fail, Key, LUA_TBOOLEAN, LUA_TNUMBER, Object, Outcome, State};
use super::poll::Polled;
use super::slots::Values;
use crate::core::channel::{self, Crossing, Local, Unreceived, Unsent};
use crate::core::shared::Handle;
use crate::core::sync::Arc;
use crate::core::wire::Item;

const CHANNEL: Callee = Callee::function("channel");
const CLOSE: Callee = Callee::method("close");
const IS_CLOSED: Callee = Callee::method("is_closed");
const LEN: Callee = Callee::method("len");
const CAP: Callee = Callee::method("cap");
const STOP: Callee = Callee::method("stop");
const TOSTRING: Callee = Callee::method("tostring");

pub type Core = channel::Channel<Item>;

/// Who else uses a channel.
pub enum Kind {
    /// Nobody: it stays within its Lua state. Its core once more, as what it is.
    Plain(Arc<Local<Item>>),
    /// A timer, which alone sends.
    Timer(Timer),
    /// Other Lua states.
    Shared(Handle),
}

/// What a timer's channel has beside the others.
pub struct Timer {
    /// For the thread, which needs to know that others use the channel.
    pub core: Arc<Crossing<Item>>,
    /// The slot of the value that it will send, if it has one.
    pub value: Cell<u32>,
}

/// A channel, as a script holds it.
pub struct Channel {
    pub core: Arc<Core>,
    pub values: Values,
    pub kind: Kind,
    pub polled: Polled,
}

impl Object for Channel {
    const KEY: &'static Key = {
        static KEY: Key = Key(3);
        &KEY
    };
    const NAME: &'static str = "channel";
}

impl Channel {
    fn of(core: Arc<Core>, kind: Kind) -> Self {
        Self { core, values: Values::default(), kind, polled: Polled::default() }
    }

    #[allow(clippy::arc_with_non_send_sync, reason = "other kinds of channels do cross threads")]
    fn plain(capacity: usize) -> Self {
        let core = Arc::new(Local::new(capacity));
        Self::of(Arc::clone(&core) as Arc<Core>, Kind::Plain(core))
    }

    /// A timer's channel; one that is not fed is never due.
    pub fn timer(is_fed: bool) -> Self {
        let core = Arc::new(Crossing::timer(is_fed));
        let timer = Timer { core: Arc::clone(&core), value: Cell::new(0) };
        Self::of(core, Kind::Timer(timer))
    }

    pub fn shared(handle: Handle) -> Self {
        let core = Arc::clone(handle.channel());
        Self::of(core, Kind::Shared(handle))
    }

    pub fn is_timer(&self) -> bool {
        matches!(self.kind, Kind::Timer(_))
    }

    /// [`Core::try_send`], without a call through a pointer where none is needed.
    #[allow(clippy::inline_always, reason = "see `transfer.rs`")]
    #[inline(always)]
    pub fn try_send(&self, item: Item) -> Result<(), Unsent<Item>> {
        match &self.kind {
            Kind::Plain(core) => core.try_send(item),
            _ => self.core.try_send(item),
        }
    }

    /// [`Core::try_receive`], in the same way.
    #[allow(clippy::inline_always, reason = "see `transfer.rs`")]
    #[inline(always)]
    pub fn try_receive(&self) -> Result<Item, Unreceived> {
        match &self.kind {
            Kind::Plain(core) => core.try_receive(),
            _ => self.core.try_receive(),
        }
    }

    /// Makes an item of the value at a place, of a type that the caller has asked for: stored with
    /// the channel, which is at `object`, or copied. `refuse` makes the error where it cannot be
    /// copied.
    #[allow(clippy::inline_always, reason = "see `transfer.rs`")]
    #[inline(always)]
    pub fn stow(
        &self,
        l: State,
        object: c_int,
        (value, kind): (c_int, c_int),
        refuse: impl FnOnce(&Text) -> Fail,
    ) -> Result<Item, Fail> {
        Ok(match kind {
            LUA_TBOOLEAN => Item::Bool(l.to_bool(value)),
            LUA_TNUMBER => match l.to_exact(value) {
                Exact::Integer(integer) => Item::Integer(integer),
                Exact::Float(number) => Item::Number(number),
            },
            _ if matches!(self.kind, Kind::Shared(_)) => copy::pack(l, value, refuse)?,
            _ => Item::Slot(self.store(l, object, value)?),
        })
    }

    /// Stores the value at `value` with the channel, which is at `object`.
    fn store(&self, l: State, object: c_int, value: c_int) -> Result<u32, Fail> {
        // A sender that has gone may have left its value behind.
        while let Some(item) = self.core.orphan() {
            self.discard(l, object, item);
        }
        l.push_values(object);
        let slot = self.values.store(l, l.top(), value)?;
        l.pop(1);
        Ok(slot)
    }

    /// Forgets an item that was not sent; the channel is at `object`.
    #[allow(clippy::needless_pass_by_value, reason = "it ends here")]
    pub fn discard(&self, l: State, object: c_int, item: Item) {
        if let Item::Slot(slot) = item {
            l.push_values(object);
            self.values.free(l, l.top(), slot);
            l.pop(1);
        }
    }

    /// Pushes the value of an item that was received; the channel is at `object`.
    #[allow(clippy::inline_always, reason = "see `transfer.rs`")]
    #[inline(always)]
    pub fn push(&self, l: State, object: c_int, item: Item) -> Result<(), Fail> {
        match item {
            Item::Bool(value) => l.push_bool(value),
            Item::Integer(value) => l.push_integer(value),
            Item::Number(value) => l.push_number(value),
            Item::Slot(slot) => {
                l.push_values(object);
                self.values.take(l, l.top(), slot);
                l.remove(-2);
            }
            Item::Packed(packet) => {
                if let Err((fail, packet)) = copy::unpack(l, packet) {
                    // It could not be delivered: the next one gets it.
                    self.put_back(l, object, Item::Packed(packet));
                    return Err(fail);
                }
            }
        }
        Ok(())
    }

    /// Gives back an item that was received but could not be delivered; the channel is at `object`.
    pub fn put_back(&self, l: State, object: c_int, item: Item) {
        if let Err(item) = self.core.put_back(item) {
            self.discard(l, object, item);
        }
    }

    /// `channel(2/3, closed)`
    pub fn text(&self) -> Text {
        let closed = if self.core.is_closed() { ", closed" } else { "" };
        Text::new(format_args!("channel({}/{}{closed})", self.core.len(), self.core.capacity()))
    }

    /// Closes the channel, which is at 1. A timer then forgets the value that it was to send.
    fn close(&self, l: State) {
        let was_fed = self.core.close();
        if let Kind::Timer(timer) = &self.kind
            && was_fed
        {
            self.discard(l, 1, Item::Slot(timer.value.take()));
        }
    }

    /// Closes a timer's channel, which is at 1, and forgets what was not received.
    fn stop(&self, l: State) {
        self.close(l);
        for item in self.core.stop() {
            self.discard(l, 1, item);
        }
    }
}

/// `queue.channel(capacity)`
pub fn new(l: State) -> Outcome {
    let capacity = CHANNEL.argument(1).optional_count(l)?;
    let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    check_memory(l)?;
    l.new_object(|| Channel::plain(capacity));
    Ok(1)
}

// --- ending ------------------------------------------------------------------------------------

/// `ch:close()`
pub fn close(l: State) -> Outcome {
    CLOSE.object::<Channel>(&l)?.close(l);
    Ok(0)
}

/// `ch:stop()`
pub fn stop(l: State) -> Outcome {
    let channel = STOP.object::<Channel>(&l)?;
    if !channel.is_timer() {
        return Err(STOP.argument(1).bad(l, format_args!("timer expected, got channel")));
    }
    channel.stop(l);
    Ok(0)
}

/// `<close>`
pub fn close_scope(l: State) -> Outcome {
    if let Some(channel) = l.object::<Channel>(1) {
        if channel.is_timer() {
            channel.stop(l);
        } else {
            channel.close(l);
        }
    }
    Ok(0)
}

/// The handle has gone: nobody can wait there any more, and a timer's thread ends. A shared channel
/// lives on.
pub fn finalize(l: State) -> Outcome {
    if let Some(channel) = l.object::<Channel>(1) {
        if let Some(signal) = channel.polled.signal() {
            channel.core.remove_signal(&signal);
        }
        if !matches!(channel.kind, Kind::Shared(_)) {
            drop(channel.core.stop());
        }
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

/// `a == b`: two handles on one shared channel are equal
pub fn equal(l: State) -> Outcome {
    let (a, b) = (l.object::<Channel>(1), l.object::<Channel>(2));
    l.push_bool(
        a.zip(b).is_some_and(|(a, b)| ptr::addr_eq(Arc::as_ptr(&a.core), Arc::as_ptr(&b.core))),
    );
    Ok(1)
}

/// `tostring(ch)`
pub fn tostring(l: State) -> Outcome {
    let text = TOSTRING.object::<Channel>(&l)?.text();
    l.push_bytes(text.bytes());
    Ok(1)
}
