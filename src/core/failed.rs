//! The failed jobs that a queue keeps, to be looked at and tried again: the last so many.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use super::OutOfMemory;
use super::job::Job;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Failed<V> {
    /// Jobs that are kept at most.
    most: usize,
    /// With the hash of the id, the oldest first, which has the lowest sequence number.
    jobs: VecDeque<(u64, Job<V>)>,
    hasher: RandomState,
}

impl<V> Failed<V> {
    pub fn new(most: usize) -> Self {
        Self { most, jobs: VecDeque::new(), hasher: RandomState::new() }
    }

    /// Some are kept.
    pub fn keeps(&self) -> bool {
        self.most > 0
    }

    /// Makes room for one more.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn reserve(&mut self) -> Result<(), OutOfMemory> {
        Ok(self.jobs.try_reserve(1)?)
    }

    /// Keeps a job, and gives back the one that goes for it, if one does.
    pub fn keep(&mut self, job: Job<V>) -> Option<Job<V>> {
        let oldest = if self.jobs.len() < self.most { None } else { self.jobs.pop_front() };
        let hash = job.name.with_text(|text| self.hasher.hash_one(text));
        self.jobs.push_back((hash, job));
        oldest.map(|(_, job)| job)
    }

    /// The place of the newest of this id.
    pub fn newest(&self, id: &[u8]) -> Option<usize> {
        let hash = self.hasher.hash_one(id);
        let is_it =
            |(of_it, job): &(u64, Job<V>)| *of_it == hash && job.name.with_text(|text| text == id);
        self.jobs.iter().rposition(is_it)
    }

    /// The job at this place.
    pub fn get(&self, place: usize) -> Option<&Job<V>> {
        self.jobs.get(place).map(|(_, job)| job)
    }

    /// Takes out the job at this place.
    pub fn take(&mut self, place: usize) -> Option<Job<V>> {
        self.jobs.remove(place).map(|(_, job)| job)
    }

    /// The job with this sequence number.
    pub fn find(&self, seq: u64) -> Option<&Job<V>> {
        let place = self.jobs.binary_search_by_key(&seq, |(_, job)| job.seq).ok()?;
        self.get(place)
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Job<V>> {
        self.jobs.iter().map(|(_, job)| job)
    }
}
