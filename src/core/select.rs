//! One of several sends and receives, whichever can take place first.
//!
//! The channels are locked together, always in the order of their addresses, so that no two selects
//! wait for each other's locks. Under these locks either a case that is ready takes place, or the
//! waiter is entered everywhere; nothing can come in between. As the waiter is not in any line
//! while the cases are tried, a select never meets itself.

use super::channel::{Channel, Unsent, Wait};
use super::guard::Locked;
use super::line::Entry;
use super::sync::Arc;
use super::waiter::Outcome;

/// A receive, or a send of a value.
pub struct Case<T> {
    pub channel: Arc<Channel<T>>,
    /// The value, until it has gone: to a receiver, to a buffer, or into the line of senders.
    pub send: Option<T>,
}

/// What came of a select.
#[derive(Debug, PartialEq, Eq)]
pub enum Selected<T> {
    /// This case took place.
    Done(u32, Outcome<T>),
    /// None is ready, and no wait was wanted.
    NotReady,
    /// The waiter was entered at every channel, under the number of its case.
    Entered,
    /// It would wait for something that cannot come.
    Endless,
    OutOfMemory,
}

/// What tells channels apart, and orders them.
fn address<T>(channel: &Arc<Channel<T>>) -> *const () {
    Arc::as_ptr(channel).cast()
}

/// Tries the cases in the given order, which is to be random: the first that is ready takes place.
/// `None` is a case that is never ready. Else waits as `wait` says.
///
/// A send on a closed channel is ready, with [`Outcome::Closed`] and before all others.
pub fn select<T>(cases: &mut [Option<Case<T>>], order: &[u32], wait: &Wait<'_, T>) -> Selected<T> {
    // The channels outlive the guards, and `cases` is changed meanwhile: hence the clones.
    let mut channels: Vec<Arc<Channel<T>>> = Vec::new();
    if channels.try_reserve_exact(cases.len()).is_err() {
        return Selected::OutOfMemory;
    }
    channels.extend(cases.iter().flatten().map(|case| Arc::clone(&case.channel)));
    channels.sort_unstable_by_key(address);
    channels.dedup_by_key(|channel| address(channel));
    let mut guards: Vec<Locked<'_, T>> = Vec::new();
    if guards.try_reserve_exact(channels.len()).is_err() {
        return Selected::OutOfMemory;
    }
    guards.extend(channels.iter().map(|channel| channel.lock()));
    let place = |channel: &Arc<Channel<T>>| {
        channels.binary_search_by_key(&address(channel), address).unwrap_or_default()
    };

    for (number, case) in (0..).zip(cases.iter_mut()) {
        if let Some(case) = case
            && case.send.is_some()
            && guards[place(&case.channel)].closed
        {
            return Selected::Done(number, Outcome::Closed(case.send.take()));
        }
    }
    for &number in order {
        let Some(case) = &mut cases[number as usize] else { continue };
        let state = &mut guards[place(&case.channel)];
        if let Some(value) = case.send.take() {
            match state.offer(value, case.channel.capacity()) {
                Ok(()) => return Selected::Done(number, Outcome::Sent),
                Err(Unsent::OutOfMemory(value)) => {
                    case.send = Some(value);
                    return Selected::OutOfMemory;
                }
                Err(Unsent::Full(value) | Unsent::Closed(value) | Unsent::Endless(value)) => {
                    case.send = Some(value);
                }
            }
        } else if let Some(value) = state.take(case.channel.capacity()) {
            return Selected::Done(number, Outcome::Received(value));
        } else if state.closed {
            return Selected::Done(number, Outcome::Closed(None));
        }
    }

    let waiter = match *wait {
        Wait::No => return Selected::NotReady,
        Wait::EnterFed(waiter) => {
            let hopeful = cases.iter().flatten().any(|case| {
                let receives = case.send.is_none();
                case.channel.is_shared() || receives && guards[place(&case.channel)].is_fed
            });
            if !hopeful {
                return Selected::Endless;
            }
            waiter
        }
        Wait::Enter(waiter) => waiter,
    };
    // Room first, for all: entering is one step or none.
    for guard in &mut guards {
        if guard.receivers.try_reserve(cases.len()).is_err()
            || guard.senders.try_reserve(cases.len()).is_err()
        {
            return Selected::OutOfMemory;
        }
    }
    for (number, case) in (0..).zip(cases.iter_mut()) {
        let Some(case) = case else { continue };
        let state = &mut guards[place(&case.channel)];
        let entry = Entry { waiter: waiter.clone(), case: number };
        match case.send.take() {
            Some(value) => state.senders.push_back((entry, value)),
            None => state.receivers.push_back(entry),
        }
    }
    Selected::Entered
}
