//! Channels and their oracle, side by side. One thread plays all parts: it enters waiters of two
//! desks at one channel, or with a select at several, serves some of them elsewhere, lets others
//! leave, and takes them out of the lines early or late. After each operation both must agree, and
//! every token that was ever made must be where the oracle says.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use queue::core::channel::{Channel, Unreceived, Unsent, Wait};
use queue::core::clock::Moment;
use queue::core::parker::{Member, Parker};
use queue::core::poll::Signal;
use queue::core::select::{Selected, select};
use queue::core::sync::Arc;
use queue::core::waiter::{Outcome, Waiter};

use crate::oracle::{
    self, Due, Ending, Entry, Kind, Lines, Mint, Phase, Phases, Token, Want, ending_of,
};
use crate::scripts::Script;

// --- operations --------------------------------------------------------------------------------

/// How many channels there are.
const CHANNELS: usize = 4;

/// Which channel.
type At = usize;

/// One of the waiters that the operation can be done to.
type Pick = usize;

/// Picks are below this. A pick is a share of those that there are, from 0 for the newest on: so it
/// means much the same when there are fewer.
const PICKS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub enum How {
    No,
    Enter(Pick),
    EnterFed(Pick),
}

#[derive(Clone, Debug)]
pub enum Op {
    /// A wait is opened at one of the two desks, by its thread or by a member of its group.
    Sit(usize, bool),
    Send(At, How),
    Receive(At, How),
    /// The cases, and the order in which they are tried.
    Select(Vec<Option<Want>>, Vec<u32>, How),
    /// Somebody else serves a waiter.
    Serve(Pick, u32, Sort),
    /// A waiter's wait ends, served or not; it stays in the lines.
    Leave(Pick),
    /// A waiter whose wait has ended tells so once more.
    LeaveAgain(Pick),
    /// A waiter's wait ends if it was served, and its next one begins.
    Collect(Pick),
    /// A waiter that waits no more is taken out of all lines.
    Withdraw(Pick),
    /// Those of a desk's group that can go on.
    TakeWoken(usize),
    /// The token that was received last could not be delivered.
    PutBack(At),
    /// The same, and its receiver has gone as well.
    Abandon(At),
    Orphan(At),
    Feed(At),
    FeedLast(At),
    /// A timer tells when it will send next.
    Expect(At, u64),
    Close(At),
    Stop(At),
}

#[derive(Clone, Copy, Debug)]
pub enum Sort {
    Received,
    Sent,
    Closed,
    Woken,
    Endless,
}

#[derive(Clone, Debug)]
pub struct Setup {
    kinds: [Kind; CHANNELS],
    /// Whether a light shows if a receive would not wait.
    has_lamps: bool,
    /// Whether all is received and withdrawn in the end, or dropped as it is.
    is_tidy: bool,
}

fn hows() -> impl Strategy<Value = How> {
    prop_oneof![
        2 => Just(How::No),
        6 => (0..PICKS).prop_map(How::Enter),
        1 => (0..PICKS).prop_map(How::EnterFed),
    ]
}

/// Most things happen at the first channel, so that lines form.
fn places() -> impl Strategy<Value = At> {
    prop_oneof![3 => Just(0), 1 => 1..CHANNELS]
}

fn selects() -> impl Strategy<Value = Op> {
    let want = prop_oneof![places().prop_map(Want::Send), places().prop_map(Want::Receive)];
    // Mostly few cases, so that some selects wait; and now and then the same one again.
    let cases = prop_oneof![
        1 => Just(Vec::new()),
        12 => vec(option::weighted(0.85, want), 1..5),
        1 => (places(), 2..5usize).prop_map(|(at, count)| vec![Some(Want::Send(at)); count]),
        1 => (places(), 2..5usize).prop_map(|(at, count)| vec![Some(Want::Receive(at)); count]),
    ];
    (cases, any::<u64>(), hows()).prop_map(|(cases, seed, how)| {
        let mut order: Vec<u32> = (0..).take(cases.len()).collect();
        order.sort_by_key(|&number| seed.rotate_left(number * 16 % 64).wrapping_mul(seed | 1));
        Op::Select(cases, order, how)
    })
}

fn ops(selects_among_40: u32) -> impl Strategy<Value = Op> {
    let pick = || 0..PICKS;
    let sorts = prop_oneof![
        3 => Just(Sort::Received),
        3 => Just(Sort::Sent),
        3 => Just(Sort::Closed),
        1 => Just(Sort::Woken),
        1 => Just(Sort::Endless),
    ];
    let alone = (40 - selects_among_40) / 2;
    let of_values = prop_oneof![
        20 => (0..2usize, any::<bool>()).prop_map(|(desk, member)| Op::Sit(desk, member)),
        alone => (places(), hows()).prop_map(|(at, how)| Op::Send(at, how)),
        alone => (places(), hows()).prop_map(|(at, how)| Op::Receive(at, how)),
        selects_among_40 => selects(),
    ];
    let of_waits = prop_oneof![
        3 => (pick(), 0..3u32, sorts).prop_map(|(pick, case, sort)| Op::Serve(pick, case, sort)),
        7 => pick().prop_map(Op::Leave),
        2 => pick().prop_map(Op::LeaveAgain),
        3 => pick().prop_map(Op::Collect),
        8 => pick().prop_map(Op::Withdraw),
        2 => (0..2usize).prop_map(Op::TakeWoken),
    ];
    let of_channels = prop_oneof![
        10 => places().prop_map(Op::PutBack),
        3 => places().prop_map(Op::Abandon),
        3 => places().prop_map(Op::Orphan),
        10 => places().prop_map(Op::Feed),
        2 => places().prop_map(Op::FeedLast),
        2 => (places(), 0..9u64).prop_map(|(at, moment)| Op::Expect(at, moment)),
        3 => places().prop_map(Op::Close),
        1 => places().prop_map(Op::Stop),
    ];
    prop_oneof![30 => of_values, 12 => of_waits, 4 => of_channels]
}

/// Scripts in which so many of 40 sends and receives are selects.
pub fn scripts(selects_among_40: u32) -> impl Strategy<Value = Script<Setup, Op>> {
    let kind = || {
        prop_oneof![
            4 => (0..4usize).prop_map(Kind::Plain),
            1 => any::<bool>().prop_map(Kind::Timer),
            1 => (0..3usize).prop_map(Kind::Shared),
        ]
    };
    let setup = ([kind(), kind(), kind(), kind()], any::<bool>(), any::<bool>())
        .prop_map(|(kinds, has_lamps, is_tidy)| Setup { kinds, has_lamps, is_tidy });
    (setup, vec(ops(selects_among_40), 1..120)).prop_map(|(setup, ops)| Script { setup, ops })
}

// --- both, side by side ------------------------------------------------------------------------

/// A waiter that has once been opened.
struct Guest {
    real: Waiter<Token>,
    desk: usize,
    /// Its number in the group of the desk; `None`: it is the thread's.
    member: Option<u32>,
    /// Whether it has been told to enter somewhere: no waiter does so twice.
    has_waited: bool,
    /// Where it was entered and not yet taken out, and under which cases.
    entered: Vec<(At, u32)>,
}

/// A signal that remembers what it shows, and whether it was ever told the same again.
struct Lamp {
    is_lit: AtomicBool,
    repeated: AtomicBool,
}

impl Signal for Lamp {
    fn set(&self, on: bool) {
        if self.is_lit.swap(on, Ordering::Relaxed) == on {
            self.repeated.store(true, Ordering::Relaxed);
        }
    }
}

/// What an operation answers, and the number of the token that comes with the answer.
type Reply = (&'static str, Option<u32>);

struct Pair {
    desks: [Arc<Parker<Token>>; 2],
    groups: [u32; 2],
    channels: [Arc<Channel<Token>>; CHANNELS],
    lines: [Lines; CHANNELS],
    lamps: Vec<Arc<Lamp>>,
    guests: Vec<Guest>,
    phases: Phases,
    /// The token that was received last.
    hand: Option<Token>,
    mint: Mint,
    /// The tokens that this operation should lose.
    dropped: Vec<u32>,
}

impl Pair {
    fn new(setup: &Setup) -> Self {
        let desks = [Arc::new(Parker::new()), Arc::new(Parker::new())];
        let channels = setup.kinds.map(Kind::channel);
        let lamps = channels.iter().filter(|_| setup.has_lamps).map(|channel| {
            // It shows the opposite at first, as the first word that it is told counts.
            let lamp = Arc::new(Lamp { is_lit: true.into(), repeated: false.into() });
            let signal: Arc<dyn Signal> = lamp.clone();
            assert!(channel.add_signal(signal).is_ok());
            lamp
        });
        Self {
            lamps: lamps.collect(),
            groups: [0, 1].map(|desk: usize| desks[desk].open_group().unwrap_or(99)),
            desks,
            channels,
            lines: setup.kinds.map(Kind::lines),
            guests: Vec::new(),
            phases: Phases::default(),
            hand: None,
            mint: Mint::default(),
            dropped: Vec::new(),
        }
    }

    /// Keeps a token that was received, and tells its number.
    fn grasp(&mut self, token: Token) -> Option<u32> {
        let number = token.number;
        self.hand.replace(token).and_then(Token::redeem);
        number
    }

    /// One of the waiters of which `is_one` is true.
    fn choose(&self, pick: Pick, is_one: impl Fn(&Guest, Phase) -> bool) -> Option<usize> {
        let both = self.guests.iter().zip(&self.phases.all).enumerate();
        let all: Vec<usize> =
            both.filter(|(_, (guest, phase))| is_one(guest, **phase)).map(|(n, _)| n).collect();
        (!all.is_empty()).then(|| all[all.len() - 1 - pick * all.len() / PICKS])
    }

    /// Does something to one of the waiters of which `is_one` is true, if there is any.
    fn do_to(
        &mut self,
        pick: Pick,
        is_one: impl Fn(Phase) -> bool,
        act: impl FnOnce(&mut Self, usize) -> TestCaseResult,
    ) -> TestCaseResult {
        match self.choose(pick, |_, phase| is_one(phase)) {
            Some(guest) => act(self, guest),
            None => Ok(()),
        }
    }

    fn apply(&mut self, op: &Op) -> TestCaseResult {
        match *op {
            Op::Sit(desk, is_member) => self.sit(desk, is_member),
            Op::Send(at, how) => self.send(at, how),
            Op::Receive(at, how) => self.receive(at, how),
            Op::Select(ref cases, ref order, how) => self.select(cases, order, how),
            Op::Serve(pick, case, sort) => {
                self.do_to(pick, |_| true, |pair, guest| pair.serve(guest, case, sort))
            }
            Op::Leave(pick) => self.do_to(pick, |phase| phase != Phase::Left, Self::leave),
            Op::LeaveAgain(pick) => self.do_to(pick, |phase| phase == Phase::Left, Self::leave),
            Op::Collect(pick) => self.do_to(pick, |_| true, Self::collect),
            Op::Withdraw(pick) => self.do_to(pick, |phase| phase != Phase::Open, Self::withdraw),
            Op::TakeWoken(desk) => self.take_woken(desk),
            Op::PutBack(at) => self.put_back(at),
            Op::Abandon(at) => {
                self.abandon(at);
                Ok(())
            }
            Op::Orphan(at) => self.lines[at].fetch_orphan(&self.channels[at]).map(drop),
            Op::Feed(at) => self.feed(at),
            Op::FeedLast(at) => {
                self.feed_last(at);
                Ok(())
            }
            Op::Expect(at, nanos) => {
                self.lines[at].expect(&self.channels[at], Moment::from_nanos(nanos));
                Ok(())
            }
            Op::Close(at) => self.close(at),
            Op::Stop(at) => self.stop(at),
        }
    }

    // --- waiters -------------------------------------------------------------------------------

    fn sit(&mut self, desk: usize, is_member: bool) -> TestCaseResult {
        let number = u32::try_from(self.guests.len()).ok().filter(|_| is_member);
        let member = number.map(|number| Member { group: self.groups[desk], number });
        let waiter = self.desks[desk].sit(member);
        prop_assert!(waiter.is_ok());
        if let Ok(real) = waiter {
            self.welcome(real, desk, number)?;
        }
        Ok(())
    }

    fn welcome(&mut self, real: Waiter<Token>, desk: usize, member: Option<u32>) -> TestCaseResult {
        let mut of_desk = self.guests.iter().filter(|guest| guest.desk == desk);
        prop_assert!(of_desk.all(|guest| guest.real != real), "a ticket was sold twice");
        let mut of_desk = self.guests.iter().filter(|guest| guest.desk == desk);
        let is_newest = of_desk.all(|guest| guest.real.number() < real.number());
        prop_assert!(is_newest, "an older wait has a later ticket");
        self.guests.push(Guest { real, desk, member, has_waited: false, entered: Vec::new() });
        self.phases.open(desk);
        Ok(())
    }

    fn serve(&mut self, guest: usize, case: u32, sort: Sort) -> TestCaseResult {
        let (token, number) = self.mint.make();
        let mut token = Some(token);
        let (outcome, ending) = match sort {
            Sort::Received => {
                (token.take().map_or(Outcome::Sent, Outcome::Received), Ending::Received(number))
            }
            Sort::Closed => (Outcome::Closed(token.take()), Ending::Closed(Some(number))),
            Sort::Sent => (Outcome::Sent, Ending::Sent),
            Sort::Woken => (Outcome::Woken, Ending::Woken),
            Sort::Endless => (Outcome::Endless, Ending::Endless),
        };
        token.and_then(Token::redeem);
        let refused = self.guests[guest].real.serve(case, outcome).err();
        let served = self.phases.serve(Entry { guest, case }, ending);
        prop_assert_eq!(refused.map(ending_of), (!served).then_some(ending));
        Ok(())
    }

    fn keep(&mut self, outcome: Outcome<Token>) -> Ending {
        match outcome {
            Outcome::Received(token) => Ending::Received(self.grasp(token).unwrap_or(0)),
            other => ending_of(other),
        }
    }

    fn leave(&mut self, guest: usize) -> TestCaseResult {
        let served = self.guests[guest].real.leave();
        let real = served.map(|served| (served.case, self.keep(served.outcome)));
        prop_assert_eq!(real, self.phases.leave(guest));
        Ok(())
    }

    /// A crew collects when it takes out who was woken.
    fn collect(&mut self, guest: usize) -> TestCaseResult {
        let desk = self.guests[guest].desk;
        self.take_woken(desk)?;
        let collected = self.desks[desk].woken(self.groups[desk]).collect(&self.guests[guest].real);
        let next = collected.as_ref().map(|(_, ticket)| *ticket);
        let real = collected.map(|(served, _)| (served.case, self.keep(served.outcome)));
        if !matches!(self.phases.all[guest], Phase::Served(..)) {
            prop_assert_eq!(real, None);
            return Ok(());
        }
        prop_assert_eq!(real, self.phases.leave(guest));
        let Guest { ref real, desk, member, .. } = self.guests[guest];
        let next = real.next(next.unwrap_or(0));
        self.welcome(next, desk, member)
    }

    fn withdraw(&mut self, guest: usize) -> TestCaseResult {
        for (at, case) in mem::take(&mut self.guests[guest].entered) {
            let waiter = &self.guests[guest].real;
            let back = self.channels[at].withdraw(waiter, case).and_then(Token::redeem);
            let due = self.lines[at].withdraw(Entry { guest, case });
            prop_assert_eq!(back, due, "what comes back from case {} at channel {}", case, at);
            let again = self.channels[at].withdraw(waiter, case).and_then(Token::redeem);
            prop_assert_eq!(again, None, "it was there once more");
        }
        Ok(())
    }

    /// Those of a desk's group that were served, in that order.
    fn take_woken(&mut self, desk: usize) -> TestCaseResult {
        let has_woken = self.desks[desk].has_woken(self.groups[desk]);
        let mut woken = self.desks[desk].woken(self.groups[desk]);
        let real: Vec<u32> = std::iter::from_fn(|| woken.pop()).collect();
        drop(woken);
        let served = self.phases.take_log(desk);
        let members = served.iter().filter_map(|&guest| self.guests[guest].member);
        let due: Vec<u32> = members.collect();
        prop_assert_eq!(has_woken, !due.is_empty());
        prop_assert_eq!(real, due, "who was woken");
        Ok(())
    }

    // --- values --------------------------------------------------------------------------------

    /// The waiter that would be entered, and whether only where something is hoped for.
    fn waiter_for(&mut self, how: How) -> Option<(usize, bool)> {
        let (pick, is_fed) = match how {
            How::No => return None,
            How::Enter(pick) => (pick, false),
            How::EnterFed(pick) => (pick, true),
        };
        // One that was served already does not know it yet, and enters all the same.
        let may = |guest: &Guest, phase| !guest.has_waited && phase != Phase::Left;
        let guest = self.choose(pick, may)?;
        self.guests[guest].has_waited = true;
        Some((guest, is_fed))
    }

    fn wait(&self, entered: Option<(usize, bool)>) -> Wait<'_, Token> {
        match entered {
            None => Wait::No,
            Some((guest, false)) => Wait::Enter(&self.guests[guest].real),
            Some((guest, true)) => Wait::EnterFed(&self.guests[guest].real),
        }
    }

    fn enter(&mut self, guest: usize, at: At, token: Option<u32>) {
        self.guests[guest].entered.push((at, 0));
        self.lines[at].enter(Entry { guest, case: 0 }, token);
    }

    fn send(&mut self, at: At, how: How) -> TestCaseResult {
        let waiter = self.waiter_for(how);
        let (token, number) = self.mint.make();
        // Who does not wait has a way of his own.
        let tries = waiter.is_none() && number % 2 == 0;
        let sent = if tries {
            self.channels[at].try_send(token).map(|()| true)
        } else {
            self.channels[at].send(token, &self.wait(waiter))
        };
        let real: Reply = match sent {
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
                Some((_, true)) if !lines.is_shared => ("endless", Some(number)),
                Some((guest, _)) => {
                    self.enter(guest, at, Some(number));
                    ("waits", None)
                }
            }
        };
        prop_assert_eq!(real, due);
        Ok(())
    }

    fn receive(&mut self, at: At, how: How) -> TestCaseResult {
        let waiter = self.waiter_for(how);
        let received = if waiter.is_none() && self.guests.len().is_multiple_of(2) {
            self.channels[at].try_receive().map(Some)
        } else {
            self.channels[at].receive(&self.wait(waiter))
        };
        let real: Reply = match received {
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
                Some((_, true)) if !lines.is_fed => ("endless", None),
                Some((guest, _)) => {
                    self.enter(guest, at, None);
                    ("waits", None)
                }
            }
        };
        prop_assert_eq!(real, due);
        Ok(())
    }

    fn select(&mut self, wants: &[Option<Want>], order: &[u32], how: How) -> TestCaseResult {
        let waiter = self.waiter_for(how);
        let (mut cases, mut brought) = oracle::cases(wants, &self.channels, &mut self.mint);
        let real = match select(&mut cases, order, &self.wait(waiter)) {
            Selected::Done(case, outcome) => Some(Due::Done(case, self.keep(outcome))),
            Selected::NotReady => Some(Due::NotReady),
            Selected::Entered => Some(Due::Entered),
            Selected::Endless => Some(Due::Endless),
            Selected::OutOfMemory => None,
        };
        let (lines, phases) = (&mut self.lines, &mut self.phases);
        let due = oracle::select(lines, phases, (wants, order), waiter, &mut brought);
        prop_assert_eq!(real, Some(due));
        prop_assert_eq!(oracle::redeem_all(cases), brought, "what was not sent");
        if let (Due::Entered, Some((guest, _))) = (due, waiter) {
            let entered =
                (0..).zip(wants).filter_map(|(case, want)| Some((want.as_ref()?.at(), case)));
            self.guests[guest].entered.extend(entered);
        }
        Ok(())
    }

    fn put_back(&mut self, at: At) -> TestCaseResult {
        let Some(token) = self.hand.take() else { return Ok(()) };
        let number = token.number.unwrap_or(0);
        let back = self.channels[at].put_back(token).err().and_then(Token::redeem);
        prop_assert_eq!(back, self.lines[at].put_back(&mut self.phases, number));
        Ok(())
    }

    fn abandon(&mut self, at: At) {
        let Some(token) = self.hand.take() else { return };
        let number = token.number.unwrap_or(0);
        self.channels[at].abandon(token);
        self.dropped.extend(self.lines[at].abandon(number));
    }

    fn feed(&mut self, at: At) -> TestCaseResult {
        let (token, number) = self.mint.make();
        let lines = &mut self.lines[at];
        prop_assert_eq!(self.channels[at].feed(token), !lines.closed);
        if lines.closed || !lines.accept(&mut self.phases, number) {
            self.dropped.push(number);
        }
        Ok(())
    }

    fn feed_last(&mut self, at: At) {
        let (token, number) = self.mint.make();
        self.channels[at].feed_last(token);
        let lines = &mut self.lines[at];
        if lines.closed || !lines.accept(&mut self.phases, number) {
            self.dropped.push(number);
        }
        lines.close(&mut self.phases);
    }

    fn close(&mut self, at: At) -> TestCaseResult {
        prop_assert_eq!(self.channels[at].close(), self.lines[at].is_fed, "a timer was to send");
        self.lines[at].close(&mut self.phases);
        Ok(())
    }

    fn stop(&mut self, at: At) -> TestCaseResult {
        let drained: VecDeque<u32> =
            self.channels[at].stop().into_iter().filter_map(Token::redeem).collect();
        let lines = &mut self.lines[at];
        lines.close(&mut self.phases);
        lines.stopped = true;
        prop_assert_eq!(drained, mem::take(&mut lines.buffer), "what a stop takes out");
        Ok(())
    }

    // --- comparing -----------------------------------------------------------------------------

    fn compare(&mut self) -> TestCaseResult {
        // First, as a lamp that forgot would be reminded by any look at its channel.
        for (at, (lamp, lines)) in self.lamps.iter().zip(&self.lines).enumerate() {
            // A sender that no longer waits may be seen as one until it is taken out.
            if lines.senders.iter().all(|(entry, _)| self.phases.is_open(entry)) {
                let is_lit = lamp.is_lit.load(Ordering::Relaxed);
                prop_assert_eq!(is_lit, lines.is_ready(&self.phases), "lamp {}", at);
            }
            prop_assert!(!lamp.repeated.load(Ordering::Relaxed), "lamp {at} was told the same");
        }
        for (channel, lines) in self.channels.iter().zip(&self.lines) {
            lines.compare(channel, &self.phases)?;
        }
        for (number, (guest, phase)) in self.guests.iter().zip(&self.phases.all).enumerate() {
            if *phase != Phase::Left {
                // A sleep until a moment long past is a look.
                let is_served = guest.real.sleep(Moment::from_nanos(0));
                prop_assert_eq!(is_served, *phase != Phase::Open, "waiter {} is served", number);
            }
            prop_assert_eq!(guest.real.is_open(), *phase == Phase::Open, "is_open");
        }
        self.mint.check_lost(&mut self.dropped)
    }

    /// All leave, and what the channels still hold is received.
    fn tidy_up(&mut self) -> TestCaseResult {
        for guest in 0..self.guests.len() {
            self.leave(guest)?;
            self.withdraw(guest)?;
        }
        for at in 0..self.channels.len() {
            while !self.lines[at].buffer.is_empty() {
                self.receive(at, How::No)?;
            }
            self.receive(at, How::No)?;
            while self.lines[at].fetch_orphan(&self.channels[at])? {}
        }
        self.take_woken(0)?;
        self.take_woken(1)?;
        self.compare()
    }

    /// Everything goes, as it is.
    fn end(mut self) -> TestCaseResult {
        self.dropped.extend(self.lines.iter().flat_map(Lines::tokens));
        for phase in &self.phases.all {
            if let Phase::Served(_, ending) = phase {
                self.dropped.extend(ending.token());
            }
        }
        self.hand.take().and_then(Token::redeem);
        let Self { desks, channels, guests, mint, mut dropped, .. } = self;
        drop((desks, channels, guests));
        mint.check_lost(&mut dropped)?;
        prop_assert_eq!(Arc::strong_count(&mint.lost), 1, "a token is still somewhere");
        Ok(())
    }
}

pub fn agree(script: &Script<Setup, Op>) -> TestCaseResult {
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
