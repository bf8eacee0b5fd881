//! Copies of Lua values, for channels between Lua states.
//!
//! The tables of a value are written one after the other, in the order in which they were met, so
//! that depth costs no stack.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fmt::{self, Write};

use super::args::{Text, out_of_memory};
use super::channel::{Channel, Kind};
use super::ffi::{Exact, Fail, LUA_TBOOLEAN, LUA_TNUMBER, LUA_TSTRING, LUA_TTABLE, Outcome, State};
use crate::core::OutOfMemory;
use crate::core::spares;
use crate::core::wire::{Item, Packet, Piece, Reader, Sizes};

/// What a path to a value may take of an error message.
const PATH: usize = 160;

/// Why a value cannot be copied.
enum Refusal {
    /// Something is in the way: [`Packing::why`] says what, and where.
    Value,
    Memory,
}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        Self::Memory
    }
}

/// Copies the value at `value`; `refuse` makes the error where that cannot be.
pub fn pack(l: State, value: c_int, refuse: impl FnOnce(&Text) -> Fail) -> Result<Item, Fail> {
    let mut packing = Packing::new().map_err(|OutOfMemory| out_of_memory(l))?;
    let mut written = Ok(());
    l.protected(value, 0, &mut |l| {
        written = packing.write_all(l);
        Ok(0)
    })?;
    match written {
        Ok(()) => Ok(Item::Packed(packing.packet)),
        Err(refusal) => {
            let why = packing.why.unwrap_or(Text::of(b"value"));
            drop(packing);
            Err(match refusal {
                Refusal::Value => refuse(&why),
                Refusal::Memory => out_of_memory(l),
            })
        }
    }
}

struct Packing {
    packet: Box<Packet>,
    /// What tells the first table from others, once it was met. It has the number 0.
    first: Option<usize>,
    /// The numbers of the tables that were met after it.
    seen: HashMap<usize, u32>,
    /// For each of them, in their order: the table in which it was met first.
    parents: Vec<u32>,
    /// `value.users[3].callback: a function cannot be copied`
    why: Option<Text>,
}

/// The places on the stack of `Packing`: the value, a list of the tables in it, and the table that
/// is being written, its key and its value.
const ROOT: c_int = 1;
const LIST: c_int = 2;
const CURRENT: c_int = 3;
const KEY: c_int = 4;
const VALUE: c_int = 5;

impl Packing {
    fn new() -> Result<Self, OutOfMemory> {
        let packet = match spares::take() {
            Some(packet) => packet,
            None => OutOfMemory::probe_box::<Packet>().map(|()| Box::default())?,
        };
        let (seen, parents) = (HashMap::new(), Vec::new());
        Ok(Self { packet, first: None, seen, parents, why: None })
    }

    fn write_all(&mut self, l: State) -> Result<(), Refusal> {
        l.push_nil();
        self.write(l, ROOT, 0)?;
        if self.first.is_none() {
            return Ok(());
        }
        self.write_table(l, 0)?;
        let mut number = 1;
        while number as usize <= self.parents.len() {
            self.write_table(l, number)?;
            number += 1;
        }
        Ok(())
    }

    /// Writes the entries of a table that was met.
    fn write_table(&mut self, l: State, number: u32) -> Result<(), Refusal> {
        Self::push_table(l, number);
        if l.has_metatable(CURRENT) {
            return Err(self.refusal(l, number, false, format_args!("a table with a metatable")));
        }
        let place = self.packet.begin_table()?;
        let array = u32::try_from(l.raw_len(CURRENT)).unwrap_or(0);
        let mut sizes = Sizes { array, entries: 0 };
        l.push_nil();
        while l.next(CURRENT) {
            self.write(l, KEY, number)?;
            self.write(l, VALUE, number)?;
            sizes.entries += 1;
            l.pop(1);
        }
        self.packet.end_table(place, sizes);
        l.pop(1);
        Ok(())
    }

    /// Pushes the table of this number.
    fn push_table(l: State, number: u32) {
        if number == 0 {
            l.push_value(ROOT);
        } else {
            l.raw_get(LIST, number);
        }
    }

    /// Writes the value at `index`, which is in the table of number `within`.
    fn write(&mut self, l: State, index: c_int, within: u32) -> Result<(), Refusal> {
        let piece = match l.kind(index) {
            LUA_TBOOLEAN => Piece::Bool(l.to_bool(index)),
            LUA_TNUMBER => match l.to_exact(index) {
                Exact::Integer(integer) => Piece::Integer(integer),
                Exact::Float(number) => Piece::Number(number),
            },
            LUA_TSTRING => {
                let bytes = l.bytes_at(index).unwrap_or_default();
                return Ok(self.packet.push(&Piece::String(bytes))?);
            }
            LUA_TTABLE => Piece::Table(self.meet(l, index, within)?),
            _ => {
                if let Some(address) = l.to_address(index) {
                    Piece::Address(address as u64)
                } else if let Some(Channel { kind: Kind::Shared(handle), .. }) = l.object(index) {
                    return Ok(self.packet.push_channel(handle.clone())?);
                } else {
                    let name = l.type_name(index, Text::of);
                    return Err(self.refusal(l, within, index != ROOT, format_args!("a {name}")));
                }
            }
        };
        Ok(self.packet.push(&piece)?)
    }

    /// The number of the table at `index`; a new one where it was not met before.
    fn meet(&mut self, l: State, index: c_int, within: u32) -> Result<u32, Refusal> {
        let identity = l.identity(index);
        match self.first {
            None => {
                self.first = Some(identity);
                return Ok(0);
            }
            Some(first) if first == identity => return Ok(0),
            Some(_) => {}
        }
        if let Some(&number) = self.seen.get(&identity) {
            return Ok(number);
        }
        let number = u32::try_from(self.parents.len() + 1).map_err(|_| Refusal::Memory)?;
        self.seen.try_reserve(1).map_err(|_| Refusal::Memory)?;
        self.parents.try_reserve(1).map_err(|_| Refusal::Memory)?;
        self.seen.insert(identity, number);
        self.parents.push(within);
        if l.is_nil_or_none(LIST) {
            l.new_table(0, 0);
            l.replace(LIST);
        }
        l.push_value(index);
        l.raw_set(LIST, number);
        Ok(number)
    }

    /// Says what is refused: the table of number `within` itself or, with `entry`, that at `KEY` in
    /// it.
    fn refusal(&mut self, l: State, within: u32, entry: bool, what: fmt::Arguments<'_>) -> Refusal {
        let mut path = Text::new(format_args!("value"));
        let mut chain = Vec::new();
        let mut number = within;
        while number > 0 {
            chain.push(number);
            number = self.parents[number as usize - 1];
        }
        for (child, parent) in chain.iter().rev().zip(std::iter::once(&0).chain(chain.iter().rev()))
        {
            if path.bytes().len() > PATH {
                break;
            }
            write_step_to(l, *child, *parent, &mut path);
        }
        let mut role = "";
        if entry {
            // A key is written before its value: then there is no number for the latter yet.
            let is_key = l.top() == VALUE && !is_copyable(l, KEY);
            if is_key {
                role = " as a key";
            } else {
                write_key(l, KEY, &mut path);
            }
        }
        self.why = Some(Text::new(format_args!("{path}: {what}{role} cannot be copied")));
        Refusal::Value
    }
}

fn is_copyable(l: State, index: c_int) -> bool {
    matches!(l.kind(index), LUA_TBOOLEAN | LUA_TNUMBER | LUA_TSTRING | LUA_TTABLE)
        || l.to_address(index).is_some()
        || matches!(l.object(index), Some(Channel { kind: Kind::Shared(_), .. }))
}

/// Adds the key under which the table `parent` holds the table `child`.
fn write_step_to(l: State, child: u32, parent: u32, path: &mut Text) {
    Packing::push_table(l, child);
    let child = l.top();
    Packing::push_table(l, parent);
    let parent = l.top();
    l.push_nil();
    while l.next(parent) {
        if l.raw_equal(-1, child) {
            write_key(l, parent + 1, path);
            break;
        }
        l.pop(1);
    }
    l.set_top(child - 1);
}

/// `.name`, `[3]`, `["a b"]`
fn write_key(l: State, key: c_int, path: &mut Text) {
    // What finds no room is cut off.
    let _ = match l.bytes_at(key) {
        Some(name) if is_identifier(name) => write!(path, ".{}", Text::of(name)),
        Some(name) => write!(path, "[\"{}\"]", Text::of(name)),
        None if l.kind(key) == LUA_TNUMBER => write!(path, "[{}]", l.number_text(key, Text::of)),
        None => write!(path, "[{}]", l.type_name(key, Text::of)),
    };
}

fn is_identifier(name: &[u8]) -> bool {
    name.first().is_some_and(|first| !first.is_ascii_digit())
        && name.iter().all(|&byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// Pushes a copied value.
///
/// # Errors
/// Without memory; the packet comes back.
pub fn unpack(l: State, packet: Box<Packet>) -> Result<(), (Fail, Box<Packet>)> {
    match l.protected(0, 1, &mut |l| read_all(l, &packet)) {
        Ok(()) => {
            spares::keep(packet);
            Ok(())
        }
        Err(fail) => Err((fail, packet)),
    }
}

/// Where `read_all` keeps the first table, and a list of the others.
const FIRST: c_int = 1;
const OTHERS: c_int = 2;

fn read_all(l: State, packet: &Packet) -> Outcome {
    let mut reader = packet.reader();
    let root = reader.next_piece();
    if !matches!(root, Some(Piece::Table(_))) {
        push_piece(l, packet, root);
        return Ok(1);
    }
    let sizes = reader.next_table().unwrap_or_default();
    new_table(l, sizes);
    l.push_nil();
    if packet.tables() > 1 {
        l.new_table(c_int::try_from(packet.tables() - 1).unwrap_or(0), 0);
        l.replace(OTHERS);
    }
    fill(l, packet, &mut reader, FIRST, sizes.entries);
    for number in 1..packet.tables() {
        let sizes = reader.next_table().unwrap_or_default();
        l.raw_get(OTHERS, number);
        fill(l, packet, &mut reader, OTHERS + 1, sizes.entries);
        l.pop(1);
    }
    l.push_value(FIRST);
    Ok(1)
}

fn new_table(l: State, sizes: Sizes) {
    let fields = sizes.entries.saturating_sub(sizes.array);
    l.new_table(c_int::try_from(sizes.array).unwrap_or(0), c_int::try_from(fields).unwrap_or(0));
}

fn fill(l: State, packet: &Packet, reader: &mut Reader<'_>, table: c_int, entries: u32) {
    for _ in 0..entries {
        push_piece(l, packet, reader.next_piece());
        push_piece(l, packet, reader.next_piece());
        l.raw_set_pair(table);
    }
}

fn push_piece(l: State, packet: &Packet, piece: Option<Piece<'_>>) {
    let Some(piece) = piece else { return l.push_nil() };
    match piece {
        Piece::Bool(value) => l.push_bool(value),
        Piece::Integer(value) => l.push_integer(value),
        Piece::Number(value) => l.push_number(value),
        Piece::String(bytes) => l.push_bytes(bytes),
        #[allow(clippy::cast_possible_truncation, reason = "it was an address of this process")]
        Piece::Address(address) => l.push_address(address as usize as *mut _),
        Piece::Table(0) => l.push_value(FIRST),
        Piece::Table(number) => {
            l.raw_get(OTHERS, number);
            if l.is_nil_or_none(-1) {
                l.pop(1);
                l.new_table(0, 0);
                l.push_value(-1);
                l.raw_set(OTHERS, number);
            }
        }
        Piece::Channel(number) => match packet.channel(number) {
            Some(handle) => l.new_object(|| Channel::shared(handle.clone())),
            None => l.push_nil(),
        },
    }
}
