//! Waits that do not end as those of parked jobs do, by a resume: those that lie beneath another
//! wait of their job, those whose calls an error has ended, and those that block the thread.
//!
//! A hook or a finalizer can strike when a job's wait is noted and its yield is still to come, and
//! can wait itself. Its wait goes on top.

use super::{Crew, Phase};
use crate::core::clock::Moment;
use crate::core::places::{End, Places};
use crate::core::waiter::{Outcome, Served, Waiter};

impl<T> Crew<T> {
    /// Undoes the last wait of a job that runs on regardless.
    #[cold]
    pub fn abort(&mut self, number: u32) {
        if self.has_wait(number) {
            let phase = &mut self.posts[number as usize].phase;
            let wait = std::mem::replace(phase, Phase::Running);
            self.bring_back(number);
            self.undo(wait);
        }
    }

    /// Undoes all waits of a job that runs on regardless.
    pub fn abort_all(&mut self, number: u32) {
        while self.has_wait(number) {
            self.abort(number);
        }
    }

    /// Undoes the waits of a job but for the last, for which it has yielded: errors have ended the
    /// calls of the others.
    pub fn abort_under(&mut self, number: u32) {
        while let Some(wait) = self.take_under(number) {
            self.undo(wait);
        }
    }

    /// Another wait is to come on top of the one that is there.
    #[cold]
    pub(super) fn put_under(&mut self, number: u32) {
        let phase = &mut self.posts[number as usize].phase;
        self.under.push((number, std::mem::replace(phase, Phase::Running)));
    }

    fn take_under(&mut self, number: u32) -> Option<Phase<T>> {
        let at = self.under.iter().rposition(|&(whose, _)| whose == number)?;
        Some(self.under.remove(at).1)
    }

    /// The last wait of a job has gone: the one under it takes its place.
    pub fn bring_back(&mut self, number: u32) {
        if let Some(wait) = self.take_under(number) {
            self.posts[number as usize].phase = wait;
        }
    }

    fn undo(&mut self, wait: Phase<T>) {
        match wait {
            Phase::Waiting(wait) => {
                self.limited -= usize::from(wait.deadline < Moment::NEVER);
                wait.undo(wait.waiter.leave());
            }
            Phase::Ended { wait, end: End::Served(served) } => wait.undo(Some(served)),
            Phase::Ended { wait, end: End::Timeout } => wait.undo(None),
            Phase::Running | Phase::Idle => {}
        }
    }

    /// For a job that waits on the thread: its ticket and time limit, while it is to go on waiting.
    pub fn poll_wait(&mut self, number: u32, now: Moment) -> Option<(Waiter<T>, Moment)> {
        let Phase::Waiting(wait) = &self.posts[number as usize].phase else { return None };
        let runs = if let Places::Run(crew) = &wait.places { Some(crew) } else { None };
        if wait.deadline == Moment::NEVER
            && let Some(accused) = runs.and_then(|crew| crew.borrow().dead_end())
        {
            // It waits for jobs of which none can go on. One is told, which wakes it as well.
            let _ = accused.serve(0, Outcome::Endless);
        }
        let served = if wait.waiter.is_open() { None } else { wait.waiter.leave() };
        let end = if let Some(served) = served {
            End::Served(served)
        } else if wait.deadline <= now {
            wait.waiter.leave().map_or(End::Timeout, End::Served)
        } else if wait.deadline == Moment::NEVER && runs.is_none() && !wait.places.is_fed() {
            wait.waiter.leave();
            End::Served(Served { case: 0, outcome: Outcome::Endless })
        } else {
            return Some((wait.waiter.clone(), wait.deadline));
        };
        self.limited -= self.posts[number as usize].settle(end);
        None
    }
}
