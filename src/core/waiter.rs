//! Who waits, until when, and how a wait ends.
//!
//! All waits of one Lua state share a [`Parker`]: the place where its thread sleeps. A wait is a
//! seat there. It is either open or served, and the first to serve it decides how it ends; so a
//! wait that is entered at several channels, or that times out while a value comes in, ends in
//! exactly one way. Channels hold [`Waiter`]s, the tickets to such seats; a ticket whose seat is
//! taken by a later wait is void.
//!
//! The jobs of a queue that wait side by side are a group: who of them was served is noted in the
//! order in which it happened, and the thread that drives them sleeps for the group as a whole.
//!
//! Locks are taken in one order: a channel's, then a parker's.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::OutOfMemory;
use super::clock::Moment;
use super::sync::{Arc, Condvar, Mutex, MutexGuard, lock};

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

#[derive(Debug)]
enum Phase<T> {
    Free,
    Open,
    Served(Served<T>),
}

/// A job that can wait beside others: the number of its group, and its own within the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub group: u32,
    pub number: u32,
}

#[derive(Debug)]
struct Seat<T> {
    /// Of the wait that sits here, or sat here last.
    ticket: u64,
    phase: Phase<T>,
    /// Who waits; `None`: the thread itself.
    member: Option<Member>,
}

/// Something outside that shows a state, say a file descriptor that polls readable.
pub trait Signal: Send + Sync {
    /// Called only when the state has changed.
    fn set(&self, on: bool);
}

/// The waits of one queue's jobs.
#[derive(Default)]
struct Group {
    /// Members that can go on, in the order in which they became able to. One whose wait was served
    /// while its yield failed may be there twice.
    woken: VecDeque<u32>,
    /// The wait of the queue's pump, while that is parked as a job of another queue: a seat and its
    /// ticket.
    pump: Option<(u32, u64)>,
    /// Shows outside that somebody is woken.
    signal: Option<Arc<dyn Signal>>,
}

impl Group {
    fn wake(&mut self, number: u32) {
        if self.woken.is_empty()
            && let Some(signal) = &self.signal
        {
            signal.set(true);
        }
        self.woken.push_back(number);
    }
}

struct Seats<T> {
    all: Vec<Seat<T>>,
    free: Vec<u32>,
    /// Counts the waits.
    tickets: u64,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    /// Threads asleep on the bell: 0 or 1, or more where a hook waits within a wait.
    sleepers: usize,
}

/// Where the thread of one Lua state sleeps, and which of its waits have been served.
pub struct Parker<T> {
    seats: Mutex<Seats<T>>,
    bell: Condvar,
    /// Counts the waits of jobs. Their tickets do not: one may be there long before its wait.
    waits: AtomicU64,
}

/// Who of a group can go on, while nobody is served.
pub struct Woken<'a, T> {
    seats: MutexGuard<'a, Seats<T>>,
    group: u32,
}

impl<T> Woken<'_, T> {
    /// The next member, in the order in which they became able to go on.
    pub fn pop(&mut self) -> Option<u32> {
        self.seats.groups[self.group as usize].woken.pop_front()
    }

    /// [`Waiter::collect`] for a wait of one of them.
    pub fn collect(&mut self, waiter: &Waiter<T>) -> Option<(Served<T>, u64)> {
        self.seats.collect(waiter.seat, waiter.ticket)
    }
}

/// One wait: a ticket to a seat.
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
        let seats = Seats {
            all: Vec::new(),
            free: Vec::new(),
            tickets: 0,
            groups: Vec::new(),
            free_groups: Vec::new(),
            sleepers: 0,
        };
        Self { seats: Mutex::new(seats), bell: Condvar::new(), waits: AtomicU64::new(0) }
    }

    /// Opens a wait of the thread itself, or of a member of a group. It lasts until
    /// [`Waiter::leave`].
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn sit(self: &Arc<Self>, member: Option<Member>) -> Result<Waiter<T>, OutOfMemory> {
        let mut inner = lock(&self.seats);
        if let Some(member) = member {
            inner.make_room(member)?;
        }
        let seat = if let Some(seat) = inner.free.pop() {
            seat
        } else {
            let taken = inner.all.len() + 1;
            inner.all.try_reserve(1)?;
            inner.free.try_reserve(taken)?;
            inner.all.push(Seat { ticket: 0, phase: Phase::Free, member: None });
            u32::try_from(inner.all.len() - 1).map_err(|_| OutOfMemory)?
        };
        inner.tickets += 1;
        let ticket = inner.tickets;
        inner.all[seat as usize] = Seat { ticket, phase: Phase::Open, member };
        Ok(Waiter { parker: Arc::clone(self), seat, ticket })
    }

    // --- groups --------------------------------------------------------------------------------

    /// Opens a group.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn open_group(&self) -> Result<u32, OutOfMemory> {
        let mut inner = lock(&self.seats);
        if let Some(group) = inner.free_groups.pop() {
            return Ok(group);
        }
        let taken = inner.groups.len() + 1;
        inner.groups.try_reserve(1)?;
        inner.free_groups.try_reserve(taken)?;
        inner.groups.push(Group::default());
        u32::try_from(inner.groups.len() - 1).map_err(|_| OutOfMemory)
    }

    /// Ends a group, whose waits have all ended.
    pub fn close_group(&self, group: u32) {
        let mut inner = lock(&self.seats);
        inner.groups[group as usize] = Group::default();
        inner.free_groups.push(group);
    }

    /// Notes that a member can go on, although it did not wait.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn wake(&self, member: Member) -> Result<(), OutOfMemory> {
        let mut inner = lock(&self.seats);
        inner.make_room(member)?;
        inner.groups[member.group as usize].wake(member.number);
        Ok(())
    }

    /// The members of a group that can go on, to be taken out one by one.
    #[must_use]
    pub fn woken(&self, group: u32) -> Woken<'_, T> {
        let seats = lock(&self.seats);
        let there = &seats.groups[group as usize];
        if !there.woken.is_empty()
            && let Some(signal) = &there.signal
        {
            signal.set(false);
        }
        Woken { seats, group }
    }

    /// Counts a wait of this parker's thread, and tells which of all of them it is.
    pub fn count_wait(&self) -> u64 {
        // One thread alone counts, so nothing can come in between.
        let waits = self.waits.load(Ordering::Relaxed) + 1;
        self.waits.store(waits, Ordering::Relaxed);
        waits
    }

    #[must_use]
    pub fn has_woken(&self, group: u32) -> bool {
        !lock(&self.seats).groups[group as usize].woken.is_empty()
    }

    /// Shows with `signal`, from now on, that a member of the group can go on.
    pub fn show_woken(&self, group: u32, signal: Arc<dyn Signal>) {
        let mut inner = lock(&self.seats);
        let group = &mut inner.groups[group as usize];
        signal.set(!group.woken.is_empty());
        group.signal = Some(signal);
    }

    /// Says that the pump of `group` waits as `waiter`, which ends when a member of the group can
    /// go on, at once where one can already; or that it no longer waits.
    pub fn park_pump(&self, group: u32, waiter: Option<&Waiter<T>>) {
        let mut inner = lock(&self.seats);
        let group = &mut inner.groups[group as usize];
        let pump = waiter.map(|waiter| (waiter.seat, waiter.ticket));
        if let Some((seat, ticket)) = pump
            && !group.woken.is_empty()
        {
            // Another thread has served a member since the pump last looked.
            let _ = inner.serve(seat, ticket, Served { case: 0, outcome: Outcome::Woken });
        } else {
            group.pump = pump;
        }
    }

    /// Puts the thread to sleep until a member of `group` can go on, or until `until`.
    pub fn sleep(&self, group: u32, until: Moment) {
        let mut inner = lock(&self.seats);
        while inner.groups[group as usize].woken.is_empty() {
            let now = Moment::now();
            if now >= until {
                return;
            }
            inner.sleepers += 1;
            inner = doze(&self.bell, inner, until, now);
            inner.sleepers -= 1;
        }
    }
}

impl<T> Seats<T> {
    /// Room for all members of a group to be woken at once.
    fn make_room(&mut self, member: Member) -> Result<(), OutOfMemory> {
        let woken = &mut self.groups[member.group as usize].woken;
        let members = member.number as usize + 1;
        if woken.capacity() < members {
            woken.try_reserve(members - woken.len())?;
        }
        Ok(())
    }

    /// [`Waiter::collect`]
    fn collect(&mut self, seat: u32, ticket: u64) -> Option<(Served<T>, u64)> {
        let next = self.tickets + 1;
        let seat = &mut self.all[seat as usize];
        if seat.ticket != ticket {
            return None;
        }
        match std::mem::replace(&mut seat.phase, Phase::Open) {
            Phase::Served(served) => {
                seat.ticket = next;
                self.tickets = next;
                Some((served, next))
            }
            open_or_free => {
                seat.phase = open_or_free;
                None
            }
        }
    }

    /// Ends a wait, if it is open, and lets who waits know.
    fn serve(&mut self, seat: u32, ticket: u64, served: Served<T>) -> Result<(), Outcome<T>> {
        let place = &mut self.all[seat as usize];
        if place.ticket != ticket || !matches!(place.phase, Phase::Open) {
            return Err(served.outcome);
        }
        place.phase = Phase::Served(served);
        if let Some(Member { group, number }) = place.member {
            let group = &mut self.groups[group as usize];
            group.wake(number);
            if let Some((seat, ticket)) = group.pump.take() {
                // It may have been served by something else: all the same.
                let _ = self.serve(seat, ticket, Served { case: 0, outcome: Outcome::Woken });
            }
        }
        Ok(())
    }
}

impl<T> Waiter<T> {
    /// Ends the wait with `outcome`, as entered at `case`, and wakes its thread where that sleeps.
    ///
    /// # Errors
    /// The outcome comes back where the wait has ended already.
    pub fn serve(&self, case: u32, outcome: Outcome<T>) -> Result<(), Outcome<T>> {
        let mut inner = lock(&self.parker.seats);
        inner.serve(self.seat, self.ticket, Served { case, outcome })?;
        // A notification is a system call even where nobody sleeps.
        if inner.sleepers > 0 {
            self.parker.bell.notify_all();
        }
        Ok(())
    }

    /// Looks a while whether the wait is served before the thread goes to sleep: who serves it from
    /// another core is often quicker than a sleep and a wake-up. Some microseconds at most. True:
    /// served.
    #[must_use]
    pub fn spin(&self) -> bool {
        const LOOKS: u32 = 100;
        for _ in 0..LOOKS {
            if !self.is_open() {
                return true;
            }
            std::hint::spin_loop();
        }
        false
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

    /// The number of the wait among all of its parker, which shows which of two is older.
    #[must_use]
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Nobody has served the wait yet, and it has not ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let inner = lock(&self.parker.seats);
        let seat = &inner.all[self.seat as usize];
        seat.ticket == self.ticket && matches!(seat.phase, Phase::Open)
    }

    /// Tells how the wait was served, if it was. It ends then, and the next wait of the same member
    /// is open already: [`Waiter::next`] is its ticket.
    #[must_use]
    pub fn collect(&self) -> Option<(Served<T>, u64)> {
        lock(&self.parker.seats).collect(self.seat, self.ticket)
    }

    /// The wait that [`Waiter::collect`] opened, with its ticket.
    #[must_use]
    pub fn next(&self, ticket: u64) -> Self {
        Self { ticket, ..self.clone() }
    }

    /// Ends the wait and tells how it was served, if it was. After this nobody can serve it.
    pub fn leave(&self) -> Option<Served<T>> {
        let mut inner = lock(&self.parker.seats);
        let seat = &mut inner.all[self.seat as usize];
        if seat.ticket != self.ticket || matches!(seat.phase, Phase::Free) {
            return None;
        }
        let phase = std::mem::replace(&mut seat.phase, Phase::Free);
        inner.free.push(self.seat);
        match phase {
            Phase::Served(served) => Some(served),
            Phase::Free | Phase::Open => None,
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
