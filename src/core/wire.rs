//! What travels through a channel.
//!
//! Within one Lua state a value stays where it is, and its slot travels. Between states it travels
//! as a copy: a [`Packet`] of bytes. Tables are written one after the other, each naming the tables
//! that it holds by their numbers; so shared and cyclic references come through, and depth costs no
//! stack.

use super::OutOfMemory;
use super::shared::Handle;

/// A value on its way. With a tag of a whole word it is copied as two words.
#[derive(Clone, Debug)]
#[repr(u64)]
pub enum Item {
    /// The slot of a value with the face, for channels that stay within one Lua state.
    Slot(u32),
    Bool(bool),
    Integer(i64),
    Number(f64),
    Packed(Box<Packet>),
}

const _: () = assert!(size_of::<Option<Item>>() == 16, "the tag says None as well");

/// A copied value: its bytes, and the shared channels that it holds.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    bytes: Vec<u8>,
    channels: Vec<Handle>,
    /// How many tables there are; their numbers begin at 0.
    tables: u32,
}

/// One thing in a packet.
#[derive(Debug, PartialEq)]
pub enum Piece<'a> {
    Bool(bool),
    Integer(i64),
    Number(f64),
    String(&'a [u8]),
    /// The address of a light userdata.
    Address(u64),
    /// The table of this number.
    Table(u32),
    /// The channel of this number.
    Channel(u32),
}

/// The sizes of a table: values in its array part, all entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub array: u32,
    pub entries: u32,
}

const FALSE: u8 = 0;
const TRUE: u8 = 1;
const INTEGER: u8 = 2;
const NUMBER: u8 = 3;
const STRING: u8 = 4;
const ADDRESS: u8 = 5;
const TABLE: u8 = 6;
const CHANNEL: u8 = 7;

/// A packet that has grown beyond this is not worth keeping.
const KEPT_ROOM: usize = 1024;

impl Packet {
    /// Empties the packet for another use. False: it is not worth keeping.
    pub fn clear(&mut self) -> bool {
        self.bytes.clear();
        self.channels.clear();
        self.tables = 0;
        self.bytes.capacity() <= KEPT_ROOM
    }

    #[must_use]
    pub fn tables(&self) -> u32 {
        self.tables
    }

    #[inline]
    fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        /// Room for a small table.
        const FIRST_ROOM: usize = 96;
        if self.bytes.capacity() - self.bytes.len() < more {
            self.bytes.try_reserve(more.max(FIRST_ROOM))?;
        }
        Ok(())
    }

    fn write(&mut self, tag: u8, parts: [&[u8]; 2]) -> Result<(), OutOfMemory> {
        self.reserve(1 + parts[0].len() + parts[1].len())?;
        self.bytes.push(tag);
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        Ok(())
    }

    /// # Errors
    /// [`OutOfMemory`]; the packet is then of no use.
    pub fn push(&mut self, piece: &Piece<'_>) -> Result<(), OutOfMemory> {
        match *piece {
            Piece::Bool(value) => self.write(if value { TRUE } else { FALSE }, [&[], &[]]),
            Piece::Integer(value) => self.write(INTEGER, [&value.to_le_bytes(), &[]]),
            Piece::Number(value) => self.write(NUMBER, [&value.to_le_bytes(), &[]]),
            Piece::String(text) => self.write(STRING, [&(text.len() as u64).to_le_bytes(), text]),
            Piece::Address(address) => self.write(ADDRESS, [&address.to_le_bytes(), &[]]),
            Piece::Table(number) => self.write(TABLE, [&number.to_le_bytes(), &[]]),
            Piece::Channel(number) => self.write(CHANNEL, [&number.to_le_bytes(), &[]]),
        }
    }

    /// Adds a channel, and a piece that names it.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the packet is then of no use.
    pub fn push_channel(&mut self, channel: Handle) -> Result<(), OutOfMemory> {
        let number = u32::try_from(self.channels.len()).map_err(|_| OutOfMemory)?;
        self.channels.try_reserve(1)?;
        self.channels.push(channel);
        self.push(&Piece::Channel(number))
    }

    #[must_use]
    pub fn channel(&self, number: u32) -> Option<&Handle> {
        self.channels.get(number as usize)
    }

    /// Begins a table, whose sizes are told at its end ([`Packet::end_table`]). Its entries are to
    /// follow, each a key and a value.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the packet is then of no use.
    pub fn begin_table(&mut self) -> Result<usize, OutOfMemory> {
        let place = self.bytes.len();
        self.reserve(8)?;
        self.tables += 1;
        self.bytes.extend_from_slice(&[0; 8]);
        Ok(place)
    }

    /// Ends the table that began at `place`.
    pub fn end_table(&mut self, place: usize, sizes: Sizes) {
        if let Some(space) = self.bytes.get_mut(place..place + 8) {
            space[..4].copy_from_slice(&sizes.array.to_le_bytes());
            space[4..].copy_from_slice(&sizes.entries.to_le_bytes());
        }
    }

    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader { rest: &self.bytes }
    }
}

/// Reads a packet in the order in which it was written.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// The next piece; `None` at the end.
    pub fn next_piece(&mut self) -> Option<Piece<'a>> {
        Some(match self.take(1)?[0] {
            FALSE => Piece::Bool(false),
            TRUE => Piece::Bool(true),
            INTEGER => Piece::Integer(i64::from_le_bytes(self.take_array()?)),
            NUMBER => Piece::Number(f64::from_le_bytes(self.take_array()?)),
            STRING => {
                let length = u64::from_le_bytes(self.take_array()?);
                Piece::String(self.take(usize::try_from(length).ok()?)?)
            }
            ADDRESS => Piece::Address(u64::from_le_bytes(self.take_array()?)),
            TABLE => Piece::Table(u32::from_le_bytes(self.take_array()?)),
            CHANNEL => Piece::Channel(u32::from_le_bytes(self.take_array()?)),
            _ => return None,
        })
    }

    /// The sizes of the table whose entries come next; `None` at the end.
    pub fn next_table(&mut self) -> Option<Sizes> {
        let array = u32::from_le_bytes(self.take_array()?);
        let entries = u32::from_le_bytes(self.take_array()?);
        Some(Sizes { array, entries })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_in_order() {
        let pieces = [
            Piece::Table(0),
            Piece::Bool(true),
            Piece::Bool(false),
            Piece::Integer(i64::MIN),
            Piece::Number(-0.0),
            Piece::String(b"a\0b"),
            Piece::String(b""),
            Piece::Address(u64::MAX),
        ];
        let mut packet = Packet::default();
        for piece in &pieces {
            packet.push(piece).unwrap();
        }
        let mut reader = packet.reader();
        for piece in pieces {
            assert_eq!(reader.next_piece(), Some(piece));
        }
        assert_eq!(reader.next_piece(), None);
    }

    #[test]
    fn sizes_are_told_at_the_end() {
        let mut packet = Packet::default();
        let place = packet.begin_table().unwrap();
        packet.push(&Piece::Integer(1)).unwrap();
        packet.push(&Piece::Bool(true)).unwrap();
        packet.end_table(place, Sizes { array: 1, entries: 1 });
        let mut reader = packet.reader();
        assert_eq!(reader.next_table(), Some(Sizes { array: 1, entries: 1 }));
        assert_eq!(reader.next_piece(), Some(Piece::Integer(1)));
    }
}
