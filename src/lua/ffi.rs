//! The border to the Lua C API, and the only file with `unsafe` in it.
//!
//! [`State`] makes the calls of the C API that this house needs, with these rules:
//!
//! - A body is a plain function `fn(State) -> Outcome`. [`function`] wraps it in a trampoline that
//!   raises only after the body has returned, when nothing droppable is left.
//! - A method marked *may raise* can leave the body by a jump that runs no destructor (Lua 5.4), or
//!   by unwinding (`LuaJIT`). Nothing that must be dropped, no lock and no `RefCell` borrow may be
//!   alive across it. It can also run the collector, and so a finalizer that calls this module.
//! - No `State` is kept: the coroutine it belongs to may be collected.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::slice;

use mlua::ffi;

use crate::core::poll::Signal;

pub use mlua::ffi::{LUA_TBOOLEAN, LUA_TNIL, LUA_TNONE, LUA_TNUMBER, LUA_TSTRING, LUA_TTABLE};

/// What a body returns in place of a number of results: the coroutine is to be suspended, and the
/// body's continuation says how it goes on.
pub const PARK: c_int = -1;

/// Where a C function can be continued after a yield it yields by itself; elsewhere it returns a
/// token, and a wrapper in `front.lua` yields.
pub const CONTINUES: bool = cfg!(any(feature = "lua53", feature = "lua54", feature = "lua55"));

/// Whether a coroutine can yield here is known only once it has tried.
pub const MUST_TRY: bool = cfg!(feature = "lua52");

/// What a coroutine yields to its pump, and scripts never get hold of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// The job waits.
    Park,
    /// The job is done.
    Done,
}

impl Token {
    /// As a Lua value.
    pub fn value(self) -> mlua::Value {
        mlua::Value::LightUserData(mlua::LightUserData(self.address()))
    }

    fn address(self) -> *mut c_void {
        static PARK: Key = Key(0);
        static DONE: Key = Key(0);
        ptr::from_ref(match self {
            Self::Park => &PARK,
            Self::Done => &DONE,
        })
        .cast_mut()
        .cast()
    }
}

/// How a coroutine came back from [`State::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It was not resumed, since it is not suspended by a yield.
    Not,
    /// It yielded this, and perhaps more, which is dropped.
    Token(Token),
    /// It yielded so many values, which are on the top.
    Values(c_int),
    /// It raised the error that is on the top.
    Raised,
}

/// The error value lies on the top of the stack. `Copy`, so that raising it leaves nothing behind.
#[derive(Clone, Copy, Debug)]
pub struct Fail;

/// How many values on the top of the stack a function returns, or that it raises.
pub type Outcome = Result<c_int, Fail>;

/// The upvalue-free name of something in the registry; its address counts.
#[derive(Debug)]
pub struct Key(#[allow(dead_code, reason = "gives each key an address of its own")] pub u8);

/// A Rust value that lives in a userdata.
pub trait Object: 'static {
    /// Tells blocks of this type from all others, and finds the metatable in the registry.
    const KEY: &'static Key;
    /// What error messages call it.
    const NAME: &'static str;
}

/// What a userdata of ours holds.
#[repr(C)]
struct Block<T> {
    /// The address of `T::KEY` while `value` is initialised, null before and after.
    key: *const Key,
    value: MaybeUninit<T>,
}

/// How the code at some level was called, as far as error messages care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledAs {
    /// `object:name()`.
    Method,
    /// Through `pcall`, a hook or the like, where the interpreter knows no name.
    Nameless,
    /// As a global, a local, a field.
    Named,
}

/// A number, with the subtype that it has on 5.3 and later.
#[derive(Clone, Copy, Debug)]
pub enum Exact {
    Integer(i64),
    Float(f64),
}

/// The Lua state that called, for the time of the call.
#[derive(Clone, Copy, Debug)]
pub struct State(*mut ffi::lua_State);

/// Makes a Lua function of a body that never parks.
pub fn function<F>(lua: &mlua::Lua, body: F) -> mlua::Result<mlua::Function>
where
    F: Fn(State) -> Outcome + Copy + 'static,
{
    parking(lua, body, |_| Ok(0))
}

/// Makes a Lua function of a body that may [`PARK`], and of what goes on after that: `resume` may
/// park again. Only where the Lua [`CONTINUES`] is it part of the function.
pub fn parking<F, R>(lua: &mlua::Lua, body: F, resume: R) -> mlua::Result<mlua::Function>
where
    F: Fn(State) -> Outcome + Copy + 'static,
    R: Fn(State) -> Outcome + Copy + 'static,
{
    let function = trampoline(body, resume);
    // SAFETY: the trampoline keeps the contract of a `lua_CFunction`: it reads its arguments from
    // the stack, returns the number of results that lie on its top, raises by `lua_error`, and
    // yields by `lua_yieldk`. `exec_raw` runs protected, with room on the stack.
    unsafe {
        lua.exec_raw((), |l| {
            ffi::lua_rawgetp(l, ffi::LUA_REGISTRYINDEX, ptr::from_ref(&COROUTINES).cast());
            ffi::lua_pushcclosure(l, function, 1);
        })
    }
}

/// In the registry, and the upvalue of every function: a table from the coroutines of jobs, which it
/// does not hold, to what the face knows of them.
static COROUTINES: Key = Key(5);

/// The trampoline of a body. `F` and `R` are functions' own types, which have one value and no
/// size, so the types are all that the trampoline needs to know.
fn trampoline<F, R>(_body: F, _resume: R) -> ffi::lua_CFunction
where
    F: Fn(State) -> Outcome + Copy + 'static,
    R: Fn(State) -> Outcome + Copy + 'static,
{
    const {
        assert!(mem::size_of::<F>() + mem::size_of::<R>() == 0, "a body captures nothing");
    };
    enter::<F, R>
}

unsafe extern "C-unwind" fn enter<F, R>(l: *mut ffi::lua_State) -> c_int
where
    F: Fn(State) -> Outcome + Copy + 'static,
    R: Fn(State) -> Outcome + Copy + 'static,
{
    // SAFETY: `F` has no size, so a dangling, aligned pointer to it is valid; `trampoline` was
    // given a value of it, so the type is inhabited.
    let body = unsafe { ptr::NonNull::<F>::dangling().as_ref() };
    match body(State(l)) {
        // SAFETY: nothing droppable is alive, here and in the body, which has returned.
        Ok(PARK) => unsafe { park::<R>(l) },
        Ok(results) => results,
        // SAFETY: the same, and the error value is on the top of the stack.
        Err(Fail) => unsafe { ffi::lua_error(l) },
    }
}

#[cfg(any(feature = "lua53", feature = "lua54", feature = "lua55"))]
unsafe fn park<R>(l: *mut ffi::lua_State) -> c_int
where
    R: Fn(State) -> Outcome + Copy + 'static,
{
    unsafe extern "C-unwind" fn go_on<R>(
        l: *mut ffi::lua_State,
        _status: c_int,
        _context: ffi::lua_KContext,
    ) -> c_int
    where
        R: Fn(State) -> Outcome + Copy + 'static,
    {
        // SAFETY: this is entered as a function of `R` is, and its contract is the same.
        unsafe { enter::<R, R>(l) }
    }
    // SAFETY: the caller has seen that this coroutine can yield.
    unsafe {
        ffi::lua_pushlightuserdata(l, Token::Park.address());
        ffi::lua_yieldk(l, 1, 0, Some(go_on::<R>))
    }
}

#[cfg(any(feature = "lua51", feature = "lua52", feature = "luajit"))]
#[allow(clippy::extra_unused_type_parameters, reason = "elsewhere it is what goes on")]
unsafe fn park<R>(l: *mut ffi::lua_State) -> c_int {
    // SAFETY: there is room for a result.
    unsafe { ffi::lua_pushlightuserdata(l, Token::Park.address()) };
    1
}

/// In the registry: [`run_protected`], so that it can be called without allocating.
static RUN_PROTECTED: Key = Key(7);

/// Calls the body whose address is at 1, with the rest of the stack.
unsafe extern "C-unwind" fn run_protected(l: *mut ffi::lua_State) -> c_int {
    // SAFETY: `protected` passes the address of its `body`, which is alive until this returns. What
    // is raised jumps over the frame of that body alone, and what it holds belongs to the caller.
    unsafe {
        let body = ffi::lua_touserdata(l, 1).cast::<&mut dyn FnMut(State) -> Outcome>();
        ffi::lua_remove(l, 1);
        match (*body)(State(l)) {
            Ok(results) => results,
            Err(Fail) => ffi::lua_error(l),
        }
    }
}

/// Does nothing. Calling it gives pending hooks their turn.
unsafe extern "C-unwind" fn nothing(_l: *mut ffi::lua_State) -> c_int {
    0
}

// SAFETY, for every block of this `impl` that has no line of its own: `self.0` is the state that
// called, valid until the call returns, with the 20 free stack slots that a C function starts with
// (`room` asks for more), and the index is one that the body knows to be in use.
#[allow(clippy::undocumented_unsafe_blocks, reason = "said once, above")]
impl State {
    // --- the stack -----------------------------------------------------------------------------

    pub fn top(self) -> c_int {
        unsafe { ffi::lua_gettop(self.0) }
    }

    pub fn set_top(self, top: c_int) {
        unsafe { ffi::lua_settop(self.0, top) }
    }

    pub fn pop(self, n: c_int) {
        unsafe { ffi::lua_pop(self.0, n) }
    }

    pub fn push_nil(self) {
        unsafe { ffi::lua_pushnil(self.0) }
    }

    pub fn push_bool(self, value: bool) {
        unsafe { ffi::lua_pushboolean(self.0, c_int::from(value)) }
    }

    /// An integer; a number like any other where the Lua has no integers.
    pub fn push_integer(self, value: i64) {
        unsafe { ffi::lua_pushinteger(self.0, value) }
    }

    /// A count. Those beyond `i64::MAX` do not come up.
    pub fn push_count(self, value: u64) {
        self.push_integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub fn push_number(self, value: f64) {
        unsafe { ffi::lua_pushnumber(self.0, value) }
    }

    /// Copies the value at `index` to the top.
    pub fn push_value(self, index: c_int) {
        unsafe { ffi::lua_pushvalue(self.0, index) }
    }

    /// Moves the top to `index`, over what is there.
    pub fn replace(self, index: c_int) {
        unsafe { ffi::lua_replace(self.0, index) }
    }

    /// Removes the value at `index` and closes the gap.
    pub fn remove(self, index: c_int) {
        unsafe { ffi::lua_remove(self.0, index) }
    }

    /// *May raise.*
    pub fn push_bytes(self, bytes: &[u8]) {
        // SAFETY: pointer and length are those of a slice.
        unsafe { ffi::lua_pushlstring(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// *May raise.*
    pub fn push_str(self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    /// Joins the `n` strings on the top. *May raise.*
    pub fn concat(self, n: c_int) {
        unsafe { ffi::lua_concat(self.0, n) }
    }

    // --- reading -------------------------------------------------------------------------------

    /// The type of the value at `index`, one of the `LUA_T…`.
    pub fn kind(self, index: c_int) -> c_int {
        unsafe { ffi::lua_type(self.0, index) }
    }

    pub fn is_nil_or_none(self, index: c_int) -> bool {
        self.kind(index) <= LUA_TNIL
    }

    pub fn to_bool(self, index: c_int) -> bool {
        unsafe { ffi::lua_toboolean(self.0, index) != 0 }
    }

    /// The number at `index`. A string is none, whatever it says.
    pub fn to_number(self, index: c_int) -> Option<f64> {
        (self.kind(index) == LUA_TNUMBER).then(|| unsafe { ffi::lua_tonumber(self.0, index) })
    }

    /// The number at `index` where it is an integer: of that subtype, or a float that equals one.
    pub fn to_integer(self, index: c_int) -> Option<i64> {
        if self.is_integer(index) {
            return Some(unsafe { ffi::lua_tointeger(self.0, index) });
        }
        let number = self.to_number(index)?;
        // The cast cuts off a fraction, saturates, and makes 0 of NaN: then it does not come back.
        // 2^63 does come back, as it is what the largest integer rounds to, but is out of range.
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
        let (integer, back) = (number as i64, number as i64 as f64);
        #[allow(clippy::float_cmp)]
        (back == number && number < 2f64.powi(63)).then_some(integer)
    }

    /// The slot number at `index`, which `front.lua` passes as it got it.
    pub fn to_slot(self, index: c_int) -> u32 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        unsafe {
            ffi::lua_tonumber(self.0, index) as u32
        }
    }

    /// The number at `index`, of its own subtype; the caller knows that there is one.
    pub fn to_exact(self, index: c_int) -> Exact {
        if self.is_integer(index) {
            Exact::Integer(unsafe { ffi::lua_tointeger(self.0, index) })
        } else {
            Exact::Float(unsafe { ffi::lua_tonumber(self.0, index) })
        }
    }

    /// True for a number of the integer subtype, which 5.3 and later have.
    pub fn is_integer(self, index: c_int) -> bool {
        cfg!(any(feature = "lua53", feature = "lua54", feature = "lua55"))
            && unsafe { ffi::lua_isinteger(self.0, index) != 0 }
    }

    /// The bytes of the string at `index`. They are valid while it stays on the stack.
    pub fn bytes_at(&self, index: c_int) -> Option<&[u8]> {
        if self.kind(index) != LUA_TSTRING {
            return None;
        }
        let mut length = 0;
        let bytes = unsafe { ffi::lua_tolstring(self.0, index, &raw mut length) };
        // SAFETY: Lua gives the address and the length of a string that the stack keeps alive.
        (!bytes.is_null()).then(|| unsafe { slice::from_raw_parts(bytes.cast(), length) })
    }

    /// Writes the name of the type of the value at `index` with `write`, as the stock library
    /// would: `__name`, where a userdata's or table's metatable has one. *May raise.*
    pub fn type_name<R>(self, index: c_int, write: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: `lua_typename` gives a static string; that of `__name` is on the stack.
        unsafe {
            if ffi::luaL_getmetafield(self.0, index, c"__name".as_ptr()) != LUA_TNIL {
                if let Some(name) = self.bytes_at(-1) {
                    let written = write(name);
                    self.pop(1);
                    return written;
                }
                self.pop(1);
            }
            match self.kind(index) {
                ffi::LUA_TLIGHTUSERDATA => write(b"light userdata"),
                kind => write(CStr::from_ptr(ffi::lua_typename(self.0, kind)).to_bytes()),
            }
        }
    }

    /// Writes a number as Lua prints it. *May raise.*
    pub fn number_text<R>(self, index: c_int, write: impl FnOnce(&[u8]) -> R) -> R {
        // The conversion changes the value in place, hence the copy.
        self.push_value(index);
        let mut length = 0;
        let bytes = unsafe { ffi::lua_tolstring(self.0, -1, &raw mut length) };
        let written = if bytes.is_null() {
            write(b"?")
        } else {
            // SAFETY: as in `bytes_at`.
            write(unsafe { slice::from_raw_parts(bytes.cast(), length) })
        };
        self.pop(1);
        written
    }

    /// A function, or a value with a `__call`. *May raise.*
    pub fn is_callable(self, index: c_int) -> bool {
        if self.kind(index) == ffi::LUA_TFUNCTION {
            return true;
        }
        let has_call =
            unsafe { ffi::luaL_getmetafield(self.0, index, c"__call".as_ptr()) != LUA_TNIL };
        if has_call {
            self.pop(1);
        }
        has_call
    }

    pub fn has_metatable(self, index: c_int) -> bool {
        let has = unsafe { ffi::lua_getmetatable(self.0, index) != 0 };
        if has {
            self.pop(1);
        }
        has
    }

    /// The address of a light userdata.
    pub fn to_address(self, index: c_int) -> Option<*mut c_void> {
        (self.kind(index) == ffi::LUA_TLIGHTUSERDATA)
            .then(|| unsafe { ffi::lua_touserdata(self.0, index) })
    }

    pub fn push_address(self, address: *mut c_void) {
        unsafe { ffi::lua_pushlightuserdata(self.0, address) }
    }

    /// Tells tables apart.
    pub fn identity(self, index: c_int) -> usize {
        unsafe { ffi::lua_topointer(self.0, index) as usize }
    }

    pub fn raw_equal(self, a: c_int, b: c_int) -> bool {
        unsafe { ffi::lua_rawequal(self.0, a, b) != 0 }
    }

    // --- tables --------------------------------------------------------------------------------

    /// *May raise.*
    pub fn new_table(self, array: c_int, fields: c_int) {
        unsafe { ffi::lua_createtable(self.0, array, fields) }
    }

    /// The length of a table, past any metamethod.
    pub fn raw_len(self, index: c_int) -> usize {
        unsafe { ffi::lua_rawlen(self.0, index) }
    }

    /// Pops a key and a value and sets the one to the other in `table`. *May raise.*
    pub fn raw_set_pair(self, table: c_int) {
        unsafe { ffi::lua_rawset(self.0, table) }
    }

    /// Replaces the key on the top by the next key and its value, or pops it and returns false at
    /// the end. *May raise.*
    pub fn next(self, table: c_int) -> bool {
        unsafe { ffi::lua_next(self.0, table) != 0 }
    }

    /// Pushes `table[key]`, past any metamethod. *May raise.*
    pub fn raw_field(self, table: c_int, key: &str) {
        self.push_str(key);
        unsafe { ffi::lua_rawget(self.0, table) };
    }

    /// Pops a value and sets `table[key]` to it; `table` is just below. *May raise.*
    pub fn set_field(self, key: &CStr) {
        // SAFETY: the key is a string that ends in a zero.
        unsafe { ffi::lua_setfield(self.0, -2, key.as_ptr()) }
    }

    /// Pushes `table[n]`.
    pub fn raw_get(self, table: c_int, n: u32) {
        unsafe { ffi::lua_rawgeti(self.0, table, n.into()) };
    }

    /// Pops a value and sets `table[n]` to it. *May raise*, unless something is there already.
    pub fn raw_set(self, table: c_int, n: u32) {
        unsafe { ffi::lua_rawseti(self.0, table, n.into()) };
    }

    /// Sets in the table at `to` all that is in the table at `from`, whose keys are slots. Returns
    /// the highest. *May raise.*
    pub fn copy_all(self, from: c_int, to: c_int) -> u32 {
        let mut highest = 0;
        self.push_nil();
        while self.next(from) {
            let slot = self.to_slot(-2);
            highest = highest.max(slot);
            self.raw_set(to, slot);
        }
        highest
    }

    // --- objects -------------------------------------------------------------------------------

    /// The object at `index`, where it is a live `T`. It is valid while the value stays on the
    /// stack and is not finalized: get it anew after anything that can run a script.
    pub fn object<T: Object>(&self, index: c_int) -> Option<&T> {
        let block = self.block::<T>(index)?;
        // SAFETY: the key says that the value is initialised.
        Some(unsafe { (*block).value.assume_init_ref() })
    }

    /// The object at `index`, for functions that only `front.lua` calls: it passes what it checked.
    pub fn trusted<T: Object>(&self, index: c_int) -> Option<&T> {
        // SAFETY: it is a userdata of ours, so the key can be read; that says whether it is alive.
        unsafe {
            let block = ffi::lua_touserdata(self.0, index).cast::<Block<T>>();
            (!block.is_null() && ptr::eq((*block).key, T::KEY))
                .then(|| (*block).value.assume_init_ref())
        }
    }

    fn block<T: Object>(self, index: c_int) -> Option<*mut Block<T>> {
        // SAFETY: `lua_touserdata` gives null for other types. Only a full userdata has this
        // length, so the key can be read; the address of `T::KEY` occurs nowhere but in blocks
        // that `new_object` made.
        unsafe {
            let block = ffi::lua_touserdata(self.0, index).cast::<Block<T>>();
            let ours = !block.is_null()
                && ffi::lua_rawlen(self.0, index) == mem::size_of::<Block<T>>()
                && ptr::eq((*block).key, T::KEY);
            ours.then_some(block)
        }
    }

    /// Pushes a new object with an empty table of values. *May raise*; `make` is called last.
    pub fn new_object<T: Object>(self, make: impl FnOnce() -> T) {
        self.try_new_object(|| Some(make()));
    }

    /// The same, where `make` may think better of it; then what is pushed is of no use.
    pub fn try_new_object<T: Object>(self, make: impl FnOnce() -> Option<T>) {
        const { assert!(mem::align_of::<T>() <= mem::align_of::<f64>(), "Lua aligns no further") };
        self.new_table(0, 0);
        // SAFETY: the block is written before anything can look at it: it gets its metatable, and
        // with that its finalizer, when it is whole.
        unsafe {
            let block = ffi::lua_newuserdata(self.0, mem::size_of::<Block<T>>()).cast::<Block<T>>();
            (*block).key = ptr::null();
            self.push_value(-2);
            ffi::lua_setuservalue(self.0, -2);
            self.remove(-2);
            ffi::lua_rawgetp(self.0, ffi::LUA_REGISTRYINDEX, ptr::from_ref(T::KEY).cast());
            if let Some(value) = make() {
                (*block).value.write(value);
                (*block).key = T::KEY;
                ffi::lua_setmetatable(self.0, -2);
            } else {
                self.pop(1);
            }
        }
    }

    /// Drops the object at `index`, where it is a live `T`; from then on it is none.
    pub fn finalize<T: Object>(self, index: c_int) {
        if let Some(block) = self.block::<T>(index) {
            // SAFETY: the value is initialised, and with the key gone nobody reads it again.
            unsafe {
                (*block).key = ptr::null();
                (*block).value.assume_init_drop();
            }
        }
    }

    /// Pops a table and makes it the metatable of all `T`s to come. *May raise.*
    pub fn keep_metatable<T: Object>(self) {
        unsafe { ffi::lua_rawsetp(self.0, ffi::LUA_REGISTRYINDEX, ptr::from_ref(T::KEY).cast()) }
    }

    /// Pushes the table of values of the object at `index`.
    pub fn push_values(self, index: c_int) {
        unsafe { ffi::lua_getuservalue(self.0, index) };
    }

    /// Pops a table and makes it the table of values of the object at `index`.
    pub fn set_values(self, index: c_int) {
        unsafe { ffi::lua_setuservalue(self.0, index) };
    }

    /// Pushes what the registry holds under `key`.
    pub fn push_registered(self, key: &'static Key) {
        unsafe { ffi::lua_rawgetp(self.0, ffi::LUA_REGISTRYINDEX, ptr::from_ref(key).cast()) };
    }

    /// Pops a value and puts it in the registry under `key`. *May raise.*
    pub fn register(self, key: &'static Key) {
        unsafe { ffi::lua_rawsetp(self.0, ffi::LUA_REGISTRYINDEX, ptr::from_ref(key).cast()) }
    }

    // --- coroutines ----------------------------------------------------------------------------

    /// The token at `index`, if it is one.
    pub fn token(self, index: c_int) -> Option<Token> {
        let address = unsafe { ffi::lua_touserdata(self.0, index) };
        [Token::Park, Token::Done].into_iter().find(|token| ptr::eq(token.address(), address))
    }

    /// Resumes the coroutine at `coroutine` with the `arguments` values on the top, which it takes
    /// from there. That runs scripts; what they raise ends the coroutine and not the caller.
    pub fn resume(self, coroutine: c_int, arguments: c_int) -> Came {
        // SAFETY: the coroutine lies on this stack, which keeps it alive. It is one that yielded, so
        // it can be resumed, and values move only where there is room for them.
        unsafe {
            let other = ffi::lua_tothread(self.0, coroutine);
            if other.is_null()
                || ffi::lua_status(other) != ffi::LUA_YIELD
                || ffi::lua_checkstack(other, arguments) == 0
            {
                return Came::Not;
            }
            ffi::lua_xmove(self.0, other, arguments);
            let mut values = 0;
            if ffi::lua_resume(other, self.0, arguments, &raw mut values) > ffi::LUA_YIELD {
                ffi::lua_xmove(other, self.0, 1);
                return Came::Raised;
            }
            if values > 0
                && let Some(token) = Self(other).token(-values)
            {
                ffi::lua_pop(other, values);
                return Came::Token(token);
            }
            // Room for what is done with them, as well.
            if ffi::lua_checkstack(self.0, values + ffi::LUA_MINSTACK) == 0 {
                ffi::lua_pop(other, values);
                self.push_str("too many results to resume");
                return Came::Raised;
            }
            ffi::lua_xmove(other, self.0, values);
            Came::Values(values)
        }
    }

    /// Pushes what the face knows of the running coroutine, or nil.
    pub fn push_own(self) {
        unsafe {
            ffi::lua_pushthread(self.0);
            ffi::lua_rawget(self.0, ffi::lua_upvalueindex(1));
        }
    }

    /// Pops a value and notes it for the coroutine at `coroutine`. *May raise.*
    pub fn set_own(self, coroutine: c_int) {
        self.push_value(coroutine);
        unsafe {
            ffi::lua_insert(self.0, -2);
            ffi::lua_rawset(self.0, ffi::lua_upvalueindex(1));
        }
    }

    /// Pops a table with weak keys, for what is known of coroutines; a state that loads the module
    /// once more keeps the one that it has. *May raise.*
    pub fn keep_coroutines(self) {
        self.push_registered(&COROUTINES);
        let is_first = self.is_nil_or_none(-1);
        self.pop(1);
        if is_first {
            self.register(&COROUTINES);
        } else {
            self.pop(1);
        }
    }

    /// The running coroutine can yield here. Stock 5.1 and 5.2 cannot tell; there the yield itself
    /// does.
    #[allow(clippy::unused_self, reason = "only some Luas can be asked")]
    pub fn can_yield(self) -> bool {
        #[cfg(any(feature = "lua51", feature = "lua52"))]
        return true;
        #[cfg(feature = "luajit")]
        {
            unsafe extern "C-unwind" {
                // LuaJIT exports it; the bindings do not know it.
                fn lua_isyieldable(l: *mut ffi::lua_State) -> c_int;
            }
            unsafe { lua_isyieldable(self.0) != 0 }
        }
        #[cfg(any(feature = "lua53", feature = "lua54", feature = "lua55"))]
        unsafe {
            ffi::lua_isyieldable(self.0) != 0
        }
    }

    // --- where an error is raised --------------------------------------------------------------

    /// Pushes the position of the code at `level`, as error messages begin with it, or "". *May
    /// raise.*
    pub fn push_where(self, level: c_int) {
        unsafe { ffi::luaL_where(self.0, level) }
    }

    /// How the function at `level` was called. *May raise.*
    pub fn called_as(self, level: c_int) -> CalledAs {
        // SAFETY: an all-zero `lua_Debug` is valid, and `lua_getinfo` gets one that `lua_getstack`
        // has filled in. `namewhat` is a static string.
        unsafe {
            let mut about: ffi::lua_Debug = mem::zeroed();
            if ffi::lua_getstack(self.0, level, &raw mut about) == 0 {
                return CalledAs::Nameless;
            }
            ffi::lua_getinfo(self.0, c"n".as_ptr(), &raw mut about);
            if about.namewhat.is_null() {
                return CalledAs::Nameless;
            }
            match CStr::from_ptr(about.namewhat).to_bytes() {
                b"method" => CalledAs::Method,
                b"" => CalledAs::Nameless,
                _ => CalledAs::Named,
            }
        }
    }

    // --- hooks and the collector ---------------------------------------------------------------

    /// Pushes a function that does nothing, for [`State::breathe`]. *May raise.*
    pub fn push_nothing(self) {
        unsafe { ffi::lua_pushcfunction(self.0, nothing) }
    }

    /// Gives pending hooks their turn, by a call of the function at `index`. The stock
    /// interpreter's Ctrl-C is such a hook. It runs protected, so that the caller can undo what it
    /// began before the error goes on.
    pub fn breathe(self, index: c_int) -> Result<(), Fail> {
        self.adopt_hook();
        self.push_value(index);
        match unsafe { ffi::lua_pcall(self.0, 0, 0, 0) } {
            ffi::LUA_OK => Ok(()),
            _ => Err(Fail),
        }
    }

    /// Runs `body` protected, in a frame of its own that begins with a copy of the value at
    /// `argument`, or empty for 0. Whatever is raised in it, what the caller holds is dropped
    /// as ever. Leaves `results` values, or the error, on the top.
    pub fn protected(
        self,
        argument: c_int,
        results: c_int,
        mut body: &mut dyn FnMut(Self) -> Outcome,
    ) -> Result<(), Fail> {
        self.push_registered(&RUN_PROTECTED);
        // SAFETY: `run_protected` is what the registry holds, and gets the address of a reference
        // that outlives the call.
        unsafe {
            ffi::lua_pushlightuserdata(self.0, (&raw mut body).cast());
            if argument != 0 {
                ffi::lua_pushvalue(self.0, argument);
            }
            match ffi::lua_pcall(self.0, 1 + c_int::from(argument != 0), results, 0) {
                ffi::LUA_OK => Ok(()),
                _ => Err(Fail),
            }
        }
    }

    /// Puts what [`State::protected`] needs into the registry. *May raise.*
    pub fn prepare_protected(self) {
        unsafe { ffi::lua_pushcfunction(self.0, run_protected) };
        self.register(&RUN_PROTECTED);
    }

    /// Moves the interpreter's Ctrl-C hook from the main coroutine to this one, where it would
    /// never be seen. The signal handler knows the main one only.
    #[cfg(any(feature = "lua52", feature = "lua53", feature = "lua54", feature = "lua55"))]
    fn adopt_hook(self) {
        const STOCK: c_int = ffi::LUA_MASKCALL | ffi::LUA_MASKRET | ffi::LUA_MASKCOUNT;
        // SAFETY: the registry keeps the main coroutine alive for as long as the state lives.
        unsafe {
            let is_main = ffi::lua_pushthread(self.0) == 1;
            self.pop(1);
            if is_main {
                return;
            }
            ffi::lua_rawgeti(self.0, ffi::LUA_REGISTRYINDEX, ffi::LUA_RIDX_MAINTHREAD);
            let main = ffi::lua_tothread(self.0, -1);
            self.pop(1);
            if main.is_null() {
                return;
            }
            let hook = ffi::lua_gethook(main);
            let mask = ffi::lua_gethookmask(main);
            if hook.is_some() && mask & STOCK == STOCK && ffi::lua_gethookcount(main) == 1 {
                ffi::lua_sethook(main, None, 0, 0);
                ffi::lua_sethook(self.0, hook, mask, 1);
            }
        }
    }

    /// `LuaJIT` has one hook for all coroutines; stock 5.1 offers no way to the main one.
    #[cfg(any(feature = "lua51", feature = "luajit"))]
    #[allow(clippy::unused_self, reason = "elsewhere there is something to do")]
    fn adopt_hook(self) {}

    /// Collects all garbage. *May raise.*
    pub fn collect(self) {
        unsafe { ffi::lua_gc(self.0, ffi::LUA_GCCOLLECT, 0) };
    }

    /// Tells the collector of `kilobytes` that it does not see, unless it was stopped. *May raise.*
    pub fn account(self, kilobytes: c_int) {
        // Stock 5.1 cannot be asked, and answers that it knows no such question.
        const IS_RUNNING: c_int = 9;
        unsafe {
            if ffi::lua_gc(self.0, IS_RUNNING, 0) != 0 {
                ffi::lua_gc(self.0, ffi::LUA_GCSTEP, kilobytes);
            }
        }
    }
}

/// Has the processor fetch what lies at `address`, if it can, while it does something else.
#[inline]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing and faults at no address. Two lines hold what is used.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
        _mm_prefetch::<_MM_HINT_T0>(address.wrapping_byte_add(mem::size_of::<T>() - 1).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// [`ticks`] counts evenly, asleep or awake.
pub fn are_ticks_steady() -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has the instruction, and it touches no memory.
    #[allow(unused_unsafe, reason = "later compilers take it for safe")]
    unsafe {
        use std::arch::x86_64::__cpuid;
        const MOST: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        const INVARIANT: u32 = 1 << 8;
        __cpuid(MOST).eax >= POWER && __cpuid(POWER).edx & INVARIANT != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The processor's count of ticks; 0 where there is none that can be read at once.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has the instruction, and it touches no memory.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Asks how late this thread may be woken, in nanoseconds, or says it.
#[cfg(target_os = "linux")]
fn timer_slack(what: c_int, nanos: libc::c_ulong) -> c_int {
    const NONE: libc::c_ulong = 0;
    // SAFETY: the call takes five numbers of these types, and touches no memory.
    unsafe { libc::prctl(what, nanos, NONE, NONE, NONE) }
}

/// Calls `spawn` such that the threads it starts are fit for timers. They get no signal, as a signal
/// handler of the interpreter belongs on the interpreter's own thread; and Linux wakes them when they
/// want it, not up to 50 us later, as it may do to save power.
pub fn for_timers<R>(spawn: impl FnOnce() -> R) -> R {
    // SAFETY: both sets are written before they are read. `spawn` does not unwind: it calls no Lua.
    unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        // A thread inherits this. Where the system knows no such thing it refuses, and all is well.
        #[cfg(target_os = "linux")]
        let slack = timer_slack(libc::PR_GET_TIMERSLACK, 0);
        #[cfg(target_os = "linux")]
        timer_slack(libc::PR_SET_TIMERSLACK, 1);
        let spawned = spawn();
        #[cfg(target_os = "linux")]
        if let Ok(slack @ 1..) = libc::c_ulong::try_from(slack) {
            timer_slack(libc::PR_SET_TIMERSLACK, slack);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        spawned
    }
}

/// A file descriptor that polls readable while it is set: an eventfd on Linux, elsewhere a pipe.
/// It is closed with the value.
#[cfg(unix)]
pub struct Descriptor {
    read: c_int,
    write: c_int,
}

#[cfg(unix)]
impl Descriptor {
    /// # Errors
    /// The system's, where it refuses one.
    pub fn new() -> std::io::Result<Self> {
        // SAFETY: the calls get valid arguments, and what they answer is looked at.
        #[cfg(target_os = "linux")]
        unsafe {
            match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
                -1 => Err(std::io::Error::last_os_error()),
                both => Ok(Self { read: both, write: both }),
            }
        }
        // SAFETY: the same.
        #[cfg(not(target_os = "linux"))]
        unsafe {
            let mut ends = [0; 2];
            if libc::pipe(ends.as_mut_ptr()) == -1 {
                return Err(std::io::Error::last_os_error());
            }
            for end in ends {
                libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
                libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK);
            }
            Ok(Self { read: ends[0], write: ends[1] })
        }
    }

    /// The number of the descriptor to poll.
    pub fn number(&self) -> c_int {
        self.read
    }
}

#[cfg(unix)]
impl Signal for Descriptor {
    fn set(&self, on: bool) {
        let mut bytes = 1u64.to_ne_bytes();
        // SAFETY: the descriptors are open for as long as `self` lives, and the buffer is valid.
        // They do not block, and there is at most one message in them, so nothing can fail.
        unsafe {
            if on {
                libc::write(self.write, bytes.as_ptr().cast(), bytes.len());
            } else {
                libc::read(self.read, bytes.as_mut_ptr().cast(), bytes.len());
            }
        }
    }
}

#[cfg(unix)]
impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: nobody else closes them, and nobody uses them after this.
        unsafe {
            libc::close(self.read);
            if self.write != self.read {
                libc::close(self.write);
            }
        }
    }
}
