//! Arguments and options, with the stock library's words where they are wrong.

use std::ffi::c_int;
use std::fmt::{self, Write};

use super::ffi::{
    CONTINUES, CalledAs, Fail, LUA_TBOOLEAN, LUA_TNONE, LUA_TSTRING, LUA_TTABLE, Object, State,
};
use crate::core::OutOfMemory;
use crate::core::clock::Span;

/// A function as error messages know it.
#[derive(Clone, Copy, Debug)]
pub struct Callee {
    pub name: &'static str,
    /// Where its caller stands: 1 for a C function that the user calls, 2 under a wrapper of
    /// `front.lua`.
    level: c_int,
    /// Its first parameter is the object.
    is_method: bool,
    /// Its wrapper passes nil for arguments that were not there, up to this one.
    padded_to: c_int,
}

impl Callee {
    /// A function of the module that the user calls directly.
    pub const fn function(name: &'static str) -> Self {
        Self { name, level: 1, is_method: false, padded_to: 0 }
    }

    /// A method that the user calls directly.
    pub const fn method(name: &'static str) -> Self {
        Self { name, level: 1, is_method: true, padded_to: 0 }
    }

    /// One that may wait: where a C function cannot be continued after a yield, it has a wrapper,
    /// which passes nil for arguments that were not there, up to this one.
    pub const fn parking(self, padded_to: c_int) -> Self {
        if CONTINUES { self } else { Self { level: 2, padded_to, ..self } }
    }

    /// The same under a wrapper of `front.lua`.
    pub const fn wrapped(self) -> Self {
        Self { level: 2, ..self }
    }

    /// Pushes `text` as an error at the caller's line.
    pub fn fail(self, l: State, text: fmt::Arguments<'_>) -> Fail {
        let text = Text::new(text);
        l.push_where(self.level);
        l.push_bytes(text.bytes());
        l.concat(2);
        Fail
    }

    /// The argument at `index` on the stack.
    pub const fn argument(self, index: c_int) -> Given {
        Given { callee: self, index, option: None }
    }

    /// The value at `index` on the stack, which was given as an option.
    pub const fn option(self, option: &'static str, index: c_int) -> Given {
        Given { callee: self, index, option: Some(option) }
    }

    /// `bad option 'KEY' to 'NAME' (unknown option)`, for the key at `index` of a table that is named
    /// `within`.
    fn unknown_option(self, l: State, within: &str, index: c_int) -> Fail {
        let key = match l.bytes_at(index) {
            Some(key) => Text::of(key),
            None if l.to_number(index).is_some() => l.number_text(index, Text::of),
            None => l.type_name(index, Text::of),
        };
        self.fail(l, format_args!("bad option '{within}{key}' to '{}' (unknown option)", self.name))
    }

    /// The object whose method this is.
    pub fn object<T: Object>(self, l: &State) -> Result<&T, Fail> {
        l.object::<T>(1).ok_or_else(|| self.argument(1).expected(*l, T::NAME))
    }

    /// The argument at `index` as a time limit in milliseconds: absent or `math.huge` is none.
    #[allow(clippy::inline_always, reason = "see `transfer.rs`")]
    #[inline(always)]
    pub fn limit(self, l: State, index: c_int) -> Result<Span, Fail> {
        // Mostly there is none, which the top tells at once where no wrapper passes nil for it.
        let is_absent = CONTINUES && l.top() < index || l.is_nil_or_none(index);
        if is_absent { Ok(Span::FOREVER) } else { self.argument(index).duration(l) }
    }

    /// Looks at an options table, key by key: `read` gets the key and leaves the value, which is on
    /// the top, where it wants it, and answers whether it knows the key.
    pub fn each_option(
        self,
        l: State,
        index: c_int,
        read: impl FnMut(&[u8]) -> Result<bool, Fail>,
    ) -> Result<(), Fail> {
        self.argument(index).table(l)?;
        self.each_field(l, "", index, read)
    }

    /// The same for a table among the options; `within` is its name and a point.
    pub fn each_field(
        self,
        l: State,
        within: &str,
        index: c_int,
        mut read: impl FnMut(&[u8]) -> Result<bool, Fail>,
    ) -> Result<(), Fail> {
        l.push_nil();
        while l.next(index) {
            let known = match l.bytes_at(-2) {
                Some(key) => read(key)?,
                None => false,
            };
            if !known {
                return Err(self.unknown_option(l, within, l.top() - 1));
            }
            l.pop(1);
        }
        Ok(())
    }
}

/// A value that a caller gave: where it is, and how error messages name it.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    callee: Callee,
    pub index: c_int,
    option: Option<&'static str>,
}

impl Given {
    /// `bad argument #N to 'NAME' (WHY)`, or `bad option 'OPTION' to 'NAME' (WHY)`.
    pub fn bad(self, l: State, why: fmt::Arguments<'_>) -> Fail {
        let Callee { name, level, is_method, .. } = self.callee;
        if let Some(option) = self.option {
            return self.callee.fail(l, format_args!("bad option '{option}' to '{name}' ({why})"));
        }
        // To who wrote the call with a colon the object is no argument.
        let shifted = match l.called_as(level - 1) {
            CalledAs::Method => true,
            CalledAs::Nameless => is_method && self.index > 1,
            CalledAs::Named => false,
        };
        let number = self.index - c_int::from(shifted);
        if number == 0 {
            return self.callee.fail(l, format_args!("calling '{name}' on bad self ({why})"));
        }
        self.callee.fail(l, format_args!("bad argument #{number} to '{name}' ({why})"))
    }

    /// `WHAT expected, got …`: the type of what is there, or, where only the number is at fault,
    /// the number.
    pub fn expected(self, l: State, what: &str) -> Fail {
        let got = match l.to_number(self.index) {
            _ if self.is_absent(l) => Text::of(b"no value"),
            Some(number) if number.is_nan() => Text::of(b"nan"),
            Some(_) if what.ends_with("integer") => l.number_text(self.index, Text::of),
            _ => l.type_name(self.index, Text::of),
        };
        self.bad(l, format_args!("{what} expected, got {got}"))
    }

    /// There is no such argument, as far as can be told.
    fn is_absent(self, l: State) -> bool {
        let last = self.callee.padded_to;
        l.kind(self.index) == LUA_TNONE
            || self.index <= last && (self.index..=last).all(|index| l.is_nil_or_none(index))
    }

    /// A duration in milliseconds.
    pub fn duration(self, l: State) -> Result<Span, Fail> {
        let span = l.to_number(self.index).and_then(Span::from_ms);
        span.ok_or_else(|| self.expected(l, "number"))
    }

    /// The interval of something that repeats, in milliseconds.
    pub fn interval(self, l: State) -> Result<Span, Fail> {
        let span = self.duration(l)?;
        if span == Span::ZERO {
            let got = l.number_text(self.index, Text::of);
            return Err(self.bad(l, format_args!("interval must be > 0, got {got}")));
        }
        Ok(span)
    }

    /// An integer; a float that equals one will do.
    pub fn integer(self, l: State) -> Result<i64, Fail> {
        l.to_integer(self.index).ok_or_else(|| {
            let what = if l.to_number(self.index).is_some() { "integer" } else { "number" };
            self.expected(l, what)
        })
    }

    /// An integer ≥ 0.
    pub fn count(self, l: State) -> Result<u64, Fail> {
        let integer = self.integer(l)?;
        u64::try_from(integer).map_err(|_| self.expected(l, "non-negative integer"))
    }

    /// An integer ≥ 0; absent is 0.
    pub fn optional_count(self, l: State) -> Result<u64, Fail> {
        if l.is_nil_or_none(self.index) { Ok(0) } else { self.count(l) }
    }

    /// An integer ≥ 1.
    pub fn positive(self, l: State) -> Result<usize, Fail> {
        let positive = usize::try_from(self.integer(l)?).ok().filter(|&count| count > 0);
        positive.ok_or_else(|| self.expected(l, "positive integer"))
    }

    /// How many jobs may be in flight: an integer ≥ 1, or `math.huge`.
    pub fn concurrency(self, l: State) -> Result<usize, Fail> {
        if l.to_number(self.index) == Some(f64::INFINITY) {
            return Ok(usize::MAX);
        }
        self.positive(l)
    }

    /// A length of time that is some and ends, in milliseconds.
    pub fn window(self, l: State) -> Result<Span, Fail> {
        let span = self.duration(l)?;
        if span == Span::ZERO || span == Span::FOREVER {
            let got = l.number_text(self.index, Text::of);
            return Err(self.bad(l, format_args!("finite number > 0 expected, got {got}")));
        }
        Ok(span)
    }

    /// A number that is none of NaN, negative, infinite.
    pub fn amount(self, l: State) -> Result<f64, Fail> {
        let number = l.to_number(self.index).filter(|number| !number.is_nan());
        let number = number.ok_or_else(|| self.expected(l, "number"))?;
        if number >= 0.0 && number.is_finite() {
            return Ok(number);
        }
        let got = l.number_text(self.index, Text::of);
        Err(self.bad(l, format_args!("finite number >= 0 expected, got {got}")))
    }

    /// True or false.
    pub fn boolean(self, l: State) -> Result<bool, Fail> {
        if l.kind(self.index) == LUA_TBOOLEAN {
            return Ok(l.to_bool(self.index));
        }
        Err(self.expected(l, "boolean"))
    }

    /// A function, or what can be called like one.
    pub fn callable(self, l: State) -> Result<(), Fail> {
        if l.is_callable(self.index) { Ok(()) } else { Err(self.expected(l, "function")) }
    }

    /// A table.
    pub fn table(self, l: State) -> Result<(), Fail> {
        if l.kind(self.index) == LUA_TTABLE { Ok(()) } else { Err(self.expected(l, "table")) }
    }

    /// A string; a number is none.
    pub fn string(self, l: State) -> Result<(), Fail> {
        if l.kind(self.index) == LUA_TSTRING { Ok(()) } else { Err(self.expected(l, "string")) }
    }
}

/// What stock Lua says when there is no memory: no position, and always the same string.
pub fn out_of_memory(l: State) -> Fail {
    l.push_str("not enough memory");
    Fail
}

/// Raises where there is not even memory for the small things that a call makes.
pub fn check_memory(l: State) -> Result<(), Fail> {
    OutOfMemory::probe().map_err(|OutOfMemory| out_of_memory(l))
}

/// Text of bounded length on the Rust stack: nothing to drop when an error is raised over it. What
/// does not fit is cut off.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: [u8; Self::ROOM],
    length: usize,
}

impl Text {
    const ROOM: usize = 256;
    /// What a part of a message may take, so that the rest of it finds room.
    const PART: usize = 80;

    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut new = Self { bytes: [0; Self::ROOM], length: 0 };
        // Writing never fails: what finds no room is cut off.
        let _ = new.write_fmt(text);
        new
    }

    /// The beginning of a string that a user gave.
    pub fn of(bytes: &[u8]) -> Self {
        let length = bytes.len().min(Self::PART);
        let mut new = Self { bytes: [0; Self::ROOM], length };
        new.bytes[..length].copy_from_slice(&bytes[..length]);
        new
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let taken = text.len().min(room.len());
        room[..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().utf8_chunks().try_for_each(|chunk| {
            f.write_str(chunk.valid())?;
            if chunk.invalid().is_empty() {
                Ok(())
            } else {
                f.write_char(char::REPLACEMENT_CHARACTER)
            }
        })
    }
}
