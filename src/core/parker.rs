//! Where the thread of a Lua state sleeps, and which of its waits have been served.
//!
//! A wait is a seat here: open, or served. The jobs of a queue that wait side by side are a group:
//! who of them was served is noted in the order in which it happened, and the thread that drives
//! them sleeps for the group as a whole.
//!
//! Locks are taken in one order: a channel's, then a parker's.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::OutOfMemory;
use super::clock::Moment;
use super::patience::Patience;
use super::poll::Signal;
use super::sync::{Arc, Condvar, Mutex, MutexGuard, doze, lock};
use super::waiter::{Outcome, Served, Waiter};

/// Names a wait at this parker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub seat: u32,
    /// Which of all waits here it is; a seat has them one after the other.
    pub number: u64,
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
    /// The number of the ticket to it that was given out last: all others are void.
    number: u64,
    phase: Phase<T>,
    /// Who waits; `None`: the thread itself.
    member: Option<Member>,
}

/// The waits of one queue's jobs.
#[derive(Default)]
struct Group {
    /// Members that can go on, in the order in which they became able to. One whose wait was served
    /// while its yield failed may be there twice.
    woken: VecDeque<u32>,
    /// The wait of the queue's pump, while that is parked as a job of another queue.
    pump: Option<Ticket>,
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

pub(super) struct Seats<T> {
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
    pub(super) patience: Patience,
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

    /// Tells how a wait of one of them was served, if it was. It ends then, and the next wait of the
    /// same member is open already: [`Waiter::next`] makes its ticket of the number.
    pub fn collect(&mut self, waiter: &Waiter<T>) -> Option<(Served<T>, u64)> {
        self.seats.collect(waiter.ticket())
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
        Self {
            seats: Mutex::new(seats),
            bell: Condvar::new(),
            waits: AtomicU64::new(0),
            patience: Patience::new(),
        }
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
            inner.all.push(Seat { number: 0, phase: Phase::Free, member: None });
            u32::try_from(inner.all.len() - 1).map_err(|_| OutOfMemory)?
        };
        inner.tickets += 1;
        let number = inner.tickets;
        inner.all[seat as usize] = Seat { number, phase: Phase::Open, member };
        Ok(Waiter::new(Arc::clone(self), Ticket { seat, number }))
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
        let pump = waiter.map(Waiter::ticket);
        if let Some(pump) = pump
            && !group.woken.is_empty()
        {
            // Another thread has served a member since the pump last looked.
            let _ = inner.serve(pump, Served { case: 0, outcome: Outcome::Woken });
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
            inner = self.doze(inner, until, now);
        }
    }

    // --- for waiters ---------------------------------------------------------------------------

    /// For whatever ends waits or looks at them.
    pub(super) fn seats(&self) -> MutexGuard<'_, Seats<T>> {
        lock(&self.seats)
    }

    /// Wakes the thread, where it sleeps. The lock is still held.
    pub(super) fn ring(&self, seats: &Seats<T>) {
        // A notification is a system call even where nobody sleeps.
        if seats.sleepers > 0 {
            self.bell.notify_all();
        }
    }

    /// Sleeps until the bell rings, or `until`, or for no reason at all.
    pub(super) fn doze<'a>(
        &self,
        mut seats: MutexGuard<'a, Seats<T>>,
        until: Moment,
        now: Moment,
    ) -> MutexGuard<'a, Seats<T>> {
        seats.sleepers += 1;
        seats = doze(&self.bell, seats, until, now);
        seats.sleepers -= 1;
        seats
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

    /// The seat, while this ticket is to the wait that has it.
    fn seat(&mut self, ticket: Ticket) -> Option<&mut Seat<T>> {
        let seat = &mut self.all[ticket.seat as usize];
        (seat.number == ticket.number).then_some(seat)
    }

    /// [`Waiter::is_open`]
    pub(super) fn is_open(&mut self, ticket: Ticket) -> bool {
        self.seat(ticket).is_some_and(|seat| matches!(seat.phase, Phase::Open))
    }

    /// The wait was served, or has ended.
    pub(super) fn is_over(&mut self, ticket: Ticket) -> bool {
        self.seat(ticket).is_none_or(|seat| matches!(seat.phase, Phase::Served(_)))
    }

    /// [`Waiter::leave`]
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Served<T>> {
        let seat = self.seat(ticket)?;
        let phase = std::mem::replace(&mut seat.phase, Phase::Free);
        if !matches!(phase, Phase::Free) {
            self.free.push(ticket.seat);
        }
        match phase {
            Phase::Served(served) => Some(served),
            Phase::Free | Phase::Open => None,
        }
    }

    /// [`Woken::collect`]
    fn collect(&mut self, ticket: Ticket) -> Option<(Served<T>, u64)> {
        let next = self.tickets + 1;
        let seat = self.seat(ticket)?;
        match std::mem::replace(&mut seat.phase, Phase::Open) {
            Phase::Served(served) => {
                seat.number = next;
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
    pub(super) fn serve(&mut self, ticket: Ticket, served: Served<T>) -> Result<(), Outcome<T>> {
        let Some(seat) = self.seat(ticket).filter(|seat| matches!(seat.phase, Phase::Open)) else {
            return Err(served.outcome);
        };
        seat.phase = Phase::Served(served);
        if let Some(Member { group, number }) = seat.member {
            let group = &mut self.groups[group as usize];
            group.wake(number);
            if let Some(pump) = group.pump.take() {
                // It may have been served by something else: all the same.
                let _ = self.serve(pump, Served { case: 0, outcome: Outcome::Woken });
            }
        }
        Ok(())
    }
}
