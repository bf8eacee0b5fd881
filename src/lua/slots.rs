//! Where Lua values wait: a table per object, in its user value, so that the garbage collector sees
//! what the object holds. The core knows a value by its number in that table, its slot.
//!
//! [`Values`] is the free list of such a table. Its methods take the table's place on the stack;
//! from the moment the table was fetched until they are done nothing may run the collector, for a
//! finalizer could store a value of its own, or have the table replaced by a smaller one.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;

use super::args::out_of_memory;
use super::ffi::{Fail, State};

/// Room in a free list at first.
const FIRST_ROOM: usize = 32;

/// Tables that never held more than this do not shrink.
const KEPT_ROOM: u32 = 1024;

/// A table shrinks when fewer than the 16th part of its places are in use: what is left is copied, so that a queue which
/// runs empty copies a job in 15.
const SPARSE: u32 = 16;

/// The slots of one object's values. Slot 0 is none.
#[derive(Debug, Default)]
pub struct Values {
    slots: RefCell<Slots>,
    /// The table has become much larger than what it holds.
    is_sparse: Cell<bool>,
}

#[derive(Debug, Default)]
struct Slots {
    free: Vec<u32>,
    /// The highest slot given out.
    high: u32,
    live: u32,
    /// The most that were live since the table was made.
    peak: u32,
}

impl Values {
    /// Stores the value at `value` and returns its slot.
    ///
    /// # Errors
    /// `not enough memory`, and nothing is stored.
    pub fn store(&self, l: State, table: c_int, value: c_int) -> Result<u32, Fail> {
        let Some(slot) = self.slots.borrow_mut().reserve() else { return Err(out_of_memory(l)) };
        l.push_value(value);
        l.raw_set(table, slot);
        Ok(slot)
    }

    /// Pushes the value in `slot` and frees the slot.
    pub fn take(&self, l: State, table: c_int, slot: u32) {
        l.raw_get(table, slot);
        self.free(l, table, slot);
    }

    /// Frees `slot`; nothing for slot 0.
    pub fn free(&self, l: State, table: c_int, slot: u32) {
        if slot != 0 {
            l.push_nil();
            l.raw_set(table, slot);
            let mut slots = self.slots.borrow_mut();
            slots.release(slot);
            self.is_sparse.set(slots.peak > KEPT_ROOM && slots.live < slots.peak / SPARSE);
        }
    }

    /// Replaces the table of the object at `object` by a smaller one when it has become much larger
    /// than what it holds. True: that ran the collector, so what was fetched before is to be
    /// fetched anew.
    #[inline]
    pub fn tidy(&self, l: State, object: c_int) -> bool {
        if self.is_sparse.get() {
            self.shrink(l, object);
            return true;
        }
        false
    }

    #[cold]
    fn shrink(&self, l: State, object: c_int) {
        l.new_table(0, 0);
        // A finalizer may have come in between: look again.
        if self.is_sparse.get() {
            let small = l.top();
            l.push_values(object);
            let high = l.copy_all(small + 1, small);
            l.pop(1);
            l.set_values(object);
            self.slots.borrow_mut().restart(high);
            self.is_sparse.set(false);
        } else {
            l.pop(1);
        }
    }
}

impl Slots {
    /// Takes a slot. `None` without memory.
    fn reserve(&mut self) -> Option<u32> {
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else {
            // Room for all of them, so that a release never allocates.
            if self.free.capacity() <= self.high as usize {
                self.free.try_reserve((self.high as usize + 1).max(FIRST_ROOM)).ok()?;
            }
            self.high = self.high.checked_add(1)?;
            self.high
        };
        self.live += 1;
        self.peak = self.peak.max(self.live);
        Some(slot)
    }

    fn release(&mut self, slot: u32) {
        self.live -= 1;
        self.free.push(slot);
    }

    /// Forgets the free slots above the highest live one.
    fn restart(&mut self, high: u32) {
        self.high = high;
        self.free.retain(|&slot| slot < high);
        self.free.shrink_to(high as usize + 1);
        self.peak = self.live;
    }
}
