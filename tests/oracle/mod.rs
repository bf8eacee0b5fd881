//! What channels should do, said with plain lists: an oracle for the models. A waiter is a number,
//! and so is a value, which is a token that tells when it is dropped.

use std::collections::VecDeque;
use std::mem;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use queue::core::channel::{Channel, Crossing, Local};
use queue::core::clock::Moment;
use queue::core::select::Case;
use queue::core::sync::{Arc, Mutex, lock};
use queue::core::waiter::Outcome;

// --- tokens ------------------------------------------------------------------------------------

/// The numbers of the tokens that were dropped and not redeemed.
pub type Lost = Arc<Mutex<Vec<u32>>>;

/// A value that cannot be copied, and that tells when it is dropped.
#[derive(Debug)]
pub struct Token {
    pub number: Option<u32>,
    lost: Lost,
}

impl Token {
    /// Takes the token out of circulation.
    pub fn redeem(mut self) -> Option<u32> {
        self.number.take()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        lock(&self.lost).extend(self.number);
    }
}

/// Makes tokens.
#[derive(Debug, Default)]
pub struct Mint {
    made: u32,
    pub lost: Lost,
}

impl Mint {
    /// A new token, and its number.
    pub fn make(&mut self) -> (Token, u32) {
        self.made += 1;
        (Token { number: Some(self.made), lost: Arc::clone(&self.lost) }, self.made)
    }

    /// Exactly these tokens were lost since the last time.
    pub fn check_lost(&self, due: &mut Vec<u32>) -> TestCaseResult {
        let mut lost = mem::take(&mut *lock(&self.lost));
        lost.sort_unstable();
        due.sort_unstable();
        prop_assert_eq!(lost, mem::take(due), "tokens lost");
        Ok(())
    }
}

// --- waiters -----------------------------------------------------------------------------------

/// How a wait ended, with the number of the token that came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Received(u32),
    Sent,
    Closed(Option<u32>),
    Woken,
    Endless,
}

impl Ending {
    /// The number of the token that travels with it.
    pub fn token(self) -> Option<u32> {
        match self {
            Self::Received(token) => Some(token),
            Self::Closed(token) => token,
            Self::Sent | Self::Woken | Self::Endless => None,
        }
    }
}

/// What an outcome amounts to; its token is redeemed.
pub fn ending_of(outcome: Outcome<Token>) -> Ending {
    match outcome {
        Outcome::Received(token) => Ending::Received(token.redeem().unwrap_or(0)),
        Outcome::Sent => Ending::Sent,
        Outcome::Closed(token) => Ending::Closed(token.and_then(Token::redeem)),
        Outcome::Woken => Ending::Woken,
        Outcome::Endless => Ending::Endless,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Open,
    Served(u32, Ending),
    Left,
}

/// A waiter in a line, by its number, and the case under which it waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub guest: usize,
    pub case: u32,
}

/// How it stands with each waiter that was ever opened.
#[derive(Debug, Default)]
pub struct Phases {
    pub all: Vec<Phase>,
    /// The group of each.
    groups: Vec<usize>,
    /// Those that were served, in order.
    log: Vec<usize>,
    /// A group, and the waiter that is woken once when one of them is served.
    pub pump: Option<(usize, usize)>,
}

impl Phases {
    /// A new waiter.
    pub fn open(&mut self, group: usize) -> usize {
        self.all.push(Phase::Open);
        self.groups.push(group);
        self.all.len() - 1
    }

    /// Whether it was this that ended the wait.
    pub fn serve(&mut self, entry: Entry, ending: Ending) -> bool {
        if !self.is_open(&entry) {
            return false;
        }
        self.all[entry.guest] = Phase::Served(entry.case, ending);
        self.log.push(entry.guest);
        if let Some((_, guest)) = self.pump.take_if(|(group, _)| *group == self.groups[entry.guest])
        {
            self.serve(Entry { guest, case: 0 }, Ending::Woken);
        }
        true
    }

    pub fn is_open(&self, entry: &Entry) -> bool {
        self.all[entry.guest] == Phase::Open
    }

    /// The wait ends now: how it was served, if it was.
    pub fn leave(&mut self, guest: usize) -> Option<(u32, Ending)> {
        match mem::replace(&mut self.all[guest], Phase::Left) {
            Phase::Served(case, ending) => Some((case, ending)),
            Phase::Open | Phase::Left => None,
        }
    }

    /// Those of a group that were served since the last time, in order.
    pub fn take_log(&mut self, group: usize) -> Vec<usize> {
        let (of_group, others) =
            mem::take(&mut self.log).into_iter().partition(|&guest| self.groups[guest] == group);
        self.log = others;
        of_group
    }
}

// --- channels ----------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Plain(usize),
    /// For a timer, which feeds it or has done so.
    Timer(bool),
    Shared(usize),
}

impl Kind {
    #[allow(clippy::arc_with_non_send_sync, reason = "a plain channel stays on its thread")]
    pub fn channel(self) -> Arc<Channel<Token>> {
        match self {
            Self::Plain(capacity) => Arc::new(Local::new(capacity)),
            Self::Timer(is_fed) => Arc::new(Crossing::timer(is_fed)),
            Self::Shared(capacity) => Arc::new(Crossing::shared(capacity)),
        }
    }

    pub fn lines(self) -> Lines {
        let (capacity, is_shared, is_fed) = match self {
            Self::Plain(capacity) => (capacity, false, false),
            Self::Timer(is_fed) => (1, false, is_fed),
            Self::Shared(capacity) => (capacity, true, true),
        };
        Lines { capacity, is_shared, is_fed, ..Lines::default() }
    }
}

#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
pub struct Lines {
    pub capacity: usize,
    pub is_shared: bool,
    /// A wait there need not be in vain, whatever this Lua state does.
    pub is_fed: bool,
    pub closed: bool,
    pub stopped: bool,
    pub buffer: VecDeque<u32>,
    pub receivers: VecDeque<Entry>,
    pub senders: VecDeque<(Entry, u32)>,
    /// Tokens whose owners have gone.
    orphans: Vec<u32>,
    next_feed: Option<Moment>,
}

impl Lines {
    /// Whether the first receiver in line that still waits got the token.
    pub fn hand_over(&mut self, phases: &mut Phases, token: u32) -> bool {
        let mut line = self.receivers.iter();
        line.any(|&entry| phases.serve(entry, Ending::Received(token)))
    }

    /// Whether the token found a receiver or room.
    pub fn accept(&mut self, phases: &mut Phases, token: u32) -> bool {
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

    pub fn take(&mut self, phases: &mut Phases) -> Option<u32> {
        let Some(token) = self.buffer.pop_front() else { return self.next_sent(phases) };
        if self.buffer.len() < self.capacity {
            let moved = self.next_sent(phases);
            self.buffer.extend(moved);
        }
        Some(token)
    }

    pub fn close(&mut self, phases: &mut Phases) {
        self.closed = true;
        self.is_fed = false;
        self.next_feed = None;
        for &entry in &self.receivers {
            phases.serve(entry, Ending::Closed(None));
        }
        self.senders.retain(|&(entry, token)| !phases.serve(entry, Ending::Closed(Some(token))));
    }

    pub fn enter(&mut self, entry: Entry, token: Option<u32>) {
        match token {
            Some(token) => self.senders.push_back((entry, token)),
            None => self.receivers.push_back(entry),
        }
    }

    /// Takes an entry out, and gives back the token that it brought.
    pub fn withdraw(&mut self, entry: Entry) -> Option<u32> {
        self.receivers.retain(|there| *there != entry);
        let place = self.senders.iter().position(|(there, _)| *there == entry)?;
        self.senders.remove(place).map(|(_, token)| token)
    }

    /// The token, where it cannot go back.
    pub fn put_back(&mut self, phases: &mut Phases, token: u32) -> Option<u32> {
        if self.stopped {
            return Some(token);
        }
        if !self.hand_over(phases, token) {
            self.buffer.push_front(token);
        }
        None
    }

    /// The token, where it is simply dropped.
    pub fn abandon(&mut self, token: u32) -> Option<u32> {
        if self.is_shared {
            return Some(token);
        }
        self.orphans.push(token);
        None
    }

    /// Fetches an orphan from both. False: there is none.
    pub fn fetch_orphan(&mut self, channel: &Channel<Token>) -> Result<bool, TestCaseError> {
        let number = channel.orphan().and_then(Token::redeem);
        let place = self.orphans.iter().position(|&there| Some(there) == number);
        prop_assert_eq!(place.is_some(), !self.orphans.is_empty(), "{:?} is no orphan", number);
        Ok(place.map(|place| self.orphans.remove(place)).is_some())
    }

    /// A timer tells both when it will send next.
    pub fn expect(&mut self, channel: &Channel<Token>, moment: Moment) {
        if !self.closed {
            self.next_feed = Some(moment);
            channel.expect_feed(moment);
        }
    }

    pub fn next_feed(&self) -> Moment {
        self.next_feed.unwrap_or(Moment::NEVER)
    }

    /// All tokens that are here.
    pub fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        let brought = self.senders.iter().map(|(_, token)| token);
        self.buffer.iter().chain(brought).chain(&self.orphans).copied()
    }

    /// A receive would not wait.
    pub fn is_ready(&self, phases: &Phases) -> bool {
        let sends = self.senders.iter().any(|(entry, _)| phases.is_open(entry));
        !self.buffer.is_empty() || self.closed || sends
    }

    /// Both show the same, and nobody waits for what is there.
    pub fn compare(&self, channel: &Channel<Token>, phases: &Phases) -> TestCaseResult {
        prop_assert_eq!(channel.len(), self.buffer.len(), "len");
        prop_assert_eq!(channel.is_empty(), self.buffer.is_empty(), "is_empty");
        prop_assert_eq!(channel.capacity(), self.capacity, "capacity");
        prop_assert_eq!(channel.is_closed(), self.closed, "is_closed");
        prop_assert_eq!(channel.is_fed(), self.is_fed, "is_fed");
        prop_assert_eq!(channel.next_feed(), self.next_feed(), "next_feed");

        let receives = self.receivers.iter().any(|entry| phases.is_open(entry));
        let sends = self.senders.iter().any(|(entry, _)| phases.is_open(entry));
        prop_assert_eq!(channel.is_ready(), self.is_ready(phases), "is_ready");
        prop_assert!(!receives || self.buffer.is_empty(), "a receiver waits beside a value");
        prop_assert!(!sends || self.buffer.len() >= self.capacity, "a sender waits beside room");
        prop_assert!(!self.closed || (!receives && !sends), "one waits at a closed channel");
        // A select may send and receive at the same channel: it does not meet itself.
        let meet = self.receivers.iter().any(|one| {
            let meets =
                |(other, _): &(Entry, u32)| other.guest != one.guest && phases.is_open(other);
            phases.is_open(one) && self.senders.iter().any(meets)
        });
        prop_assert!(!meet, "a receiver and a sender wait for each other");
        Ok(())
    }
}

// --- selects -----------------------------------------------------------------------------------

/// A case, at the channel of this number.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    Send(usize),
    Receive(usize),
}

impl Want {
    pub fn at(self) -> usize {
        match self {
            Self::Send(at) | Self::Receive(at) => at,
        }
    }
}

/// Cases with new tokens where they send, and the numbers of these.
pub fn cases(
    wants: &[Option<Want>],
    channels: &[Arc<Channel<Token>>],
    mint: &mut Mint,
) -> (Vec<Option<Case<Token>>>, Vec<Option<u32>>) {
    let both = wants.iter().map(|want| {
        let Some(want) = want else { return (None, None) };
        let made = matches!(want, Want::Send(_)).then(|| mint.make());
        let (send, number) =
            made.map_or((None, None), |(token, number)| (Some(token), Some(number)));
        (Some(Case { channel: Arc::clone(&channels[want.at()]), send }), number)
    });
    both.unzip()
}

/// The tokens that are still with their cases.
pub fn redeem_all(cases: Vec<Option<Case<Token>>>) -> Vec<Option<u32>> {
    cases.into_iter().map(|case| case.and_then(|case| case.send).and_then(Token::redeem)).collect()
}

/// What comes of a select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Done(u32, Ending),
    NotReady,
    Entered,
    Endless,
}

/// What comes of a select at these lines. A waiter comes with the word that it is entered only where
/// something is hoped for. What goes is taken out of `brought`.
pub fn select(
    lines: &mut [Lines],
    phases: &mut Phases,
    (wants, order): (&[Option<Want>], &[u32]),
    waiter: Option<(usize, bool)>,
    brought: &mut [Option<u32>],
) -> Due {
    for (number, want) in (0..).zip(wants) {
        if let Some(Want::Send(at)) = *want
            && lines[at].closed
        {
            return Due::Done(number, Ending::Closed(brought[number as usize].take()));
        }
    }
    for &number in order {
        let ending = match wants[number as usize] {
            None => None,
            Some(Want::Receive(at)) => {
                let closed = lines[at].closed.then_some(Ending::Closed(None));
                lines[at].take(phases).map(Ending::Received).or(closed)
            }
            Some(Want::Send(at)) => {
                let brought = &mut brought[number as usize];
                let sent = brought.take_if(|token| lines[at].accept(phases, *token));
                sent.map(|_| Ending::Sent)
            }
        };
        if let Some(ending) = ending {
            return Due::Done(number, ending);
        }
    }
    let Some((guest, only_fed)) = waiter else { return Due::NotReady };
    let is_hopeful = wants.iter().flatten().any(|want| match *want {
        Want::Send(at) => lines[at].is_shared,
        Want::Receive(at) => lines[at].is_fed,
    });
    if only_fed && !is_hopeful {
        return Due::Endless;
    }
    for (case, want) in (0..).zip(wants) {
        if let Some(want) = want {
            lines[want.at()].enter(Entry { guest, case }, brought[case as usize].take());
        }
    }
    Due::Entered
}
