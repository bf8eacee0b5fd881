//! Channels against an oracle of plain double-ended queues. One thread plays all parts: it enters
//! waiters of two desks at several channels, serves some of them elsewhere, lets others leave, and
//! takes them out of the lines early or late. After each operation both must agree, and every token
//! that was ever made must be where the oracle says.

#![cfg(not(loom))]

mod scripts;
mod seeds;

use std::collections::VecDeque;
use std::mem;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use queue::core::channel::{Channel, Unreceived, Unsent, Wait};
use queue::core::clock::Moment;
use queue::core::sync::{Arc, Mutex, lock};
use queue::core::waiter::{Outcome, Parker, Waiter};

use scripts::Script;

// --- tokens ------------------------------------------------------------------------------------

/// The numbers of the tokens that were dropped and not redeemed.
type Lost = Arc<Mutex<Vec<u32>>>;

/// A value that cannot be copied, and that tells when it is dropped.
#[derive(Debug)]
struct Token {
    number: Option<u32>,
    lost: Lost,
}

impl Token {
    /// Takes the token out of circulation.
    fn redeem(mut self) -> Option<u32> {
        self.number.take()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        lock(&self.lost).extend(self.number);
    }
}

// --- operations --------------------------------------------------------------------------------

/// Which channel; there are three.
type At = usize;

/// One of the waiters that the operation can be done to.
type Pick = usize;

/// Picks are below this. A pick is a share of those that there are, from 0 for the newest on: so it
/// means much the same when there are fewer.
const PICKS: usize = 16;

#[derive(Clone, Copy, Debug)]
enum How {
    No,
    Limited(Pick),
    Unlimited(Pick),
}

#[derive(Clone, Debug)]
enum Op {
    /// A wait is opened at one of the two desks.
    Sit(usize),
    Send(At, u32, How),
    Receive(At, u32, How),
    /// Somebody else serves a waiter.
    Serve(Pick, u32, Kind),
    /// A waiter's wait ends, served or not; it stays in the lines.
    Leave(Pick),
    /// A waiter whose wait has ended tells so once more.
    LeaveAgain(Pick),
    /// A waiter that waits no more is taken out of all lines.
    Withdraw(Pick),
    /// The token that was received last could not be delivered.
    PutBack(At),
    Feed(At),
    FeedLast(At),
    Close(At),
    Stop(At),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Received,
    Sent,
    Closed,
}

#[derive(Clone, Debug)]
struct Setup {
    /// Of the channels; `None`: one for a timer.
    capacities: [Option<usize>; 3],
    /// Whether all is received and withdrawn in the end, or dropped as it is.
    is_tidy: bool,
}

fn hows() -> impl Strategy<Value = How> {
    prop_oneof![
        2 => Just(How::No),
        6 => (0..PICKS).prop_map(How::Limited),
        1 => (0..PICKS).prop_map(How::Unlimited),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    // Most things happen at the first channel, so that lines form.
    let at = || prop_oneof![3 => Just(0usize), 1 => Just(1), 1 => Just(2)];
    let pick = || 0..PICKS;
    let case = || 0..3u32;
    let kinds = prop_oneof![Just(Kind::Received), Just(Kind::Sent), Just(Kind::Closed)];
    let of_waits = prop_oneof![
        20 => (0..2usize).prop_map(Op::Sit),
        20 => (at(), case(), hows()).prop_map(|(at, case, how)| Op::Send(at, case, how)),
        20 => (at(), case(), hows()).prop_map(|(at, case, how)| Op::Receive(at, case, how)),
        3 => (pick(), case(), kinds).prop_map(|(pick, case, kind)| Op::Serve(pick, case, kind)),
        8 => pick().prop_map(Op::Leave),
        2 => pick().prop_map(Op::LeaveAgain),
        8 => pick().prop_map(Op::Withdraw),
    ];
    let of_channels = prop_oneof![
        12 => at().prop_map(Op::PutBack),
        12 => at().prop_map(Op::Feed),
        2 => at().prop_map(Op::FeedLast),
        3 => at().prop_map(Op::Close),
        1 => at().prop_map(Op::Stop),
    ];
    prop_oneof![10 => of_waits, 1 => of_channels]
}

fn scripts() -> impl Strategy<Value = Script<Setup, Op>> {
    let capacity = || prop_oneof![4 => (0..4usize).prop_map(Some), 1 => Just(None)];
    let setup = ([capacity(), capacity(), capacity()], any::<bool>())
        .prop_map(|(capacities, is_tidy)| Setup { capacities, is_tidy });
    (setup, vec(ops(), 1..120)).prop_map(|(setup, ops)| Script { setup, ops })
}

// --- oracle ------------------------------------------------------------------------------------

/// How a wait ended, with the number of the token that came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Received(u32),
    Sent,
    Closed(Option<u32>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Served(u32, Ending),
    Left,
}

/// A waiter in a line, by its number, and the case under which it waits there.
#[derive(Clone, Copy, Debug)]
struct Entry {
    guest: usize,
    case: u32,
}

#[derive(Debug, Default)]
struct Lines {
    capacity: usize,
    feeders: usize,
    closed: bool,
    stopped: bool,
    buffer: VecDeque<u32>,
    receivers: VecDeque<Entry>,
    senders: VecDeque<(Entry, u32)>,
}

/// How it stands with each waiter that was ever opened.
#[derive(Debug, Default)]
struct Phases(Vec<Phase>);

impl Phases {
    fn serve(&mut self, entry: Entry, ending: Ending) -> bool {
        let phase = &mut self.0[entry.guest];
        let is_open = *phase == Phase::Open;
        if is_open {
            *phase = Phase::Served(entry.case, ending);
        }
        is_open
    }
}

impl Lines {
    /// Whether the first receiver in line that still waits got the token.
    fn hand_over(&mut self, phases: &mut Phases, token: u32) -> bool {
        let mut line = self.receivers.iter();
        line.any(|&entry| phases.serve(entry, Ending::Received(token)))
    }

    /// Whether the token found a receiver or room.
    fn accept(&mut self, phases: &mut Phases, token: u32) -> bool {
        if self.hand_over(phases, token) {
            return true;
        }
        let has_room = self.buffer.len() < self.capacity;
        if has_room {
            self.buffer.push_back(token);
        }
        has_room
    }

    /// The token of the first sender in line that still waits, which goes on.
    fn next_sent(&mut self, phases: &mut Phases) -> Option<u32> {
        let place =
            self.senders.iter().position(|&(entry, _)| phases.serve(entry, Ending::Sent))?;
        self.senders.remove(place).map(|(_, token)| token)
    }

    fn take(&mut self, phases: &mut Phases) -> Option<u32> {
        let Some(token) = self.buffer.pop_front() else { return self.next_sent(phases) };
        if self.buffer.len() < self.capacity {
            let moved = self.next_sent(phases);
            self.buffer.extend(moved);
        }
        Some(token)
    }

    fn close(&mut self, phases: &mut Phases) {
        self.closed = true;
        self.feeders = 0;
        for &entry in &self.receivers {
            phases.serve(entry, Ending::Closed(None));
        }
        self.senders.retain(|&(entry, token)| !phases.serve(entry, Ending::Closed(Some(token))));
    }

    /// Nobody waits for what is there.
    fn check_settled(&self, phases: &Phases) -> TestCaseResult {
        let is_open = |entry: &Entry| phases.0[entry.guest] == Phase::Open;
        let receives = self.receivers.iter().any(is_open);
        let sends = self.senders.iter().any(|(entry, _)| is_open(entry));
        prop_assert!(!receives || self.buffer.is_empty(), "a receiver waits beside a value");
        prop_assert!(!sends || self.buffer.len() >= self.capacity, "a sender waits beside room");
        prop_assert!(!receives || !sends, "a receiver and a sender wait for each other");
        prop_assert!(!self.closed || (!receives && !sends), "one waits at a closed channel");
        Ok(())
    }
}

// --- both, side by side ------------------------------------------------------------------------

/// A waiter that has once been opened.
struct Guest {
    real: Waiter<Token>,
    /// At how many places of each channel's lines it was entered and not yet taken out.
    entered: [usize; 3],
}

/// What an operation answers, and the number of the token that comes with the answer.
type Reply = (&'static str, Option<u32>);

struct Pair {
    desks: [Arc<Parker<Token>>; 2],
    channels: [Channel<Token>; 3],
    lines: [Lines; 3],
    guests: Vec<Guest>,
    phases: Phases,
    /// The token that was received last.
    hand: Option<Token>,
    /// Tokens made.
    made: u32,
    lost: Lost,
    /// The tokens that this operation should lose.
    dropped: Vec<u32>,
}

impl Pair {
    fn new(setup: &Setup) -> Self {
        Self {
            desks: [Arc::new(Parker::new()), Arc::new(Parker::new())],
            channels: setup.capacities.map(|capacity| match capacity {
                Some(capacity) => Channel::new(capacity),
                None => Channel::fed(),
            }),
            lines: setup.capacities.map(|capacity| Lines {
                capacity: capacity.unwrap_or(1),
                feeders: usize::from(capacity.is_none()),
                ..Lines::default()
            }),
            guests: Vec::new(),
            phases: Phases::default(),
            hand: None,
            made: 0,
            lost: Lost::default(),
            dropped: Vec::new(),
        }
    }

    /// A new token, and its number.
    fn make(&mut self) -> (Token, u32) {
        self.made += 1;
        (Token { number: Some(self.made), lost: Arc::clone(&self.lost) }, self.made)
    }

    /// Keeps a token that was received, and tells its number.
    fn grasp(&mut self, token: Token) -> Option<u32> {
        let number = token.number;
        self.hand.replace(token).and_then(Token::redeem);
        number
    }

    /// One of the waiters of which `is_one` is true.
    fn choose(&self, pick: Pick, is_one: impl Fn(Phase) -> bool) -> Option<usize> {
        let phases = self.phases.0.iter().enumerate();
        let all: Vec<usize> = phases.filter(|(_, phase)| is_one(**phase)).map(|(n, _)| n).collect();
        (!all.is_empty()).then(|| all[all.len() - 1 - pick * all.len() / PICKS])
    }

    fn apply(&mut self, op: &Op) -> TestCaseResult {
        match *op {
            Op::Sit(desk) => self.sit(desk),
            Op::Send(at, case, how) => self.send(at, case, how),
            Op::Receive(at, case, how) => self.receive(at, case, how),
            Op::Serve(pick, case, kind) => self.serve(pick, case, kind),
            Op::Leave(pick) => match self.choose(pick, |phase| phase != Phase::Left) {
                Some(guest) => self.leave(guest),
                None => Ok(()),
            },
            Op::LeaveAgain(pick) => match self.choose(pick, |phase| phase == Phase::Left) {
                Some(guest) => self.leave(guest),
                None => Ok(()),
            },
            Op::Withdraw(pick) => match self.choose(pick, |phase| phase != Phase::Open) {
                Some(guest) => self.withdraw(guest),
                None => Ok(()),
            },
            Op::PutBack(at) => self.put_back(at),
            Op::Feed(at) => self.feed(at),
            Op::FeedLast(at) => {
                self.feed_last(at);
                Ok(())
            }
            Op::Close(at) => {
                self.channels[at].close();
                self.lines[at].close(&mut self.phases);
                Ok(())
            }
            Op::Stop(at) => {
                self.channels[at].stop();
                self.lines[at].close(&mut self.phases);
                self.lines[at].stopped = true;
                self.dropped.extend(self.lines[at].buffer.drain(..));
                Ok(())
            }
        }
    }

    // --- waiters -------------------------------------------------------------------------------

    fn sit(&mut self, desk: usize) -> TestCaseResult {
        let waiter = self.desks[desk].sit();
        prop_assert!(waiter.is_ok());
        let Ok(real) = waiter else { return Ok(()) };
        prop_assert!(self.guests.iter().all(|guest| guest.real != real), "a ticket was sold twice");
        self.guests.push(Guest { real, entered: [0; 3] });
        self.phases.0.push(Phase::Open);
        Ok(())
    }

    fn serve(&mut self, pick: Pick, case: u32, kind: Kind) -> TestCaseResult {
        let Some(guest) = self.choose(pick, |_| true) else { return Ok(()) };
        let (token, number) = self.make();
        let (outcome, ending) = match kind {
            Kind::Received => (Outcome::Received(token), Ending::Received(number)),
            Kind::Sent => {
                token.redeem();
                (Outcome::Sent, Ending::Sent)
            }
            Kind::Closed => (Outcome::Closed(Some(token)), Ending::Closed(Some(number))),
        };
        let refused = self.guests[guest].real.serve(case, outcome).err();
        let served = self.phases.serve(Entry { guest, case }, ending);
        prop_assert_eq!(refused.map(ending_of), (!served).then_some(ending));
        Ok(())
    }

    fn leave(&mut self, guest: usize) -> TestCaseResult {
        let real = self.guests[guest].real.leave().map(|served| {
            let ending = match served.outcome {
                Outcome::Received(token) => Ending::Received(self.grasp(token).unwrap_or(0)),
                other => ending_of(other),
            };
            (served.case, ending)
        });
        let due = match mem::replace(&mut self.phases.0[guest], Phase::Left) {
            Phase::Served(case, ending) => Some((case, ending)),
            Phase::Open | Phase::Left => None,
        };
        prop_assert_eq!(real, due);
        Ok(())
    }

    fn withdraw(&mut self, guest: usize) -> TestCaseResult {
        for at in 0..self.channels.len() {
            let times = mem::take(&mut self.guests[guest].entered[at]);
            let waiter = &self.guests[guest].real;
            let back = (0..times).filter_map(|_| self.channels[at].withdraw(waiter));
            let back: Vec<u32> = back.filter_map(Token::redeem).collect();
            prop_assert!(self.channels[at].withdraw(waiter).is_none(), "it was there once more");
            let mut due = Vec::new();
            self.lines[at].receivers.retain(|entry| entry.guest != guest);
            self.lines[at].senders.retain(|&(entry, token)| {
                if entry.guest == guest {
                    due.push(token);
                }
                entry.guest != guest
            });
            prop_assert_eq!(back, due, "what comes back from channel {}", at);
        }
        Ok(())
    }

    // --- values --------------------------------------------------------------------------------

    /// The waiter that would be entered, and whether its wait is limited.
    fn waiter_for(&self, how: How) -> Option<(usize, bool)> {
        let (pick, is_limited) = match how {
            How::No => return None,
            How::Limited(pick) => (pick, true),
            How::Unlimited(pick) => (pick, false),
        };
        // One that was served meanwhile does not know it yet, and goes on entering.
        self.choose(pick, |phase| phase != Phase::Left).map(|guest| (guest, is_limited))
    }

    fn wait(&self, entered: Option<(usize, bool)>) -> Wait<'_, Token> {
        match entered {
            None => Wait::No,
            Some((guest, true)) => Wait::Limited(&self.guests[guest].real),
            Some((guest, false)) => Wait::Unlimited(&self.guests[guest].real),
        }
    }

    fn send(&mut self, at: At, case: u32, how: How) -> TestCaseResult {
        let waiter = self.waiter_for(how);
        // A select never meets itself: whoever enters one sees to that.
        let is_other = |entry: &Entry| waiter.is_none_or(|(guest, _)| entry.guest != guest);
        if !self.lines[at].receivers.iter().all(is_other) {
            return Ok(());
        }
        let (token, number) = self.make();
        let real: Reply = match self.channels[at].send(token, case, &self.wait(waiter)) {
            Ok(true) => ("sent", None),
            Ok(false) => ("waits", None),
            Err(Unsent::Full(token)) => ("full", token.redeem()),
            Err(Unsent::Closed(token)) => ("closed", token.redeem()),
            Err(Unsent::Endless(token)) => ("endless", token.redeem()),
            Err(Unsent::OutOfMemory(token)) => ("out of memory", token.redeem()),
        };
        let lines = &mut self.lines[at];
        let due = if lines.closed {
            ("closed", Some(number))
        } else if lines.accept(&mut self.phases, number) {
            ("sent", None)
        } else {
            match waiter {
                None => ("full", Some(number)),
                Some((_, false)) => ("endless", Some(number)),
                Some((guest, true)) => {
                    lines.senders.push_back((Entry { guest, case }, number));
                    self.guests[guest].entered[at] += 1;
                    ("waits", None)
                }
            }
        };
        prop_assert_eq!(real, due);
        Ok(())
    }

    fn receive(&mut self, at: At, case: u32, how: How) -> TestCaseResult {
        let waiter = self.waiter_for(how);
        let is_other =
            |(entry, _): &(Entry, u32)| waiter.is_none_or(|(guest, _)| entry.guest != guest);
        if !self.lines[at].senders.iter().all(is_other) {
            return Ok(());
        }
        let real: Reply = match self.channels[at].receive(case, &self.wait(waiter)) {
            Ok(Some(token)) => ("received", self.grasp(token)),
            Ok(None) => ("waits", None),
            Err(Unreceived::Empty) => ("empty", None),
            Err(Unreceived::Closed) => ("closed", None),
            Err(Unreceived::Endless) => ("endless", None),
            Err(Unreceived::OutOfMemory) => ("out of memory", None),
        };
        let lines = &mut self.lines[at];
        let due = if let Some(number) = lines.take(&mut self.phases) {
            ("received", Some(number))
        } else if lines.closed {
            ("closed", None)
        } else {
            match waiter {
                None => ("empty", None),
                Some((_, false)) if lines.feeders == 0 => ("endless", None),
                Some((guest, _)) => {
                    lines.receivers.push_back(Entry { guest, case });
                    self.guests[guest].entered[at] += 1;
                    ("waits", None)
                }
            }
        };
        prop_assert_eq!(real, due);
        Ok(())
    }

    fn put_back(&mut self, at: At) -> TestCaseResult {
        // Nothing arrives after a stop: what is received by then is not for others any more.
        let Some(token) = self.hand.take_if(|_| !self.lines[at].stopped) else { return Ok(()) };
        let number = token.number.unwrap_or(0);
        prop_assert!(self.channels[at].put_back(token).is_ok());
        let lines = &mut self.lines[at];
        if !lines.hand_over(&mut self.phases, number) {
            lines.buffer.push_front(number);
        }
        Ok(())
    }

    fn feed(&mut self, at: At) -> TestCaseResult {
        let (token, number) = self.make();
        let lines = &mut self.lines[at];
        prop_assert_eq!(self.channels[at].feed(token), !lines.closed);
        if lines.closed || !lines.accept(&mut self.phases, number) {
            self.dropped.push(number);
        }
        Ok(())
    }

    fn feed_last(&mut self, at: At) {
        let (token, number) = self.make();
        self.channels[at].feed_last(token);
        let lines = &mut self.lines[at];
        if lines.closed || !lines.accept(&mut self.phases, number) {
            self.dropped.push(number);
        }
        lines.close(&mut self.phases);
    }

    // --- comparing -----------------------------------------------------------------------------

    fn compare(&mut self) -> TestCaseResult {
        for (channel, lines) in self.channels.iter().zip(&self.lines) {
            prop_assert_eq!(channel.len(), lines.buffer.len(), "len");
            prop_assert_eq!(channel.is_empty(), lines.buffer.is_empty(), "is_empty");
            prop_assert_eq!(channel.capacity(), lines.capacity, "capacity");
            prop_assert_eq!(channel.is_closed(), lines.closed, "is_closed");
            lines.check_settled(&self.phases)?;
        }
        for (number, (guest, phase)) in self.guests.iter().zip(&self.phases.0).enumerate() {
            if *phase != Phase::Left {
                // A sleep until a moment long past is a look.
                let is_served = guest.real.sleep(Moment::from_nanos(0));
                prop_assert_eq!(is_served, *phase != Phase::Open, "waiter {} is served", number);
            }
        }
        self.compare_lost()
    }

    fn compare_lost(&mut self) -> TestCaseResult {
        let mut lost = mem::take(&mut *lock(&self.lost));
        lost.sort_unstable();
        self.dropped.sort_unstable();
        prop_assert_eq!(lost, mem::take(&mut self.dropped), "tokens lost");
        Ok(())
    }

    /// All leave, and what the channels still hold is received.
    fn tidy_up(&mut self) -> TestCaseResult {
        for guest in 0..self.guests.len() {
            self.leave(guest)?;
            self.withdraw(guest)?;
        }
        for at in 0..self.channels.len() {
            while !self.lines[at].buffer.is_empty() {
                self.receive(at, 0, How::No)?;
            }
            self.receive(at, 0, How::No)?;
        }
        self.compare()
    }

    /// Everything goes, as it is.
    fn end(mut self) -> TestCaseResult {
        for lines in &self.lines {
            self.dropped.extend(&lines.buffer);
            self.dropped.extend(lines.senders.iter().map(|&(_, token)| token));
        }
        for phase in &self.phases.0 {
            let held = match *phase {
                Phase::Served(_, Ending::Received(token)) => Some(token),
                Phase::Served(_, Ending::Closed(token)) => token,
                Phase::Served(_, Ending::Sent) | Phase::Open | Phase::Left => None,
            };
            self.dropped.extend(held);
        }
        self.hand.take().and_then(Token::redeem);
        let Self { desks, channels, guests, lost, mut dropped, .. } = self;
        drop((desks, channels, guests));
        dropped.sort_unstable();
        let mut gone = mem::take(&mut *lock(&lost));
        gone.sort_unstable();
        prop_assert_eq!(gone, dropped, "tokens that went with all the rest");
        prop_assert_eq!(Arc::strong_count(&lost), 1, "a token is still somewhere");
        Ok(())
    }
}

fn ending_of(outcome: Outcome<Token>) -> Ending {
    match outcome {
        Outcome::Received(token) => Ending::Received(token.redeem().unwrap_or(0)),
        Outcome::Sent => Ending::Sent,
        Outcome::Closed(token) => Ending::Closed(token.and_then(Token::redeem)),
    }
}

fn agree(script: &Script<Setup, Op>) -> TestCaseResult {
    let mut pair = Pair::new(&script.setup);
    for op in &script.ops {
        pair.apply(op)?;
        pair.compare()?;
    }
    if script.setup.is_tidy {
        pair.tidy_up()?;
    }
    pair.end()
}

#[test]
fn channels_agree_with_the_oracle() {
    scripts::check("channels_agree_with_the_oracle", 4_000, &scripts(), agree);
}
