//! Threads that really block. Producers and consumers wait at one channel, or with one waiter at
//! two, for random times, while somebody closes the channels: what was sent is received once and in
//! order, what was not sent comes back, and nobody is left asleep.

#![cfg(not(loom))]

mod seeds;

use std::ops::Range;
use std::thread;
use std::time::Duration;

use queue::core::channel::{Channel, Unreceived, Unsent, Wait};
use queue::core::clock::{Moment, Span};
use queue::core::sync::Arc;
use queue::core::waiter::{Outcome, Parker, Served, Waiter};

/// Whoever sleeps that long has missed his wake-up.
const AGES: Span = Span::from_nanos(10_000_000_000);

/// Values that a producer has for each channel.
const VALUES: u32 = 60;

/// Random numbers, by xorshift.
struct Dice(u64);

impl Dice {
    /// Dice of their own for each seed and person.
    fn new(seed: u64, person: u64) -> Self {
        let mut dice = Self((seed << 8 | person).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            dice.roll(1..2);
        }
        dice
    }

    fn roll(&mut self, range: Range<u64>) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        range.start + self.0 % (range.end - range.start)
    }

    /// How long to wait this time; `None`: not at all.
    fn patience(&mut self) -> Option<Span> {
        match self.roll(0..4) {
            0 => None,
            1 | 2 => Some(Span::from_nanos(self.roll(1..150_000))),
            _ => Some(AGES),
        }
    }

    /// Others may come first.
    fn dawdle(&mut self) {
        if self.roll(0..4) == 0 {
            thread::yield_now();
        }
    }
}

/// A value tells where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Value {
    channel: usize,
    producer: u64,
    serial: u32,
}

/// A channel that did not serve a wait, and the value that comes back from it.
type Back = (usize, Option<Value>);

/// Tells the seed where a test fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("seed {0} failed; QUEUE_SEED={0} runs it again", self.0);
        }
    }
}

/// Closes all channels in the end, also where a test fails: then no thread waits for ever.
struct Closing<'a>(&'a [Channel<Value>]);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(Channel::close);
    }
}

/// One wait: at all channels that are open to it, until the first of them serves it.
struct Attempt<'a> {
    channels: &'a [Channel<Value>],
    waiter: Waiter<Value>,
    patience: Option<Span>,
    until: Moment,
    /// The channels at which the waiter was entered.
    entered: Vec<usize>,
}

impl<'a> Attempt<'a> {
    fn new(
        channels: &'a [Channel<Value>],
        parker: &Arc<Parker<Value>>,
        patience: Option<Span>,
    ) -> Self {
        let waiter = parker.sit().unwrap();
        let until = Moment::now().after(patience.unwrap_or(Span::ZERO));
        Self { channels, waiter, patience, until, entered: Vec::new() }
    }

    fn wait(&self) -> Wait<'_, Value> {
        if self.patience.is_some() { Wait::Limited(&self.waiter) } else { Wait::No }
    }

    /// Ends the wait, after a sleep where nothing happened yet. Gives back how it was served, and
    /// what comes of the channels that did not serve it.
    fn end(self, happened: bool) -> (Option<Served<Value>>, Vec<Back>) {
        let mut woken = false;
        if !happened && !self.entered.is_empty() {
            woken = self.waiter.sleep(self.until);
            let is_late = Moment::now() >= self.until;
            assert!(!is_late || self.patience != Some(AGES), "not woken at {:?}", self.entered);
            assert!(is_late || woken, "woken early");
        }
        let served = self.waiter.leave();
        assert!(served.is_some() || !woken, "woken for nothing");
        let by = served.as_ref().map(|served| served.case as usize);
        let mut others = Vec::new();
        for at in self.entered {
            let back = self.channels[at].withdraw(&self.waiter);
            if by == Some(at) {
                assert_eq!(back, None, "a value that was sent comes back as well");
            } else {
                others.push((at, back));
            }
        }
        (served, others)
    }
}

/// Sends all its values, each to its channel, until the channels are closed. Returns how many were
/// sent to each.
fn produce(channels: &[Channel<Value>], producer: u64, mut dice: Dice) -> Vec<u32> {
    let parker = Arc::new(Parker::new());
    let mut sent = vec![0; channels.len()];
    let mut open: Vec<usize> = (0..channels.len()).collect();
    while !open.is_empty() {
        dice.dawdle();
        let mut attempt = Attempt::new(channels, &parker, dice.patience());
        let value =
            |channel: usize, sent: &[u32]| Value { channel, producer, serial: sent[channel] };
        let before = sent.clone();
        let mut happened = false;
        for &at in &open {
            let mine = value(at, &before);
            match channels[at].send(mine, u32::try_from(at).unwrap(), &attempt.wait()) {
                Ok(true) => {
                    sent[at] += 1;
                    happened = true;
                    break;
                }
                Ok(false) => attempt.entered.push(at),
                Err(Unsent::Full(back)) => assert_eq!(back, mine),
                Err(Unsent::Closed(back)) => {
                    assert_eq!(back, mine);
                    open.retain(|&other| other != at);
                    happened = true;
                    break;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        let (served, others) = attempt.end(happened);
        match served.map(|served| (served.case as usize, served.outcome)) {
            None => {}
            // Where two channels are served by others at once, both may happen.
            Some((at, Outcome::Sent)) => sent[at] += 1,
            Some((at, Outcome::Closed(back))) => {
                assert_eq!(back, Some(value(at, &before)), "a closed channel keeps a value");
                open.retain(|&other| other != at);
            }
            Some((_, Outcome::Received(got))) => panic!("a sender was given {got:?}"),
        }
        for (at, back) in others {
            assert_eq!(back, Some(value(at, &before)), "channel {at} keeps a value");
        }
        open.retain(|&at| sent[at] < VALUES);
    }
    sent
}

/// Receives until all channels are closed and drained.
fn consume(channels: &[Channel<Value>], mut dice: Dice) -> Vec<Value> {
    let parker = Arc::new(Parker::new());
    let mut received = Vec::new();
    let mut open: Vec<usize> = (0..channels.len()).collect();
    while !open.is_empty() {
        dice.dawdle();
        let mut attempt = Attempt::new(channels, &parker, dice.patience());
        let mut happened = false;
        // Where a channel has closed the next round does without it.
        let mut closed = Vec::new();
        let mut got = Vec::new();
        for &at in &open {
            match channels[at].receive(u32::try_from(at).unwrap(), &attempt.wait()) {
                Ok(Some(value)) => {
                    got.push((at, value));
                    happened = true;
                    break;
                }
                Ok(None) => attempt.entered.push(at),
                Err(Unreceived::Empty) => {}
                Err(Unreceived::Closed) => {
                    closed.push(at);
                    happened = true;
                    break;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        let (served, others) = attempt.end(happened);
        match served.map(|served| (served.case as usize, served.outcome)) {
            None => {}
            Some((at, Outcome::Received(value))) => got.push((at, value)),
            Some((at, Outcome::Closed(None))) => closed.push(at),
            Some((_, other)) => panic!("a receiver was served {other:?}"),
        }
        assert!(
            others.iter().all(|(_, back)| back.is_none()),
            "a receiver is given back something"
        );
        for (at, value) in got {
            assert_eq!(value.channel, at, "a case tells of another channel");
            received.push(value);
        }
        open.retain(|at| !closed.contains(at));
    }
    received
}

fn round(seed: u64, capacities: &[usize]) {
    let _named = Named(seed);
    let mut dice = Dice::new(seed, 0);
    let channels: Vec<Channel<Value>> = capacities.iter().map(|&n| Channel::new(n)).collect();
    let channels = &channels[..];
    let (producers, consumers) = (dice.roll(1..4), dice.roll(1..4));
    let is_race = dice.roll(0..2) == 0;

    let (sent, received) = thread::scope(|scope| {
        let receivers: Vec<_> = (0..consumers)
            .map(|n| scope.spawn(move || consume(channels, Dice::new(seed, 100 + n))))
            .collect();
        let senders: Vec<_> = (0..producers)
            .map(|n| scope.spawn(move || produce(channels, n, Dice::new(seed, 1 + n))))
            .collect();
        let closing = Closing(channels);
        if is_race {
            thread::sleep(Duration::from_micros(dice.roll(0..2_000)));
            channels.iter().for_each(Channel::close);
        }
        let sent: Vec<Vec<u32>> = senders.into_iter().map(|one| one.join().unwrap()).collect();
        drop(closing);
        let received: Vec<_> = receivers.into_iter().map(|one| one.join().unwrap()).collect();
        (sent, received)
    });

    for channel in channels {
        assert_eq!(channel.receive(0, &Wait::No), Err(Unreceived::Closed), "something was left");
    }
    if !is_race {
        assert!(sent.iter().flatten().all(|&count| count == VALUES), "some were not sent");
    }
    for one in &received {
        for producer in 0..producers {
            for channel in 0..channels.len() {
                let is_of = |value: &&Value| value.producer == producer && value.channel == channel;
                let serials = one.iter().filter(is_of).map(|value| value.serial);
                assert!(serials.is_sorted(), "channel {channel} has mixed up what {producer} sent");
            }
        }
    }
    let mut due = Vec::new();
    for (producer, counts) in (0..).zip(&sent) {
        for (channel, &count) in counts.iter().enumerate() {
            due.extend((0..count).map(|serial| Value { channel, producer, serial }));
        }
    }
    due.sort_unstable();
    let mut all = received.concat();
    all.sort_unstable();
    assert_eq!(all, due, "what was received is not what was sent");
}

#[test]
fn a_rendezvous_loses_and_doubles_nothing() {
    seeds::seeds(150).for_each(|seed| round(seed, &[0]));
}

#[test]
fn a_buffer_loses_and_doubles_nothing() {
    seeds::seeds(150).for_each(|seed| round(seed, if seed % 2 == 0 { &[1] } else { &[3] }));
}

#[test]
fn a_waiter_at_two_channels_is_served_at_one() {
    seeds::seeds(150).for_each(|seed| round(seed, if seed % 2 == 0 { &[0, 0] } else { &[1, 0] }));
}
