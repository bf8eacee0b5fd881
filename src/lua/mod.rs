//! The face: what a script sees of the core.
//!
//! Rust checks arguments, keeps Lua values where the collector sees them, and never calls a user's
//! function; `front.lua` does that.
#![allow(clippy::unnecessary_wraps, reason = "bodies of Lua functions have one signature")]

mod args;
mod backoff;
mod channel;
mod copy;
mod crew;
mod failed;
mod ffi;
mod flight;
mod handles;
mod listing;
mod metrics;
mod new;
mod poll;
mod pump;
mod push;
mod queue;
mod select;
mod shared;
mod slots;
mod timer;
mod transfer;
mod turns;
mod wait;

use mlua::{Function, Lua, Result, Table};

use ffi::{CONTINUES, MUST_TRY, Object, Outcome, State, Token, function, parking};

/// The part of the face that is Lua, embedded so that one file is all there is to install.
const FRONT: &str = include_str!("front.lua");

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Sets functions in a table: `name => body`, or `name => body, resume` for one that may park.
macro_rules! set {
    ($lua:expr, $table:expr, { $($name:literal => $body:expr $(, $resume:expr)?;)* }) => {
        $(set!(@one $lua, $table, $name, $body $(, $resume)?);)*
    };
    (@one $lua:expr, $table:expr, $name:literal, $body:expr) => {
        $table.set($name, function($lua, $body)?)?
    };
    (@one $lua:expr, $table:expr, $name:literal, $body:expr, $resume:expr) => {{
        $table.set($name, parking($lua, $body, $resume)?)?;
        $table.set(concat!($name, "_resumed"), function($lua, $resume)?)?
    }};
}

/// Builds the module's table.
pub fn open(lua: &Lua) -> Result<Table> {
    prepare(lua)?;
    let front: Table = lua.load(FRONT).set_name("=queue").call(steps(lua)?)?;
    queues(lua, &front)?;
    channels(lua, &front)?;

    let module = lua.create_table()?;
    set!(lua, module, {
        "new" => new::new;
        "channel" => channel::new;
        "after" => timer::after;
        "tick" => timer::tick;
        "shared" => shared::open;
        "now" => wait::now;
    });
    share(&front, &module, &["backoff", "select", "sleep"])?;
    module.set("VERSION", VERSION)?;
    module.set("_VERSION", format!("queue {VERSION}"))?;
    Ok(module)
}

/// What the registry of the Lua state holds.
fn prepare(lua: &Lua) -> Result<()> {
    let coroutines = lua.create_table()?;
    let weak = lua.create_table()?;
    weak.set("__mode", "k")?;
    coroutines.set_metatable(Some(weak))?;
    function(lua, |l| {
        l.keep_coroutines();
        l.prepare_protected();
        Ok(0)
    })?
    .call::<()>(coroutines)?;

    let meta = lua.create_table()?;
    set!(lua, meta, { "__gc" => wait::finalize; });
    function(lua, wait::open)?.call::<()>(meta)?;
    let meta = lua.create_table()?;
    set!(lua, meta, { "__gc" => crew::finalize; });
    function(lua, crew::open)?.call::<()>(meta)?;
    let meta = lua.create_table()?;
    set!(lua, meta, { "__gc" => pump::finalize; });
    function(lua, pump::open)?.call::<()>(meta)?;
    let meta = lua.create_table()?;
    set!(lua, meta, { "__gc" => listing::finalize; });
    function(lua, listing::open)?.call(meta)
}

/// What `front.lua` stands on, and scripts do not see.
fn steps(lua: &Lua) -> Result<Table> {
    let steps = lua.create_table()?;
    set!(lua, steps, {
        "check_run" => pump::check_run;
        "check_poll" => pump::check_poll;
        "start" => pump::start;
        "step" => pump::step;
        "ended" => pump::ended;
        "succeed" => pump::succeed;
        "backoff" => pump::backoff;
        "wants_trace" => pump::wants_trace;
        "retry" => pump::retry;
        "leave" => pump::leave;
        "wait" => pump::wait, pump::wait_resumed;
        "advance" => turns::advance;
        "coroutine" => turns::coroutine;
        "equip" => turns::equip;
        "idle" => turns::idle, turns::idle_resumed;
        "abandon" => turns::abandon;
        "land" => turns::land;
        "close" => queue::close_scope;
        "check_iter" => transfer::check_iter;
        "next" => transfer::next, transfer::next_resumed;
        "send" => transfer::send, transfer::send_resumed;
        "receive" => transfer::receive, transfer::receive_resumed;
        "select" => select::select, select::resumed;
        "sleep" => wait::sleep, wait::sleep_resumed;
        "block" => crew::block;
        "check_backoff" => backoff::check;
        "delay" => backoff::delay;
    });
    steps.set("continues", CONTINUES)?;
    steps.set("must_try", MUST_TRY)?;
    for (name, token) in [("park", Token::Park), ("done", Token::Done)] {
        steps.set(name, token.value())?;
    }
    Ok(steps)
}

fn queues(lua: &Lua, front: &Table) -> Result<()> {
    let methods = lua.create_table()?;
    set!(lua, methods, {
        "push" => push::push;
        "every" => push::every;
        "cancel" => handles::cancel;
        "status" => handles::status;
        "set_priority" => handles::set_priority;
        "jobs" => handles::jobs;
        "failed" => failed::failed;
        "retry" => failed::retry;
        "pause" => queue::pause;
        "resume" => queue::resume;
        "is_paused" => queue::is_paused;
        "stop" => queue::stop;
        "is_stopped" => queue::is_stopped;
        "size" => queue::size;
        "empty" => queue::empty;
        "clear" => queue::clear;
        "metrics" => metrics::metrics;
        "in_flight" => queue::in_flight;
        "next_due" => queue::next_due;
        "getfd" => poll::queue_getfd;
    });
    share(front, &methods, &["run", "poll"])?;
    let meta = lua.create_table()?;
    set!(lua, meta, {
        "__len" => queue::size;
        "__tostring" => queue::tostring;
        "__gc" => queue::finalize;
    });
    meta.set("__close", front.get::<Function>("close")?)?;
    class::<queue::Queue>(lua, &meta, methods)
}

fn channels(lua: &Lua, front: &Table) -> Result<()> {
    let methods = lua.create_table()?;
    set!(lua, methods, {
        "try_send" => transfer::try_send;
        "try_receive" => transfer::try_receive;
        "close" => channel::close;
        "is_closed" => channel::is_closed;
        "len" => channel::len;
        "cap" => channel::cap;
        "stop" => channel::stop;
        "getfd" => poll::getfd;
        "dirty" => poll::dirty;
        "pollfd" => poll::pollfd;
        "events" => poll::events;
        "timeout" => poll::timeout;
    });
    share(front, &methods, &["send", "receive", "iter"])?;
    let meta = lua.create_table()?;
    set!(lua, meta, {
        "__len" => channel::len;
        "__eq" => channel::equal;
        "__tostring" => channel::tostring;
        "__gc" => channel::finalize;
        "__close" => channel::close_scope;
    });
    class::<channel::Channel>(lua, &meta, methods)
}

/// Copies functions of `front.lua` to where scripts find them.
fn share(front: &Table, to: &Table, names: &[&str]) -> Result<()> {
    names.iter().try_for_each(|&name| to.set(name, front.get::<Function>(name)?))
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
