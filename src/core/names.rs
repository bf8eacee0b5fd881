//! Finds the jobs of an id.
//!
//! Ids that were made up carry rising numbers, and jobs that are pushed one after the other mostly
//! get slots one after the other. So those are noted as runs of both, in a list that is searched by
//! halves; a place in it is stale once its job has gone. Ids that were given are in a hash table,
//! which knows the first job of each; further ones of the same id follow it in a chain through the
//! jobs. A given id may read like one that was made up, so a search looks in both.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::OutOfMemory;
use super::job::{Job, NO_SLOT, Name, State};

/// What comes before the number in an id that was made up.
pub const PREFIX: &[u8] = b"job-";

/// Runs that are kept at least, before those that are of use are gathered.
const SWEEP: usize = 64;

/// Lists and tables larger than this are given back when nothing is left in them.
const KEPT_ROOM: usize = 1024;

/// Numbers one after the other, whose jobs have slots one after the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    number: u64,
    slot: u32,
    length: u32,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By number, the lowest first.
    made: Vec<Run>,
    /// Jobs with a number.
    made_alive: usize,
    /// The first job of each given id.
    given: HashTable<u32>,
    hasher: RandomState,
}

/// Where a walk over the jobs of an id stands.
#[derive(Clone, Copy, Debug, Default)]
pub enum Walk {
    /// It has not begun.
    #[default]
    Start,
    /// The next to look at; [`NO_SLOT`]: there are no more.
    At(u32),
}

/// The number in an id that reads as if it had been made up.
fn number_of(id: &[u8]) -> Option<u64> {
    let digits = id.strip_prefix(PREFIX)?;
    let is_plain = digits.iter().all(u8::is_ascii_digit) && !digits.starts_with(b"0");
    if is_plain { str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

fn is_given<V>(jobs: &[Job<V>], slot: u32, id: &[u8]) -> bool {
    matches!(&jobs[slot as usize].name, Name::Given(bytes) if **bytes == *id)
}

fn hash<V>(hasher: &RandomState, jobs: &[Job<V>], slot: u32) -> u64 {
    match &jobs[slot as usize].name {
        Name::Given(bytes) => hasher.hash_one(&**bytes),
        Name::Made(_) => 0,
    }
}

impl Names {
    /// Makes room for one name more.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    #[inline]
    pub fn reserve<V>(&mut self, jobs: &[Job<V>], is_given: bool) -> Result<(), OutOfMemory> {
        if is_given {
            self.reserve_given(jobs)
        } else if self.made.len() == self.made.capacity() {
            self.reserve_made(jobs)
        } else {
            Ok(())
        }
    }

    fn reserve_given<V>(&mut self, jobs: &[Job<V>]) -> Result<(), OutOfMemory> {
        let hasher = &self.hasher;
        let room = self.given.try_reserve(1, |&slot| hash(hasher, jobs, slot));
        room.map_err(|_| OutOfMemory)
    }

    #[cold]
    fn reserve_made<V>(&mut self, jobs: &[Job<V>]) -> Result<(), OutOfMemory> {
        // A share of all slots as well, as it is those that are looked through.
        if self.made.len() > 2 * self.made_alive + jobs.len() / 8 + SWEEP {
            let mut alive: Vec<(u64, u32)> = Vec::new();
            alive.try_reserve_exact(self.made_alive)?;
            alive.extend((0..).zip(jobs).filter_map(|(slot, job)| match job.name {
                Name::Made(number) if job.state != State::Free => Some((number, slot)),
                _ => None,
            }));
            alive.sort_unstable();
            self.made.clear();
            for (number, slot) in alive {
                self.add_made(number, slot);
            }
            return Ok(());
        }
        Ok(self.made.try_reserve(1)?)
    }

    /// Notes the job in `slot`. A number must be the highest so far.
    #[inline]
    pub fn add<V>(&mut self, jobs: &mut [Job<V>], slot: u32) {
        if let Name::Made(number) = jobs[slot as usize].name {
            self.made_alive += 1;
            self.add_made(number, slot);
        } else {
            self.add_given(jobs, slot);
        }
    }

    #[inline]
    fn add_made(&mut self, number: u64, slot: u32) {
        if let Some(run) = self.made.last_mut()
            && run.number + u64::from(run.length) == number
            && run.slot + run.length == slot
        {
            run.length += 1;
        } else {
            self.made.push(Run { number, slot, length: 1 });
        }
    }

    #[inline(never)]
    fn add_given<V>(&mut self, jobs: &mut [Job<V>], slot: u32) {
        let hash_of = hash(&self.hasher, jobs, slot);
        let Name::Given(id) = &jobs[slot as usize].name else { return };
        let first = self.given.find_mut(hash_of, |&first| is_given(jobs, first, id));
        let next = if let Some(first) = first {
            std::mem::replace(first, slot)
        } else {
            let hasher = &self.hasher;
            self.given.insert_unique(hash_of, slot, |&slot| hash(hasher, jobs, slot));
            NO_SLOT
        };
        if let Some(next) = jobs.get_mut(next as usize) {
            next.previous = slot;
        }
        let job = &mut jobs[slot as usize];
        (job.previous, job.next) = (NO_SLOT, next);
    }

    /// Forgets the job in `slot`, which is there still.
    #[inline]
    pub fn remove<V>(&mut self, jobs: &mut [Job<V>], slot: u32) {
        if let Name::Made(_) = jobs[slot as usize].name {
            self.made_alive -= 1;
            if self.made_alive == 0 {
                self.made.clear();
                if self.made.capacity() > KEPT_ROOM {
                    self.made = Vec::new();
                }
            }
        } else {
            self.remove_given(jobs, slot);
        }
    }

    #[inline(never)]
    fn remove_given<V>(&mut self, jobs: &mut [Job<V>], slot: u32) {
        let Job { next, previous, .. } = jobs[slot as usize];
        if let Some(next) = jobs.get_mut(next as usize) {
            next.previous = previous;
        }
        if let Some(previous) = jobs.get_mut(previous as usize) {
            previous.next = next;
            return;
        }
        let hash = hash(&self.hasher, jobs, slot);
        if let Ok(mut place) = self.given.find_entry(hash, |&first| first == slot) {
            if next == NO_SLOT {
                place.remove();
                if self.given.is_empty() && self.given.capacity() > KEPT_ROOM {
                    self.given = HashTable::new();
                }
            } else {
                *place.get_mut() = next;
            }
        }
    }

    /// The next job of `id`. The one that it told last may have gone since, in one way: its slot is
    /// free or taken anew only after the walk.
    pub fn next<V>(&self, jobs: &[Job<V>], id: &[u8], walk: &mut Walk) -> Option<u32> {
        let slot = match *walk {
            Walk::At(slot) => slot,
            Walk::Start => {
                let hash = self.hasher.hash_one(id);
                let given = self.given.find(hash, |&first| is_given(jobs, first, id));
                let first = given.copied().unwrap_or(NO_SLOT);
                if let Some(slot) = self.find_made(jobs, id) {
                    *walk = Walk::At(first);
                    return Some(slot);
                }
                first
            }
        };
        let next = jobs.get(slot as usize)?.next;
        *walk = Walk::At(next);
        Some(slot)
    }

    fn find_made<V>(&self, jobs: &[Job<V>], id: &[u8]) -> Option<u32> {
        let number = number_of(id)?;
        let after = self.made.partition_point(|run| run.number <= number);
        let run = self.made[..after].last()?;
        let slot =
            run.slot + u32::try_from(number - run.number).ok().filter(|&n| n < run.length)?;
        let job = jobs.get(slot as usize)?;
        (job.state != State::Free && job.name == Name::Made(number)).then_some(slot)
    }
}
