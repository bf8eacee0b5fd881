//! Where the jobs of a queue wait, and how their waits end.

use std::cell::RefCell;
use std::rc::Rc;

use super::channel::Channel;
use super::clock::Moment;
use super::crew::Crew;
use super::sync::Arc;
use super::waiter::{Outcome, Served, Waiter};

/// Where a job waits.
pub enum Places<T> {
    /// Nowhere: it sleeps.
    Nowhere,
    /// At one channel.
    Channel(Arc<Channel<T>>),
    /// At several, each under the number of its case; `None` is a case that is never ready.
    Select(Vec<Option<Arc<Channel<T>>>>),
    /// In the `run` of another queue, whose jobs wait in turn.
    Run(Rc<RefCell<Crew<T>>>),
}

impl<T> Places<T> {
    /// Something beyond the jobs can end the wait.
    pub(super) fn is_fed(&self) -> bool {
        match self {
            Self::Nowhere | Self::Run(_) => false,
            Self::Channel(channel) => channel.is_fed(),
            Self::Select(channels) => channels.iter().flatten().any(|channel| channel.is_fed()),
        }
    }

    /// Another thread may end the wait at once ([`Channel::is_prompt`]).
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        match self {
            Self::Nowhere | Self::Run(_) => false,
            Self::Channel(channel) => channel.is_prompt(),
            Self::Select(channels) => channels.iter().flatten().any(|channel| channel.is_prompt()),
        }
    }

    /// The next time of a timer that feeds a channel here.
    pub(super) fn next_feed(&self, now: Moment) -> Moment {
        match self {
            Self::Nowhere => Moment::NEVER,
            Self::Channel(channel) => channel.next_feed(),
            Self::Select(channels) => {
                let feeds = channels.iter().flatten().map(|channel| channel.next_feed());
                feeds.min().unwrap_or(Moment::NEVER)
            }
            Self::Run(crew) => crew.borrow_mut().next_change(now),
        }
    }

    /// The channel of a case.
    fn at(&self, case: u32) -> Option<&Arc<Channel<T>>> {
        match self {
            Self::Nowhere | Self::Run(_) => None,
            Self::Channel(channel) => Some(channel),
            Self::Select(channels) => channels.get(case as usize)?.as_ref(),
        }
    }

    /// Undoes how a wait was served: a value that was received goes back; one that was not sent, or
    /// cannot go back, is handed to `unsent` with the number of the case.
    pub fn take_back(&self, served: Served<T>, unsent: impl FnOnce(u32, T)) {
        let Some(channel) = self.at(served.case) else { return };
        let left = match served.outcome {
            Outcome::Received(value) => channel.put_back(value).err(),
            Outcome::Closed(value) => value,
            Outcome::Sent | Outcome::Woken | Outcome::Endless => None,
        };
        if let Some(value) = left {
            unsent(served.case, value);
        }
    }

    /// Takes `waiter` out wherever it is entered, and hands what it wanted to send to `unsent`,
    /// with the number of the case.
    pub fn withdraw(&self, waiter: &Waiter<T>, mut unsent: impl FnMut(u32, &Channel<T>, T)) {
        match self {
            Self::Nowhere | Self::Run(_) => {}
            Self::Channel(channel) => {
                if let Some(value) = channel.withdraw(waiter, 0) {
                    unsent(0, channel, value);
                }
            }
            Self::Select(channels) => {
                for (case, channel) in (0..).zip(channels) {
                    let Some(channel) = channel else { continue };
                    if let Some(value) = channel.withdraw(waiter, case) {
                        unsent(case, channel, value);
                    }
                }
            }
        }
    }
}

/// A wait of a job.
pub struct Wait<T> {
    pub waiter: Waiter<T>,
    pub places: Places<T>,
    /// [`Moment::NEVER`]: no time limit.
    pub deadline: Moment,
}

/// How a wait ended.
pub enum End<T> {
    Served(Served<T>),
    Timeout,
}

impl<T> Wait<T> {
    /// Undoes a wait whose job does not go on.
    pub(super) fn undo(&self, served: Option<Served<T>>) {
        self.places.withdraw(&self.waiter, |_, channel, value| channel.abandon(value));
        if let Some(served) = served {
            let case = served.case;
            self.places.take_back(served, |_, value| {
                if let Some(channel) = self.places.at(case) {
                    channel.abandon(value);
                }
            });
        }
    }
}
