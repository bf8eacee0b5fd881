//! What is asked of the jobs of an id, or of all of them: how they stand, and what a hand from
//! outside does to them.

use super::{Refusal, Scheduler};
use crate::core::OutOfMemory;
use crate::core::clock::Moment;
use crate::core::job::{Cancelled, Job, NO_SLOT, Name, Ready, Sighting, State, Status, View};
use crate::core::names::Walk;

/// Where a series of calls of [`Scheduler::cancel_next`] stands.
pub type Cursor = Walk;

/// How a job stands, if it is alive.
fn status_of<V>(job: &Job<V>) -> Option<Status> {
    match job.state {
        State::Running | State::Raised => Some(Status::Running),
        State::Ready => Some(Status::Ready),
        State::Delayed => Some(Status::Delayed),
        State::Free | State::Shed => None,
    }
}

impl<V: Copy> Scheduler<V> {
    // --- by id ---------------------------------------------------------------------------------

    /// A job of this id is pending or running.
    pub(super) fn is_alive(&self, id: &[u8]) -> bool {
        let mut walk = Walk::default();
        std::iter::from_fn(|| self.names.next(&self.jobs, id, &mut walk))
            .any(|slot| status_of(&self.jobs[slot as usize]).is_some())
    }

    /// How the jobs of this id stand: the first of running, ready and delayed that one of them is.
    pub fn status(&mut self, id: &[u8], now: Moment) -> Option<Status> {
        self.promote(now);
        let (mut walk, mut best) = (Walk::default(), None);
        while let Some(slot) = self.names.next(&self.jobs, id, &mut walk) {
            best = match (status_of(&self.jobs[slot as usize]), best) {
                (Some(Status::Running), _) => return Some(Status::Running),
                (Some(Status::Ready), _) => Some(Status::Ready),
                (Some(Status::Delayed), None) => Some(Status::Delayed),
                (_, best) => best,
            };
        }
        best
    }

    /// Takes one pending job of this id out, or ends a series whose beat is in flight; `None` when
    /// there are no more. `cursor` begins as its default.
    pub fn cancel_next(&mut self, id: &[u8], cursor: &mut Cursor) -> Option<Cancelled<V>> {
        while let Some(slot) = self.names.next(&self.jobs, id, cursor) {
            if let Some(values) = self.withdraw(slot) {
                self.metrics.cancelled += 1;
                return Some(Cancelled::Job(values));
            }
            if self.terms.end_series(self.jobs[slot as usize].terms) {
                return Some(Cancelled::Series);
            }
        }
        None
    }

    /// Moves the pending jobs of this id to another priority, where they are in the order of their
    /// filing, and tells how many. A series keeps it.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn set_priority(&mut self, id: &[u8], priority: i64) -> Result<usize, OutOfMemory> {
        let (mut walk, mut entries) = (Walk::default(), 0);
        while let Some(slot) = self.names.next(&self.jobs, id, &mut walk) {
            entries += usize::from(self.jobs[slot as usize].state == State::Ready);
        }
        self.ready.reserve_heap(self.live + entries)?;
        let (mut walk, mut moved) = (Walk::default(), 0);
        while let Some(slot) = self.names.next(&self.jobs, id, &mut walk) {
            let job = &mut self.jobs[slot as usize];
            if !job.state.is_pending() {
                continue;
            }
            moved += 1;
            if std::mem::replace(&mut job.priority, priority) != priority
                && job.state == State::Ready
            {
                self.ready.push_late(Ready { priority, seq: job.seq, slot });
                self.stale_ready += 1;
            }
        }
        self.sweep();
        Ok(moved)
    }

    // --- all of them ---------------------------------------------------------------------------

    /// The jobs that are alive: those in flight in the order of their starts, the ready ones as they
    /// would start, the delayed ones by due time.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn sightings(&mut self, now: Moment) -> Result<Vec<Sighting>, OutOfMemory> {
        self.promote(now);
        let mut alive: Vec<(Status, i64, u64, u64, u32)> = Vec::new();
        alive.try_reserve_exact(self.pending() + self.in_flight())?;
        for (slot, job) in (0..).zip(&self.jobs) {
            let Some(status) = status_of(job) else { continue };
            let (priority, due) = match status {
                Status::Running => (0, 0),
                // The highest first.
                Status::Ready => (!job.priority, 0),
                Status::Delayed => (0, job.since.nanos()),
            };
            alive.push((status, priority, due, job.seq, slot));
        }
        alive.sort_unstable();
        let mut sightings = Vec::new();
        sightings.try_reserve_exact(alive.len())?;
        sightings.extend(alive.iter().map(|&(_, _, _, seq, slot)| Sighting { slot, seq }));
        Ok(sightings)
    }

    /// The failed jobs that are kept, the oldest first.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn failed(&self) -> Result<Vec<Sighting>, OutOfMemory> {
        let mut sightings = Vec::new();
        sightings.try_reserve_exact(self.failed.iter().len())?;
        sightings
            .extend(self.failed.iter().map(|&Job { seq, .. }| Sighting { slot: NO_SLOT, seq }));
        Ok(sightings)
    }

    /// The id of the job that was seen and what one sees of it, unless it has gone, or gone on,
    /// since.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn view(&self, sighting: Sighting) -> Result<Option<(Name, View<V>)>, OutOfMemory> {
        let Sighting { slot, seq } = sighting;
        let in_slot = self.job(slot).filter(|job| job.seq == seq);
        let job = if slot == NO_SLOT { self.failed.find(seq) } else { in_slot };
        let Some(job) = job else { return Ok(None) };
        let view = View {
            status: if slot == NO_SLOT { None } else { status_of(job) },
            priority: job.priority,
            attempts: job.attempts,
            retries: self.terms.of(job.terms).retries,
            since: job.since,
            values: job.values,
        };
        Ok(Some((job.name.try_clone()?, view)))
    }

    // --- failed ones ---------------------------------------------------------------------------

    /// Pushes the newest failed job of this id again, due at once. Gives access to its values, which
    /// the face may have added to when it was kept. `None`: there is none.
    ///
    /// # Errors
    /// A refusal, or else [`OutOfMemory`]; nothing was changed.
    pub fn revive(
        &mut self,
        id: &[u8],
        now: Moment,
    ) -> Result<Option<&mut V>, Result<Refusal, OutOfMemory>> {
        let Some(place) = self.failed.newest(id) else { return Ok(None) };
        let Some(job) = self.failed.get(place) else { return Ok(None) };
        let may_wait = self.terms.of(job.terms).retries > 0;
        let (priority, is_unique) = (job.priority, job.is_unique);
        let name = job.name.given().map_err(Err)?;
        if let Some(refusal) = self.refusal(is_unique.then_some(id), false) {
            return Err(Ok(refusal));
        }
        self.reserve_slot().map_err(Err)?;
        self.names.reserve(&self.jobs, true).map_err(Err)?;
        self.reserve_places(priority, true, may_wait).map_err(Err)?;
        let Some(job) = self.failed.take(place) else { return Ok(None) };
        let slot = self.place(Job { name, attempts: 0, since: now, ..job });
        self.names.add(&mut self.jobs, slot);
        self.metrics.enqueued += 1;
        self.file(slot, now, true);
        Ok(Some(&mut self.jobs[slot as usize].values))
    }
}
