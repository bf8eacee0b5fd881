//! A heap with four children to a node: half as deep as a binary one, and the children of a node lie
//! side by side.

use super::OutOfMemory;

const CHILDREN: usize = 4;

/// What a heap orders by. One wide number is compared without a branch.
pub trait Ranked: Copy {
    fn rank(&self) -> u128;
}

/// Gives its greatest item first.
#[derive(Debug)]
pub struct Heap<T> {
    items: Vec<T>,
}

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T: Ranked> Heap<T> {
    /// Items for which there is room still.
    #[must_use]
    pub fn spare(&self) -> usize {
        self.items.capacity() - self.items.len()
    }

    /// The greatest item.
    #[must_use]
    pub fn peek(&self) -> Option<&T> {
        self.items.first()
    }

    /// Makes room for `more` items.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        Ok(self.items.try_reserve(more)?)
    }

    pub fn push(&mut self, item: T) {
        let mut place = self.items.len();
        self.items.push(item);
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.items[parent].rank() >= item.rank() {
                break;
            }
            self.items[place] = self.items[parent];
            place = parent;
        }
        self.items[place] = item;
    }

    /// Takes the greatest item out.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.items.pop()?;
        let Some(&top) = self.items.first() else { return Some(last) };
        self.sift_down(0, last);
        Some(top)
    }

    /// Puts `item` in at `place`, whose own item has gone, or further down.
    fn sift_down(&mut self, mut place: usize, item: T) {
        let items = &mut self.items[..];
        let rank = item.rank();
        loop {
            let first = place * CHILDREN + 1;
            let Some(children) = items.get(first..items.len().min(first + CHILDREN)) else { break };
            let mut greatest = 0;
            let mut greatest_rank = 0;
            for (nth, child) in children.iter().enumerate() {
                let child_rank = child.rank();
                if child_rank > greatest_rank {
                    (greatest, greatest_rank) = (nth, child_rank);
                }
            }
            if rank >= greatest_rank {
                break;
            }
            items[place] = items[first + greatest];
            place = first + greatest;
        }
        items[place] = item;
    }

    /// All items, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// Drops the items that do not pass.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
        for place in (0..self.items.len().div_ceil(CHILDREN)).rev() {
            let item = self.items[place];
            self.sift_down(place, item);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    impl Ranked for u32 {
        fn rank(&self) -> u128 {
            (*self).into()
        }
    }

    #[test]
    fn comes_out_in_order_whatever_went_in() {
        let mut heap = Heap::default();
        let mut bits = 1u32;
        for round in 0..200u32 {
            for _ in 0..round {
                bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                heap.push(bits >> (round % 32));
            }
            if round % 3 == 0 {
                heap.retain(|item| item % 5 != 0);
            }
            let mut last = u32::MAX;
            assert_eq!(heap.peek().copied(), heap.items.iter().max().copied());
            while let Some(item) = heap.pop() {
                assert!(item <= last);
                last = item;
            }
        }
    }
}
