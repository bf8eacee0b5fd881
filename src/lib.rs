//! A priority job queue and Go-grade channels for plain Lua.
//!
//! The house has two floors:
//!
//! - [`core`] knows no Lua. It schedules numbers: which job runs next, which value a channel gives,
//!   when to wake. It is safe Rust, and all there is when no Lua feature is chosen.
//! - `lua` is the face. It checks arguments, keeps Lua values where the garbage collector sees them,
//!   and hands the core slot numbers. Its `front.lua` is the only place where a user's function is
//!   called; its `ffi.rs` is the only one with `unsafe`.
//!
//! Jobs and all user code run on the Lua thread that calls the queue. Background threads, which are
//! the timers', see the core alone.

pub mod core;

#[cfg(feature = "face")]
mod lua;

/// What `require("queue")` calls.
#[cfg(feature = "face")]
#[mlua::lua_module(name = "queue")]
fn open(lua: &mlua::Lua) -> mlua::Result<mlua::Table> {
    lua::open(lua)
}
