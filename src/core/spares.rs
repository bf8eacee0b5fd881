//! Packets that have been read, for those that are written next.
//!
//! A packet is written in one thread and read in another. Were its memory given back there, the two
//! would meet in the allocator at every value. So who reads packets collects them, and passes them
//! on many at once; who writes takes as many along.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use super::wire::Packet;

type Batch = Vec<Box<Packet>>;

/// Packets that are passed on at once.
const BATCH: usize = 64;

/// What is passed on and not yet taken, at most: as many packets as a large buffer holds.
const BATCHES: usize = 16;

/// The standard library's lock, as it lives as long as the process.
static PASSED: Mutex<Vec<Batch>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: RefCell<Batch> = const { RefCell::new(Vec::new()) };
}

fn passed() -> std::sync::MutexGuard<'static, Vec<Batch>> {
    PASSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty packet that was used before, if there is one.
#[must_use]
pub fn take() -> Option<Box<Packet>> {
    let take = |mine: &RefCell<Batch>| {
        let mut mine = mine.borrow_mut();
        mine.pop().or_else(|| {
            *mine = passed().pop()?;
            mine.pop()
        })
    };
    // A thread that ends has none any more.
    MINE.try_with(take).ok().flatten()
}

/// Keeps a packet that nobody needs any more.
pub fn keep(mut packet: Box<Packet>) {
    if !packet.clear() {
        return;
    }
    // What finds no room, or no memory for its place, is dropped.
    let _ = MINE.try_with(|mine| {
        let mut mine = mine.borrow_mut();
        if mine.len() == BATCH {
            let full = std::mem::take(&mut *mine);
            let mut passed = passed();
            if passed.len() < BATCHES && passed.try_reserve(1).is_ok() {
                passed.push(full);
            }
        }
        if mine.capacity() > mine.len() || mine.try_reserve_exact(BATCH).is_ok() {
            mine.push(packet);
        }
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::wire::Piece;
    use super::*;

    fn used() -> Packet {
        let mut packet = Packet::default();
        packet.begin_table().unwrap();
        packet.push(&Piece::Bool(true)).unwrap();
        packet
    }

    // One test, as others would take what it passes on.
    #[test]
    fn packets_come_back_empty_and_go_to_other_threads() {
        keep(Box::new(used()));
        let mut packet = take().unwrap();
        assert_eq!(packet.tables(), 0);
        assert_eq!(packet.reader().next_piece(), None);

        assert!(take().is_none());
        packet.push(&Piece::String(&[0; 10_000])).unwrap();
        keep(packet);
        assert!(take().is_none(), "it was too large to be kept");

        let reader = || (0..=BATCH).for_each(|_| keep(Box::new(used())));
        std::thread::spawn(reader).join().unwrap();
        assert!((0..BATCH).all(|_| take().is_some()));
        assert!(take().is_none(), "what a thread keeps ends with it");
    }
}
