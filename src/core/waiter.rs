//! Who waits, until when, and how a wait ends.
//!
//! All waits of one Lua state share a [`Parker`]: the place where its thread sleeps. A wait is a
//! seat there. It is either open or served, and the first to serve it decides how it ends; so a
//! wait that is entered at several channels, or that times out while a value comes in, ends in
//! exactly one way. Channels hold [`Waiter`]s, the tickets to such seats; a ticket whose seat is
//! taken by a later wait is void.
//!
//! Locks are taken in one order: a channel's, then a parker's.

use super::OutOfMemory;
use super::clock::Moment;
use super::sync::{Arc, Condvar, Mutex, lock};

/// How a wait at a channel ended, other than by time.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// A value for a receiver.
    Received(T),
    /// A sender's value was taken.
    Sent,
    /// The channel was closed. A sender has his value back.
    Closed(Option<T>),
}

impl<T> Outcome<T> {
    /// The value that travels with the outcome, if one does.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Received(value) | Self::Closed(Some(value)) => Some(value),
            Self::Sent | Self::Closed(None) => None,
        }
    }
}

/// A wait that was served: at which of the places where it was entered, and how.
#[derive(Debug, PartialEq, Eq)]
pub struct Served<T> {
    pub case: u32,
    pub outcome: Outcome<T>,
}

#[derive(Debug)]
enum Phase<T> {
    Free,
    Open,
    Served(Served<T>),
}

#[derive(Debug)]
struct Seat<T> {
    /// Grows with each wait that sits here.
    ticket: u64,
    phase: Phase<T>,
}

#[derive(Debug)]
struct Seats<T> {
    all: Vec<Seat<T>>,
    free: Vec<u32>,
    /// Threads asleep on the bell: 0 or 1, or more where a hook waits within a wait.
    sleepers: usize,
}

/// Where the thread of one Lua state sleeps, and which of its waits have been served.
#[derive(Debug)]
pub struct Parker<T> {
    seats: Mutex<Seats<T>>,
    bell: Condvar,
}

/// One wait: a ticket to a seat.
#[derive(Debug)]
pub struct Waiter<T> {
    parker: Arc<Parker<T>>,
    seat: u32,
    ticket: u64,
}

impl<T> Clone for Waiter<T> {
    fn clone(&self) -> Self {
        Self { parker: Arc::clone(&self.parker), seat: self.seat, ticket: self.ticket }
    }
}

impl<T> PartialEq for Waiter<T> {
    fn eq(&self, other: &Self) -> bool {
        self.ticket == other.ticket
            && self.seat == other.seat
            && Arc::ptr_eq(&self.parker, &other.parker)
    }
}

impl<T> Default for Parker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Parker<T> {
    #[must_use]
    pub fn new() -> Self {
        let seats = Seats { all: Vec::new(), free: Vec::new(), sleepers: 0 };
        Self { seats: Mutex::new(seats), bell: Condvar::new() }
    }

    /// Opens a wait. It lasts until [`Waiter::leave`].
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn sit(self: &Arc<Self>) -> Result<Waiter<T>, OutOfMemory> {
        let mut inner = lock(&self.seats);
        let seat = if let Some(seat) = inner.free.pop() {
            seat
        } else {
            let taken = inner.all.len() + 1;
            inner.all.try_reserve(1)?;
            inner.free.try_reserve(taken)?;
            inner.all.push(Seat { ticket: 0, phase: Phase::Free });
            u32::try_from(inner.all.len() - 1).map_err(|_| OutOfMemory)?
        };
        let place = &mut inner.all[seat as usize];
        place.ticket += 1;
        place.phase = Phase::Open;
        Ok(Waiter { parker: Arc::clone(self), seat, ticket: place.ticket })
    }
}

impl<T> Waiter<T> {
    /// Ends the wait with `outcome`, as entered at `case`, and wakes its thread where that sleeps.
    ///
    /// # Errors
    /// The outcome comes back where the wait has ended already.
    pub fn serve(&self, case: u32, outcome: Outcome<T>) -> Result<(), Outcome<T>> {
        let mut inner = lock(&self.parker.seats);
        let seat = &mut inner.all[self.seat as usize];
        if seat.ticket != self.ticket || !matches!(seat.phase, Phase::Open) {
            return Err(outcome);
        }
        seat.phase = Phase::Served(Served { case, outcome });
        // A notification is a system call even where nobody sleeps.
        if inner.sleepers > 0 {
            self.parker.bell.notify_all();
        }
        Ok(())
    }

    /// Puts the thread to sleep until the wait is served or `until` has come. True: served.
    #[must_use]
    pub fn sleep(&self, until: Moment) -> bool {
        let mut inner = lock(&self.parker.seats);
        loop {
            let seat = &inner.all[self.seat as usize];
            if seat.ticket != self.ticket || matches!(seat.phase, Phase::Served(_)) {
                return true;
            }
            let now = Moment::now();
            if now >= until {
                return false;
            }
            inner.sleepers += 1;
            inner = doze(&self.parker.bell, inner, until, now);
            inner.sleepers -= 1;
        }
    }

    /// Ends the wait and tells how it was served, if it was. After this nobody can serve it.
    pub fn leave(&self) -> Option<Served<T>> {
        let mut inner = lock(&self.parker.seats);
        let seat = &mut inner.all[self.seat as usize];
        if seat.ticket != self.ticket {
            return None;
        }
        match std::mem::replace(&mut seat.phase, Phase::Free) {
            Phase::Free => None,
            Phase::Open => {
                inner.free.push(self.seat);
                None
            }
            Phase::Served(served) => {
                inner.free.push(self.seat);
                Some(served)
            }
        }
    }
}

/// Sleeps on `bell` until it rings, or `until`, or for no reason at all.
pub(super) fn doze<'a, S>(
    bell: &Condvar,
    guard: super::sync::MutexGuard<'a, S>,
    until: Moment,
    now: Moment,
) -> super::sync::MutexGuard<'a, S> {
    if until == Moment::NEVER {
        return bell.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    let left = until.since(now).to_duration();
    bell.wait_timeout(guard, left).unwrap_or_else(std::sync::PoisonError::into_inner).0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::core::clock::Span;

    #[test]
    fn the_first_to_serve_decides() {
        let parker = Arc::new(Parker::new());
        let waiter = parker.sit().unwrap();
        assert_eq!(waiter.serve(2, Outcome::Received(7)), Ok(()));
        assert_eq!(waiter.serve(0, Outcome::Received(8)), Err(Outcome::Received(8)));
        assert!(waiter.sleep(Moment::NEVER));
        assert_eq!(waiter.leave(), Some(Served { case: 2, outcome: Outcome::Received(7) }));
        assert_eq!(waiter.leave(), None);
    }

    #[test]
    fn a_ticket_of_an_ended_wait_is_void() {
        let parker = Arc::new(Parker::new());
        let old = parker.sit().unwrap();
        assert_eq!(old.leave(), None);
        let new = parker.sit().unwrap();
        assert!(old != new);
        assert_eq!(old.serve(0, Outcome::Received(1)), Err(Outcome::Received(1)));
        assert_eq!(new.serve(0, Outcome::Received(2)), Ok(()));
        assert_eq!(old.leave(), None, "and does not end the wait that sits there now");
        assert!(new.leave().is_some());
    }

    #[test]
    fn sleep_ends_at_its_moment_and_not_before() {
        let parker = Arc::new(Parker::<u32>::new());
        let waiter = parker.sit().unwrap();
        let until = Moment::now().after(Span::from_nanos(5_000_000));
        assert!(!waiter.sleep(until));
        assert!(Moment::now() >= until);
    }

    #[test]
    fn a_sleeping_thread_is_woken() {
        let parker = Arc::new(Parker::new());
        let waiter = parker.sit().unwrap();
        let server = waiter.clone();
        let thread = std::thread::spawn(move || server.serve(0, Outcome::Received(1)).is_ok());
        assert!(waiter.sleep(Moment::NEVER));
        assert!(thread.join().unwrap());
    }
}
