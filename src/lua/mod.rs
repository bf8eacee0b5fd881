//! The face: what a script sees of the core.
//!
//! Rust checks arguments, keeps Lua values where the collector sees them, and never calls a user's
//! function; `front.lua` does that.

#![allow(clippy::unnecessary_wraps, reason = "bodies of Lua functions have one signature")]

mod args;
mod channel;
mod ffi;
mod pump;
mod queue;
mod slots;
mod timer;
mod wait;

use mlua::{Lua, Result, Table};

use ffi::{Object, Outcome, State, function};

/// The part of the face that is Lua, embedded so that one file is all there is to install.
const FRONT: &str = include_str!("front.lua");

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds the module's table.
pub fn open(lua: &Lua) -> Result<Table> {
    // What the pump stands on, and scripts do not see.
    let steps = lua.create_table()?;
    macro_rules! set {
        ($table:expr, $($name:literal => $body:expr),* $(,)?) => {
            $($table.set($name, function(lua, $body)?)?;)*
        };
    }
    set!(steps,
        "start" => pump::start,
        "step" => pump::step,
        "wait" => pump::wait,
        "backoff" => pump::backoff,
        "retry" => pump::retry,
        "leave" => pump::leave,
        "check_run" => pump::check_run,
        "check_poll" => pump::check_poll,
        "check_iter" => channel::check_iter,
        "receive_next" => channel::receive_next,
    );
    let front: Table = lua.load(FRONT).set_name("=queue").call(steps)?;

    let methods = lua.create_table()?;
    set!(methods,
        "push" => queue::push,
        "stop" => queue::stop,
        "is_stopped" => queue::is_stopped,
        "size" => queue::size,
        "empty" => queue::empty,
        "clear" => queue::clear,
        "metrics" => queue::metrics,
        "in_flight" => queue::in_flight,
        "next_due" => queue::next_due,
    );
    for name in ["run", "poll"] {
        methods.set(name, front.get::<mlua::Function>(name)?)?;
    }
    let meta = lua.create_table()?;
    set!(meta,
        "__len" => queue::size,
        "__tostring" => queue::tostring,
        "__gc" => queue::finalize,
        "__close" => queue::close_scope,
    );
    class::<queue::Queue>(lua, &meta, methods)?;

    let methods = lua.create_table()?;
    set!(methods,
        "send" => channel::send,
        "try_send" => channel::try_send,
        "receive" => channel::receive,
        "try_receive" => channel::try_receive,
        "close" => channel::close,
        "is_closed" => channel::is_closed,
        "len" => channel::len,
        "cap" => channel::cap,
        "stop" => channel::stop,
    );
    methods.set("iter", front.get::<mlua::Function>("iter")?)?;
    let meta = lua.create_table()?;
    set!(meta,
        "__len" => channel::len,
        "__tostring" => channel::tostring,
        "__gc" => channel::finalize,
        "__close" => channel::close_scope,
    );
    class::<channel::Channel>(lua, &meta, methods)?;

    let meta = lua.create_table()?;
    set!(meta, "__gc" => wait::finalize);
    function(lua, wait::open)?.call::<()>(meta)?;

    let module = lua.create_table()?;
    set!(module,
        "new" => queue::new,
        "channel" => channel::new,
        "after" => timer::after,
        "tick" => timer::tick,
        "sleep" => wait::sleep,
        "now" => wait::now,
    );
    module.set("VERSION", VERSION)?;
    module.set("_VERSION", format!("queue {VERSION}"))?;
    Ok(module)
}

/// Makes `meta` the metatable of all `T`s.
fn class<T: Object>(lua: &Lua, meta: &Table, methods: Table) -> Result<()> {
    meta.set("__name", T::NAME)?;
    meta.set("__index", methods)?;
    function(lua, keep::<T>)?.call(meta)
}

fn keep<T: Object>(l: State) -> Outcome {
    l.keep_metatable::<T>();
    Ok(0)
}
