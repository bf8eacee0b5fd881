//! How a wait ends, and the ticket to one.
//!
//! All waits of one Lua state sit at one [`Parker`]. A wait is either open or served, and the first
//! to serve it decides how it ends; so a wait that is entered at several channels, or that times out
//! while a value comes in, ends in exactly one way. Channels hold [`Waiter`]s, the tickets to waits;
//! a ticket whose seat is taken by a later wait is void.

use super::clock::{Moment, Span};
use super::parker::{Parker, Ticket};
use super::sync::Arc;

/// How a wait at a channel ended, other than by time.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// A value for a receiver.
    Received(T),
    /// A sender's value was taken.
    Sent,
    /// The channel was closed. A sender has his value back.
    Closed(Option<T>),
    /// There is something to look at: for a pump that waits as a job of another queue.
    Woken,
    /// Nothing could ever end the wait.
    Endless,
}

impl<T> Outcome<T> {
    /// The value that travels with the outcome, if one does.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Received(value) | Self::Closed(Some(value)) => Some(value),
            Self::Sent | Self::Closed(None) | Self::Woken | Self::Endless => None,
        }
    }
}

/// A wait that was served: at which of the places where it was entered, and how.
#[derive(Debug, PartialEq, Eq)]
pub struct Served<T> {
    pub case: u32,
    pub outcome: Outcome<T>,
}

/// One wait: a ticket to a seat.
pub struct Waiter<T> {
    parker: Arc<Parker<T>>,
    ticket: Ticket,
}

impl<T> Clone for Waiter<T> {
    fn clone(&self) -> Self {
        Self { parker: Arc::clone(&self.parker), ticket: self.ticket }
    }
}

impl<T> PartialEq for Waiter<T> {
    fn eq(&self, other: &Self) -> bool {
        self.ticket == other.ticket && Arc::ptr_eq(&self.parker, &other.parker)
    }
}

impl<T> Waiter<T> {
    pub(super) fn new(parker: Arc<Parker<T>>, ticket: Ticket) -> Self {
        Self { parker, ticket }
    }

    pub(super) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// The number of the wait among all of its parker, which shows which of two is older.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.ticket.number
    }

    /// The wait of this number, which [`super::parker::Woken::collect`] opened.
    #[must_use]
    pub fn next(&self, number: u64) -> Self {
        let ticket = Ticket { number, ..self.ticket };
        Self { parker: Arc::clone(&self.parker), ticket }
    }

    /// Nobody has served the wait yet, and it has not ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.parker.seats().is_open(self.ticket)
    }

    /// Ends the wait with `outcome`, as entered at `case`, and wakes its thread where that sleeps.
    ///
    /// # Errors
    /// The outcome comes back where the wait has ended already.
    pub fn serve(&self, case: u32, outcome: Outcome<T>) -> Result<(), Outcome<T>> {
        let mut seats = self.parker.seats();
        seats.serve(self.ticket, Served { case, outcome })?;
        self.parker.ring(&seats);
        Ok(())
    }

    /// Looks a while whether the wait is served before the thread goes to sleep: who serves it from
    /// another core is often quicker than a sleep and a wake-up. For as long as `patience.rs` says,
    /// and no longer than `until`. True: served.
    #[must_use]
    pub fn spin(&self, until: Moment) -> bool {
        let until = until.min(Moment::now().after(self.parker.patience.span()));
        while self.is_open() {
            if Moment::now() >= until {
                return false;
            }
            std::hint::spin_loop();
        }
        self.parker.patience.was_right();
        true
    }

    /// Notes that looking was in vain, and how long the thread then slept till the wait was served;
    /// [`Span::FOREVER`]: it was not.
    pub fn slept(&self, span: Span) {
        self.parker.patience.was_wrong(span);
    }

    /// Puts the thread to sleep until the wait is served or `until` has come. True: served.
    #[must_use]
    pub fn sleep(&self, until: Moment) -> bool {
        let mut seats = self.parker.seats();
        while !seats.is_over(self.ticket) {
            let now = Moment::now();
            if now >= until {
                return false;
            }
            seats = self.parker.doze(seats, until, now);
        }
        true
    }

    /// Ends the wait and tells how it was served, if it was. After this nobody can serve it.
    #[allow(clippy::must_use_candidate, reason = "often all that is wanted is the end")]
    pub fn leave(&self) -> Option<Served<T>> {
        self.parker.seats().leave(self.ticket)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::core::clock::Span;

    #[test]
    fn the_first_to_serve_decides() {
        let parker = Arc::new(Parker::new());
        let waiter = parker.sit(None).unwrap();
        assert_eq!(waiter.serve(2, Outcome::Received(7)), Ok(()));
        assert_eq!(waiter.serve(0, Outcome::Received(8)), Err(Outcome::Received(8)));
        assert!(waiter.sleep(Moment::NEVER));
        assert_eq!(waiter.leave(), Some(Served { case: 2, outcome: Outcome::Received(7) }));
        assert_eq!(waiter.leave(), None);
    }

    #[test]
    fn a_ticket_of_an_ended_wait_is_void() {
        let parker = Arc::new(Parker::new());
        let old = parker.sit(None).unwrap();
        assert_eq!(old.leave(), None);
        let new = parker.sit(None).unwrap();
        assert!(old != new);
        assert_eq!(old.serve(0, Outcome::Received(1)), Err(Outcome::Received(1)));
        assert_eq!(new.serve(0, Outcome::Received(2)), Ok(()));
        assert_eq!(old.leave(), None, "and does not end the wait that sits there now");
        assert!(new.leave().is_some());
    }

    #[test]
    fn sleep_ends_at_its_moment_and_not_before() {
        let parker = Arc::new(Parker::<u32>::new());
        let waiter = parker.sit(None).unwrap();
        let until = Moment::now().after(Span::from_nanos(5_000_000));
        assert!(!waiter.sleep(until));
        assert!(Moment::now() >= until);
    }

    #[test]
    fn a_sleeping_thread_is_woken() {
        let parker = Arc::new(Parker::new());
        let waiter = parker.sit(None).unwrap();
        let server = waiter.clone();
        let thread = std::thread::spawn(move || server.serve(0, Outcome::Received(1)).is_ok());
        assert!(waiter.sleep(Moment::NEVER));
        assert!(thread.join().unwrap());
    }
}
