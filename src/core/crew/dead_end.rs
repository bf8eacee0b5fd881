//! Whether anything can end the waits of a crew.

use super::{Crew, Phase};
use crate::core::clock::Moment;
use crate::core::places::Places;
use crate::core::waiter::Waiter;

impl<T> Crew<T> {
    /// The wait that has lasted longest, where nothing can end any wait of this crew, nor of the
    /// crews that are run inside its jobs. The caller knows that nobody is ready and no job can
    /// start here.
    #[must_use]
    pub fn dead_end(&self) -> Option<Waiter<T>> {
        let mut oldest = None;
        if self.is_stuck(&mut oldest) { oldest.map(|(_, waiter)| waiter) } else { None }
    }

    fn is_stuck(&self, oldest: &mut Option<(u64, Waiter<T>)>) -> bool {
        self.posts.iter().all(|post| {
            let wait = match &post.phase {
                Phase::Idle => return true,
                Phase::Running | Phase::Ended { .. } => return false,
                Phase::Waiting(wait) => wait,
            };
            if wait.deadline < Moment::NEVER || wait.places.is_fed() {
                return false;
            }
            // A pump parks after its jobs have: where it waits for some, one of those is older.
            if let Places::Run(crew) = &wait.places
                && !crew.borrow().is_stuck(oldest)
            {
                return false;
            }
            if oldest.as_ref().is_none_or(|(oldest, _)| post.wait < *oldest) {
                *oldest = Some((post.wait, wait.waiter.clone()));
            }
            true
        })
    }
}
