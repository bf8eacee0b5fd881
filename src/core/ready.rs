//! What may run, best first: the highest priority, and within it the order of the pushes.
//!
//! Most jobs are pushed to run at once, in few priorities: each of these has a queue of its own,
//! where a job is put at the end and taken from the front. Those that come in out of turn, delayed
//! ones that have come due and retries, and those of further priorities are in a heap. The best is
//! the better of the first of the highest queue and the top of the heap.

use std::collections::VecDeque;

use super::OutOfMemory;
use super::heap::{Heap, Ranked};
use super::job::Ready;

/// Priorities with a queue of their own at most.
const MOST_LEVELS: usize = 32;

/// Room that is made at first in the heap.
const FIRST_ROOM: usize = 32;

/// The same in the queue of a priority, where there may well be one job only.
const LEVEL_ROOM: usize = 8;

/// Queues larger than this give memory back when they run empty.
const KEPT_ROOM: usize = 1024;

/// The jobs of one priority that came in their turn: sequence number and slot.
#[derive(Debug)]
struct Level {
    priority: i64,
    jobs: VecDeque<(u64, u32)>,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct ReadyJobs {
    /// By priority, the highest last.
    levels: Vec<Level>,
    /// The place after the last level that is not empty.
    top: usize,
    /// The level that was looked for last.
    last: usize,
    heap: Heap<Ready>,
}

impl ReadyJobs {
    /// Makes room for one job more that is pushed in its turn. `jobs`: so many may come in out of turn,
    /// this one included; where it is put among those, none of them loses its room.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn reserve(&mut self, priority: i64, jobs: usize) -> Result<(), OutOfMemory> {
        let place = match self.place(priority) {
            Ok(place) => place,
            Err(_) if self.levels.len() >= MOST_LEVELS => return self.reserve_heap(jobs),
            Err(place) => {
                self.levels.try_reserve(1)?;
                self.levels.insert(place, Level { priority, jobs: VecDeque::new() });
                self.top += usize::from(place < self.top);
                place
            }
        };
        self.last = place;
        let jobs = &mut self.levels[place].jobs;
        if jobs.len() == jobs.capacity() {
            jobs.try_reserve(LEVEL_ROOM)?;
        }
        Ok(())
    }

    /// Makes room for so many jobs more that come in out of turn.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn reserve_heap(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if self.heap.spare() < more {
            self.heap.try_reserve(more.max(FIRST_ROOM))?;
        }
        Ok(())
    }

    /// Adds a job that comes later than all others of its priority that came in their turn, where
    /// [`ReadyJobs::reserve`] has made room for it.
    pub fn push(&mut self, job: Ready) {
        match self.place(job.priority) {
            Ok(place) => {
                self.levels[place].jobs.push_back((job.seq, job.slot));
                self.top = self.top.max(place + 1);
            }
            Err(_) => self.heap.push(job),
        }
    }

    /// Adds a job that comes in out of turn.
    pub fn push_late(&mut self, job: Ready) {
        self.heap.push(job);
    }

    /// Takes the best job out.
    pub fn pop(&mut self) -> Option<Ready> {
        while self.top > 0 && self.levels[self.top - 1].jobs.is_empty() {
            self.top -= 1;
        }
        let Some(level) = self.levels[..self.top].last_mut() else { return self.heap.pop() };
        let &(seq, slot) = level.jobs.front()?;
        let first = Ready { priority: level.priority, seq, slot };
        if self.heap.peek().is_some_and(|late| late.rank() > first.rank()) {
            return self.heap.pop();
        }
        level.jobs.pop_front();
        if level.jobs.is_empty() && level.jobs.capacity() > KEPT_ROOM {
            level.jobs = VecDeque::new();
        }
        Some(first)
    }

    /// The slot of the job that is likely to be the next.
    #[inline]
    pub fn likely_next(&self) -> Option<u32> {
        let first = self.levels[..self.top].iter().rev().find_map(|level| level.jobs.front());
        first.map(|&(_, slot)| slot).or_else(|| self.heap.peek().map(|late| late.slot))
    }

    /// Drops the entries that do not pass.
    pub fn retain(&mut self, mut keep: impl FnMut(Ready) -> bool) {
        for level in &mut self.levels {
            let priority = level.priority;
            level.jobs.retain(|&(seq, slot)| keep(Ready { priority, seq, slot }));
        }
        self.heap.retain(|&entry| keep(entry));
    }

    /// Tells the slots of all entries.
    pub fn slots(&self, mut tell: impl FnMut(u32)) {
        self.levels.iter().flat_map(|level| &level.jobs).for_each(|&(_, slot)| tell(slot));
        self.heap.iter().for_each(|entry| tell(entry.slot));
    }

    /// Drops all jobs, and the room for them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Where the level of this priority is, or would be.
    #[inline]
    fn place(&self, priority: i64) -> Result<usize, usize> {
        if self.levels.get(self.last).is_some_and(|level| level.priority == priority) {
            return Ok(self.last);
        }
        self.levels.binary_search_by_key(&priority, |level| level.priority)
    }
}
