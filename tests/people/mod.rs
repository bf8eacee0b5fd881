//! Threads that send and receive, one by one or with selects, for random times, while somebody
//! closes the channels.

use std::ops::Range;
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use queue::core::channel::{Channel, Crossing, Unreceived, Unsent, Wait};
use queue::core::clock::{Moment, Span};
use queue::core::parker::Parker;
use queue::core::select::{Case, Selected, select};
use queue::core::sync::Arc;
use queue::core::waiter::{Outcome, Waiter};

/// Whoever sleeps that long has missed his wake-up.
const AGES: Span = Span::from_nanos(10_000_000_000);

/// Random numbers, by xorshift.
pub struct Dice(u64);

impl Dice {
    /// Dice of their own for each seed and person.
    pub fn new(seed: u64, person: u64) -> Self {
        let mut dice = Self((seed << 8 | person).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            dice.roll(1..2);
        }
        dice
    }

    pub fn roll(&mut self, range: Range<u64>) -> u64 {
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
    sender: u64,
    serial: u32,
}

type Line = Arc<Crossing<Value>>;

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
struct Closing<'a>(&'a [Line]);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        for channel in self.0 {
            channel.close();
        }
    }
}

/// A case, and the value that it is to send.
type Want = (usize, Option<Value>);

/// One who sends, or receives, or both at once.
struct Person<'a> {
    number: u64,
    channels: &'a [Line],
    parker: Arc<Parker<Value>>,
    dice: Dice,
    /// Where it still sends.
    sends: Vec<usize>,
    /// Where it still receives.
    receives: Vec<usize>,
    /// How many values it has sent to each channel, and how many it has at most.
    sent: Vec<u32>,
    values: u32,
    received: Vec<Value>,
}

impl<'a> Person<'a> {
    /// One who does nothing yet.
    fn new(number: u64, channels: &'a [Line], seed: u64, values: u32) -> Self {
        Self {
            number,
            channels,
            parker: Arc::new(Parker::new()),
            dice: Dice::new(seed, 1 + number),
            sends: Vec::new(),
            receives: Vec::new(),
            sent: vec![0; channels.len()],
            values,
            received: Vec::new(),
        }
    }

    /// Goes on until all its values are sent and all channels, where it receives, are closed. Lets
    /// go of `busy` when it has nothing to send any more.
    fn take_part(mut self, busy: mpsc::Sender<()>) -> (Vec<u32>, Vec<Value>) {
        let mut busy = Some(busy);
        loop {
            self.dice.dawdle();
            if self.sends.is_empty() {
                busy.take();
            }
            let wants = self.wants();
            if wants.is_empty() {
                return (self.sent, self.received);
            }
            let patience = self.dice.patience();
            let ending = if wants.len() == 1 && self.dice.roll(0..2) == 0 {
                self.one(wants[0], patience)
            } else {
                self.any(&wants, patience)
            };
            if let Some((case, outcome)) = ending {
                self.note(wants[case as usize], outcome);
            }
        }
    }

    /// What it would do next, in random order; now and then it wants the same twice.
    fn wants(&mut self) -> Vec<Want> {
        let value =
            |channel: usize| Value { channel, sender: self.number, serial: self.sent[channel] };
        let sends = self.sends.iter().map(|&at| (at, Some(value(at))));
        let mut wants: Vec<Want> =
            sends.chain(self.receives.iter().map(|&at| (at, None))).collect();
        if !wants.is_empty() && self.dice.roll(0..4) == 0 {
            wants.push(wants[0]);
        }
        for last in (1..wants.len()).rev() {
            let other = usize::try_from(self.dice.roll(0..last as u64 + 1)).unwrap();
            wants.swap(last, other);
        }
        wants
    }

    /// A send or a receive.
    fn one(&mut self, (at, value): Want, patience: Option<Span>) -> Option<(u32, Outcome<Value>)> {
        let waiter = self.parker.sit(None).unwrap();
        let until = Moment::now().after(patience.unwrap_or(Span::ZERO));
        let wait = if patience.is_some() { Wait::Enter(&waiter) } else { Wait::No };
        let channel = &self.channels[at];
        // As the face does: it tries, and comes back to wait.
        let tries = self.dice.roll(0..4) > 0;
        let send = |mine| match channel.try_send(mine) {
            Err(Unsent::Full(mine)) => channel.send(mine, &wait),
            done => done.map(|()| true),
        };
        let receive = || match channel.try_receive() {
            Err(Unreceived::Empty) => channel.receive(&wait),
            done => done.map(Some),
        };
        let ending = match value {
            Some(mine) => match if tries { send(mine) } else { channel.send(mine, &wait) } {
                Ok(true) => Some(Outcome::Sent),
                Ok(false) => None,
                Err(Unsent::Full(back)) => {
                    assert_eq!(back, mine);
                    assert!(patience.is_none(), "it should wait");
                    waiter.leave();
                    return None;
                }
                Err(Unsent::Closed(back)) => Some(Outcome::Closed(Some(back))),
                Err(other) => panic!("{other:?}"),
            },
            None => match if tries { receive() } else { channel.receive(&wait) } {
                Ok(Some(value)) => Some(Outcome::Received(value)),
                Ok(None) => None,
                Err(Unreceived::Empty) => {
                    assert!(patience.is_none(), "it should wait");
                    waiter.leave();
                    return None;
                }
                Err(Unreceived::Closed) => Some(Outcome::Closed(None)),
                Err(other) => panic!("{other:?}"),
            },
        };
        if let Some(outcome) = ending {
            assert_eq!(waiter.leave(), None, "it took place, and was served as well");
            return Some((0, outcome));
        }
        self.wait(&waiter, &[(at, value)], until, patience)
    }

    /// A select.
    fn any(&mut self, wants: &[Want], patience: Option<Span>) -> Option<(u32, Outcome<Value>)> {
        let waiter = self.parker.sit(None).unwrap();
        let until = Moment::now().after(patience.unwrap_or(Span::ZERO));
        let wait = if patience.is_some() { Wait::Enter(&waiter) } else { Wait::No };
        let case = |&(at, send): &Want| {
            let channel: Arc<Channel<Value>> = self.channels[at].clone();
            Some(Case { channel, send })
        };
        let mut cases: Vec<_> = wants.iter().map(case).collect();
        let order: Vec<u32> = (0..).take(wants.len()).collect();
        let selected = select(&mut cases, &order, &wait);
        let done = match &selected {
            Selected::Done(case, _) => Some(*case),
            _ => None,
        };
        for ((number, case), (_, value)) in (0..).zip(cases).zip(wants) {
            let kept = case.and_then(|case| case.send);
            let goes = selected == Selected::Entered || done == Some(number);
            assert_eq!(kept, value.filter(|_| !goes), "case {number} of {selected:?}");
        }
        match selected {
            Selected::Entered => {
                assert!(patience.is_some(), "it should not wait");
                self.wait(&waiter, wants, until, patience)
            }
            Selected::Done(case, outcome) => {
                assert_eq!(waiter.leave(), None, "it took place, and was served as well");
                Some((case, outcome))
            }
            Selected::NotReady => {
                assert!(patience.is_none(), "it should wait");
                waiter.leave();
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// Sleeps, and takes the waiter out of all lines. Of all cases one gives something, or none.
    fn wait(
        &self,
        waiter: &Waiter<Value>,
        wants: &[Want],
        until: Moment,
        patience: Option<Span>,
    ) -> Option<(u32, Outcome<Value>)> {
        let woken = waiter.sleep(until);
        let is_late = Moment::now() >= until;
        assert!(!is_late || patience != Some(AGES), "not woken for {wants:?}");
        assert!(is_late || woken, "woken early");
        let served = waiter.leave();
        assert!(served.is_some() || !woken, "woken for nothing");
        let by = served.as_ref().map(|served| served.case);
        for (number, (at, value)) in (0..).zip(wants) {
            let back = self.channels[*at].withdraw(waiter, number);
            let due = value.filter(|_| by != Some(number));
            assert_eq!(back, due, "case {number} of {wants:?}, served {served:?}");
        }
        served.map(|served| (served.case, served.outcome))
    }

    /// A case took place.
    fn note(&mut self, (at, value): Want, outcome: Outcome<Value>) {
        match (value, outcome) {
            (Some(_), Outcome::Sent) => {
                self.sent[at] += 1;
                self.sends.retain(|&there| there != at || self.sent[at] < self.values);
            }
            (Some(mine), Outcome::Closed(back)) => {
                assert_eq!(back, Some(mine), "a closed channel keeps a value");
                self.sends.retain(|&there| there != at);
            }
            (None, Outcome::Received(value)) => {
                assert_eq!(value.channel, at, "a case tells of another channel");
                self.received.push(value);
            }
            (None, Outcome::Closed(None)) => self.receives.retain(|&there| there != at),
            (value, other) => panic!("a case with {value:?} ended with {other:?}"),
        }
    }
}

/// Some threads take part. Each sender has at most so many values for each channel; `is_race`: the
/// channels are closed at some time, and else when all is sent. Returns how many values went through.
///
/// # Panics
/// Where anything was lost or doubled, or somebody was not woken.
pub fn round(seed: u64, capacities: &[usize], values: u32, is_race: bool) -> usize {
    let _named = Named(seed);
    let mut dice = Dice::new(seed, 0);
    let channels: Vec<Line> = capacities.iter().map(|&n| Arc::new(Crossing::shared(n))).collect();
    let channels = &channels[..];
    let (senders, receivers, both) = (dice.roll(1..4), dice.roll(1..4), dice.roll(0..3));
    let count = senders + both + receivers;
    let barrier = &Barrier::new(usize::try_from(count + 1).unwrap());

    let results: Vec<(Vec<u32>, Vec<Value>)> = thread::scope(|scope| {
        let (busy, all_sent) = mpsc::channel();
        let people: Vec<_> = (0..count)
            .map(|number| {
                let busy = busy.clone();
                let mut person = Person::new(number, channels, seed, values);
                if number < senders + both {
                    person.sends = (0..channels.len()).collect();
                }
                if number >= senders {
                    person.receives = (0..channels.len()).collect();
                }
                scope.spawn(move || {
                    barrier.wait();
                    person.take_part(busy)
                })
            })
            .collect();
        drop(busy);
        let closing = Closing(channels);
        barrier.wait();
        if is_race {
            for channel in channels {
                thread::sleep(Duration::from_micros(dice.roll(0..800)));
                channel.close();
            }
        } else {
            // This ends when the last one has let go.
            let _ = all_sent.recv();
        }
        drop(closing);
        people.into_iter().map(|one| one.join().unwrap()).collect()
    });

    let mut due = Vec::new();
    for (sender, (sent, _)) in (0..senders + both).zip(&results) {
        assert!(is_race || sent.iter().all(|&count| count == values), "some were not sent");
        for (channel, &count) in sent.iter().enumerate() {
            due.extend((0..count).map(|serial| Value { channel, sender, serial }));
            for (_, received) in &results {
                let is_of = |value: &&Value| value.sender == sender && value.channel == channel;
                let serials = received.iter().filter(is_of).map(|value| value.serial);
                assert!(serials.is_sorted(), "channel {channel} has mixed up what {sender} sent");
            }
        }
    }
    for channel in channels {
        assert_eq!(channel.receive(&Wait::No), Err(Unreceived::Closed), "something was left");
    }
    due.sort_unstable();
    let mut all: Vec<Value> = results.into_iter().flat_map(|(_, received)| received).collect();
    all.sort_unstable();
    assert_eq!(all, due, "what was received is not what was sent");
    all.len()
}
