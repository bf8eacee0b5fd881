//! Every order in which threads can meet at the core's locks, tried out by a model checker:
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release --test loom`
//!
//! Where somebody is never woken, the checker finds that all threads sleep, and fails. Two threads
//! are checked in full: each of their interleavings is run. Three are run with at most
//! [`PREEMPTIONS`] switches away from a thread that could have gone on; switches where one has to
//! wait are free. `LOOM_MAX_PREEMPTIONS=n` sets another bound for all; with 100, which is none, they
//! take a minute or two.
//!
//! The checker knows no time. A wait with a limit is one whose time is up already: it may come
//! between any two steps of the others, as it may in earnest.

#![cfg(loom)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use loom::model::Builder;
use loom::thread;

use queue::core::channel::{Channel, Crossing, Unreceived, Unsent, Wait};
use queue::core::clock::Moment;
use queue::core::crew::{Crew, End, Places, Wait as Parked};
use queue::core::parker::{Member, Parker};
use queue::core::poll::Signal;
use queue::core::select::{Case, Selected, select};
use queue::core::sync::Arc;
use queue::core::waiter::{Outcome, Waiter};

type Line = Arc<Crossing<u32>>;

/// Bounds the runs with three threads. Two suffice for most mistakes with locks there are.
const PREEMPTIONS: usize = 3;

const PAST: Moment = Moment::from_nanos(0);

/// Runs all interleavings of two threads.
fn check_all(body: impl Fn() + Sync + Send + 'static) {
    Builder::new().check(body);
}

/// Runs the interleavings of three threads with few preemptions.
fn check_most(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(body);
}

fn line(capacity: usize) -> Line {
    Arc::new(Crossing::shared(capacity))
}

/// Two channels of a kind in the order of their addresses, which is that of their locks: all runs of a
/// model have to be alike.
fn two(capacity: usize) -> (Line, Line) {
    let (one, other) = (line(capacity), line(capacity));
    if Arc::as_ptr(&one) < Arc::as_ptr(&other) { (one, other) } else { (other, one) }
}

/// As selects and jobs know it.
fn any_kind(channel: &Line) -> Arc<Channel<u32>> {
    channel.clone()
}

fn ticket() -> Waiter<u32> {
    Arc::new(Parker::new()).sit(None).unwrap()
}

/// Sends, and waits for as long as it takes.
fn send(channel: &Line, value: u32) -> Outcome<u32> {
    send_until(channel, value, Moment::NEVER).unwrap()
}

/// Sends until a moment. The value comes back as an error where it has passed.
fn send_until(channel: &Line, value: u32, until: Moment) -> Result<Outcome<u32>, u32> {
    let waiter = ticket();
    match channel.send(value, &Wait::Enter(&waiter)) {
        Ok(true) => return Ok(Outcome::Sent),
        Ok(false) => {}
        Err(Unsent::Closed(value)) => return Ok(Outcome::Closed(Some(value))),
        Err(other) => panic!("{other:?}"),
    }
    let _ = waiter.sleep(until);
    let served = waiter.leave();
    let back = channel.withdraw(&waiter, 0);
    match served {
        Some(served) => {
            assert_eq!(back, None, "it was served, and its value comes back as well");
            Ok(served.outcome)
        }
        None => Err(back.expect("it was not served, and its value does not come back")),
    }
}

/// Receives, and waits for as long as it takes.
fn receive(channel: &Line) -> Option<u32> {
    receive_until(channel, Moment::NEVER).unwrap()
}

/// Receives until a moment; an error tells that it has passed.
fn receive_until(channel: &Line, until: Moment) -> Result<Option<u32>, ()> {
    let waiter = ticket();
    match channel.receive(&Wait::Enter(&waiter)) {
        Ok(Some(value)) => return Ok(Some(value)),
        Ok(None) => {}
        Err(Unreceived::Closed) => return Ok(None),
        Err(other) => panic!("{other:?}"),
    }
    let _ = waiter.sleep(until);
    let served = waiter.leave();
    assert_eq!(channel.withdraw(&waiter, 0), None);
    match served.map(|served| served.outcome) {
        None => Err(()),
        Some(Outcome::Received(value)) => Ok(Some(value)),
        Some(Outcome::Closed(None)) => Ok(None),
        Some(other) => panic!("a receiver was served {other:?}"),
    }
}

/// A select that waits until a moment. Gives the case that took place, and sees that all other
/// values come back.
fn any_until(wants: &[(&Line, Option<u32>)], until: Moment) -> Option<(u32, Outcome<u32>)> {
    let waiter = ticket();
    let case = |&(channel, send): &(&Line, _)| Some(Case { channel: any_kind(channel), send });
    let mut cases: Vec<_> = wants.iter().map(case).collect();
    let order: Vec<u32> = (0..).take(wants.len()).collect();
    let (done, entered) = match select(&mut cases, &order, &Wait::Enter(&waiter)) {
        Selected::Done(case, outcome) => (Some((case, outcome)), false),
        Selected::Entered => (None, true),
        other => panic!("{other:?}"),
    };
    let done = if entered {
        let _ = waiter.sleep(until);
        waiter.leave().map(|served| (served.case, served.outcome))
    } else {
        done
    };
    for (number, (case, (channel, value))) in (0..).zip(cases.iter_mut().zip(wants)) {
        let kept = case.as_mut().and_then(|case| case.send.take());
        let back = if entered { channel.withdraw(&waiter, number) } else { kept };
        let is_done = done.as_ref().is_some_and(|(done, _)| *done == number);
        assert_eq!(back, value.filter(|_| !is_done), "case {number}");
    }
    done
}

fn any(wants: &[(&Line, Option<u32>)]) -> (u32, Outcome<u32>) {
    any_until(wants, Moment::NEVER).unwrap()
}

fn spawn<R: 'static>(
    channel: &Line,
    body: impl FnOnce(&Line) -> R + 'static,
) -> thread::JoinHandle<R> {
    let channel = Arc::clone(channel);
    thread::spawn(move || body(&channel))
}

/// Both of them, in either order.
fn assert_one_and_two(received: [Option<u32>; 2]) {
    assert!(received == [Some(1), Some(2)] || received == [Some(2), Some(1)], "{received:?}");
}

// --- sends and receives ------------------------------------------------------------------------

#[test]
fn a_send_and_a_receive_always_meet() {
    for capacity in 0..2 {
        check_all(move || {
            let channel = line(capacity);
            let sender = spawn(&channel, |channel| (send(channel, 1), send(channel, 2)));
            assert_eq!((receive(&channel), receive(&channel)), (Some(1), Some(2)));
            assert_eq!(sender.join().unwrap(), (Outcome::Sent, Outcome::Sent));
            assert!(channel.is_empty());
        });
    }
}

#[test]
fn two_senders_reach_one_receiver_once_each() {
    for capacity in 0..2 {
        check_most(move || {
            let channel = line(capacity);
            let senders = [1, 2].map(|value| spawn(&channel, move |channel| send(channel, value)));
            let received = [receive(&channel), receive(&channel)];
            assert_one_and_two(received);
            for sender in senders {
                assert_eq!(sender.join().unwrap(), Outcome::Sent);
            }
        });
    }
}

#[test]
fn two_receivers_share_what_comes() {
    check_most(|| {
        let channel = line(0);
        let receivers = [(), ()].map(|()| spawn(&channel, receive));
        assert_eq!(send(&channel, 1), Outcome::Sent);
        assert_eq!(send(&channel, 2), Outcome::Sent);
        let received = receivers.map(|one| one.join().unwrap());
        assert_one_and_two(received);
    });
}

// --- ends --------------------------------------------------------------------------------------

#[test]
fn a_close_that_races_a_send_loses_nothing_and_wakes_all() {
    for capacity in 0..2 {
        check_most(move || {
            let channel = line(capacity);
            let sender = spawn(&channel, |channel| send(channel, 1));
            let closer = spawn(&channel, |channel| channel.close());
            let received = receive(&channel);
            closer.join().unwrap();
            // With room for it a value is sent before anyone takes it; then it is still there.
            let left = channel.receive(&Wait::No).ok().flatten();
            match sender.join().unwrap() {
                Outcome::Sent => assert_eq!(received.or(left), Some(1)),
                Outcome::Closed(back) => {
                    assert_eq!((received, left, back), (None, None, Some(1)));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(channel.receive(&Wait::No), Err(Unreceived::Closed));
        });
    }
}

#[test]
fn a_stop_takes_out_what_nobody_else_has() {
    check_most(|| {
        let channel = line(1);
        let sender = spawn(&channel, |channel| send(channel, 1));
        let stopper = spawn(&channel, |channel| channel.stop());
        let received = receive(&channel);
        let drained = stopper.join().unwrap();
        match sender.join().unwrap() {
            Outcome::Sent => assert_eq!(received.is_some(), drained.is_empty()),
            Outcome::Closed(Some(1)) => assert!(received.is_none() && drained.is_empty()),
            other => panic!("{other:?}"),
        }
        assert_eq!(channel.receive(&Wait::No), Err(Unreceived::Closed));
    });
}

#[test]
fn what_is_put_back_is_drained_or_comes_back_again() {
    check_all(|| {
        let channel = line(1);
        assert_eq!(channel.send(1, &Wait::No), Ok(true));
        let stopper = spawn(&channel, |channel| channel.stop());
        let value = channel.receive(&Wait::No).ok().flatten();
        let refused = value.and_then(|value| channel.put_back(value).err());
        let drained = stopper.join().unwrap();
        assert_eq!(refused.into_iter().chain(drained).collect::<Vec<_>>(), [1]);
        assert!(channel.is_empty());
    });
}

// --- what is lent --------------------------------------------------------------------------------

/// A channel with the values from 1 on, of which the first is received and the others are lent.
fn lent(capacity: usize, values: u32) -> Line {
    let channel = Arc::new(Crossing::shared(capacity));
    (1..=values).for_each(|value| channel.try_send(value).unwrap());
    assert_eq!(channel.try_receive(), Ok(1));
    channel
}

#[test]
fn what_is_lent_comes_before_what_is_sent_later() {
    check_all(|| {
        let channel = lent(2, 2);
        let sender = spawn(&channel, |channel| [channel.try_send(3), channel.try_send(4)]);
        let early = [channel.try_receive(), channel.try_receive(), channel.try_receive()];
        let sent = sender.join().unwrap();
        assert_eq!(sent[0], Ok(()), "there was room for one");
        let late = std::iter::from_fn(|| channel.try_receive().ok());
        let received: Vec<_> = early.into_iter().filter_map(Result::ok).chain(late).collect();
        assert_eq!(received, [2, 3, 4][..if sent[1].is_ok() { 3 } else { 2 }]);
        assert!(channel.is_empty());
    });
}

#[test]
fn two_receivers_share_what_is_lent() {
    check_most(|| {
        let channel = lent(3, 3);
        let other = spawn(&channel, |channel| (channel.try_receive(), channel.try_receive()));
        let sender = spawn(&channel, |channel| channel.try_send(4));
        let mine = channel.try_receive();
        let theirs = other.join().unwrap();
        assert_eq!(sender.join().unwrap(), Ok(()));
        let rest: Vec<_> = std::iter::from_fn(|| channel.try_receive().ok()).collect();
        let theirs: Vec<_> = [theirs.0, theirs.1].into_iter().filter_map(Result::ok).collect();
        assert!(theirs.is_sorted() && rest.is_sorted());
        let mut all: Vec<_> = mine.ok().into_iter().chain(theirs).chain(rest).collect();
        all.sort_unstable();
        assert_eq!(all, [2, 3, 4]);
    });
}

#[test]
fn what_one_receiver_takes_along_is_there_for_another() {
    check_all(|| {
        let channel = lent(4, 2);
        [3, 4].into_iter().for_each(|value| channel.try_send(value).unwrap());
        let other = spawn(&channel, |channel| channel.try_receive().unwrap());
        let mine = [(); 2].map(|()| channel.try_receive().unwrap());
        assert!(mine.is_sorted());
        assert_eq!(other.join().unwrap() + mine[0] + mine[1], 2 + 3 + 4);
    });
}

#[test]
fn who_waits_to_send_has_the_room_of_what_was_lent() {
    check_all(|| {
        let channel = lent(2, 2);
        channel.try_send(3).unwrap();
        let sender = spawn(&channel, |channel| match channel.try_send(4) {
            Ok(()) => Outcome::Sent,
            Err(Unsent::Full(value)) => send(channel, value),
            Err(other) => panic!("{other:?}"),
        });
        assert_eq!([channel.try_receive(), channel.try_receive()], [Ok(2), Ok(3)]);
        assert_eq!(receive(&channel), Some(4));
        assert_eq!(sender.join().unwrap(), Outcome::Sent);
        assert!(channel.is_empty());
    });
}

#[test]
fn a_stop_takes_back_what_is_lent() {
    check_all(|| {
        let channel = lent(4, 4);
        let stopper = spawn(&channel, |channel| channel.stop());
        let mine = [channel.try_receive(), channel.try_receive()];
        let drained = stopper.join().unwrap();
        let all: Vec<_> = mine.into_iter().filter_map(Result::ok).chain(drained).collect();
        assert_eq!(all, [2, 3, 4]);
        assert_eq!(channel.try_receive(), Err(Unreceived::Closed));
    });
}

#[test]
fn a_close_leaves_what_is_lent() {
    check_all(|| {
        let channel = lent(3, 3);
        let closer = spawn(&channel, |channel| (channel.close(), channel.len()));
        let received = [(); 3].map(|()| channel.try_receive());
        assert!(received[..2] == [Ok(2), Ok(3)] && received[2].is_err());
        assert!(closer.join().unwrap().1 <= 2);
        assert_eq!(channel.try_receive(), Err(Unreceived::Closed));
    });
}

#[test]
fn a_select_takes_what_is_lent_first() {
    check_all(|| {
        let channel = lent(3, 3);
        let selector = spawn(&channel, |channel| any(&[(channel, None)]));
        let mine = channel.try_receive().unwrap();
        let (_, theirs) = selector.join().unwrap();
        assert_eq!(theirs, Outcome::Received(if mine == 2 { 3 } else { 2 }));
        assert!(channel.is_empty());
    });
}

// --- time --------------------------------------------------------------------------------------

#[test]
fn a_receiver_whose_time_is_up_swallows_nothing() {
    for capacity in 0..2 {
        check_most(move || {
            let channel = line(capacity);
            let sender = spawn(&channel, |channel| send(channel, 1));
            let late = spawn(&channel, |channel| receive_until(channel, PAST));
            // Only one of the two has it, and somebody has.
            let mine = receive_until(&channel, PAST).ok().flatten();
            let theirs = late.join().unwrap().ok().flatten();
            let rest = if mine.or(theirs).is_none() { receive(&channel) } else { None };
            assert_eq!(mine.into_iter().chain(theirs).chain(rest).collect::<Vec<_>>(), [1]);
            assert_eq!(sender.join().unwrap(), Outcome::Sent);
            assert_eq!(channel.receive(&Wait::No), Err(Unreceived::Empty));
        });
    }
}

#[test]
fn a_sender_whose_time_is_up_sends_or_has_its_value_back() {
    check_most(|| {
        let channel = line(0);
        let sender = spawn(&channel, |channel| send_until(channel, 1, PAST));
        let other = spawn(&channel, |channel| channel.receive(&Wait::No));
        let mine = channel.receive(&Wait::No);
        let theirs = other.join().unwrap();
        let received = mine.ok().flatten().or(theirs.ok().flatten());
        match sender.join().unwrap() {
            Ok(Outcome::Sent) => assert_eq!(received, Some(1)),
            Err(1) => assert_eq!(received, None),
            other => panic!("{other:?}"),
        }
        assert_eq!(channel.receive(&Wait::No), Err(Unreceived::Empty));
    });
}

// --- selects -----------------------------------------------------------------------------------

#[test]
fn of_two_senders_a_select_meets_one() {
    check_most(|| {
        let (a, b) = two(0);
        let senders = [(&a, 1), (&b, 2)]
            .map(|(channel, value)| spawn(channel, move |channel| send(channel, value)));
        let (case, outcome) = any(&[(&a, None), (&b, None)]);
        assert_eq!(outcome, Outcome::Received(case + 1));
        // The other one waits still.
        assert_eq!(receive(if case == 0 { &b } else { &a }), Some(2 - case));
        for sender in senders {
            assert_eq!(sender.join().unwrap(), Outcome::Sent);
        }
    });
}

#[test]
fn a_select_meets_a_sender_or_a_close() {
    check_most(|| {
        let (a, b) = two(1);
        let sender = spawn(&a, |channel| send(channel, 1));
        let closer = spawn(&b, |channel| channel.close());
        match any(&[(&a, None), (&b, None)]) {
            (0, Outcome::Received(1)) => {}
            (1, Outcome::Closed(None)) => assert_eq!(receive(&a), Some(1)),
            other => panic!("{other:?}"),
        }
        assert_eq!(sender.join().unwrap(), Outcome::Sent);
        closer.join().unwrap();
        assert!(a.is_empty());
    });
}

#[test]
fn a_select_that_sends_meets_a_receiver_or_a_close() {
    check_most(|| {
        let (a, b) = two(0);
        let receiver = spawn(&a, receive);
        let closer = spawn(&b, |channel| channel.close());
        match any(&[(&a, Some(1)), (&b, Some(2))]) {
            (0, Outcome::Sent) => {}
            (1, Outcome::Closed(Some(2))) => assert_eq!(send(&a, 1), Outcome::Sent),
            other => panic!("{other:?}"),
        }
        assert_eq!(receiver.join().unwrap(), Some(1));
        closer.join().unwrap();
    });
}

#[test]
fn two_selects_meet_at_one_channel_and_no_lock_is_in_the_way() {
    check_all(|| {
        let (a, b) = two(0);
        let theirs = {
            let (a, b) = (Arc::clone(&a), Arc::clone(&b));
            thread::spawn(move || any(&[(&b, Some(2)), (&a, None)]))
        };
        let mine = any(&[(&a, Some(1)), (&b, None)]);
        let theirs = theirs.join().unwrap();
        match mine {
            (0, Outcome::Sent) => assert_eq!(theirs, (1, Outcome::Received(1))),
            (1, Outcome::Received(2)) => assert_eq!(theirs, (0, Outcome::Sent)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn two_selects_that_send_and_receive_at_the_same_channel_meet() {
    check_all(|| {
        let channel = line(0);
        let theirs = spawn(&channel, |channel| any(&[(channel, Some(2)), (channel, None)]));
        let mine = any(&[(&channel, Some(1)), (&channel, None)]);
        match (mine, theirs.join().unwrap()) {
            ((0, Outcome::Sent), (1, Outcome::Received(1)))
            | ((1, Outcome::Received(2)), (0, Outcome::Sent)) => {}
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_select_whose_time_is_up_has_sent_one_value_or_none() {
    check_most(|| {
        let (a, b) = two(0);
        let receivers = [&a, &b].map(|one| spawn(one, |channel| channel.receive(&Wait::No)));
        let done = any_until(&[(&a, Some(1)), (&b, Some(2))], PAST);
        let received = receivers.map(|one| one.join().unwrap().ok().flatten());
        match done {
            None => assert_eq!(received, [None, None]),
            Some((0, Outcome::Sent)) => assert_eq!(received, [Some(1), None]),
            Some((1, Outcome::Sent)) => assert_eq!(received, [None, Some(2)]),
            other => panic!("{other:?}"),
        }
    });
}

// --- timers ------------------------------------------------------------------------------------

#[test]
fn a_timers_last_value_comes_with_the_close_or_not_at_all() {
    for stops in [false, true] {
        check_most(move || {
            let channel = Arc::new(Crossing::timer(true));
            let timer = spawn(&channel, |channel| channel.feed_last(7));
            let ender = spawn(&channel, move |channel| {
                if stops { channel.stop() } else { VecDeque::from(vec![0; channel.close().into()]) }
            });
            let waiter = ticket();
            // No wait is ever in vain: the timer has not sent yet, or the channel is closed.
            let received = match channel.receive(&Wait::EnterFed(&waiter)) {
                Ok(Some(value)) => Some(value),
                Err(Unreceived::Closed) => None,
                Ok(None) => {
                    assert!(waiter.sleep(Moment::NEVER));
                    match waiter.leave().map(|served| served.outcome) {
                        Some(Outcome::Received(value)) => Some(value),
                        Some(Outcome::Closed(None)) => None,
                        other => panic!("{other:?}"),
                    }
                }
                Err(other) => panic!("{other:?}"),
            };
            timer.join().unwrap();
            let result = ender.join().unwrap();
            let rest = channel.receive(&Wait::No).ok().flatten();
            if stops {
                assert!(received.is_none() || result.is_empty(), "received and drained");
                assert_eq!(rest, None);
            } else if !result.is_empty() {
                // The close came first.
                assert_eq!((received, rest), (None, None));
            } else {
                assert_eq!(received, Some(7), "the value came first, and the close with it");
            }
            assert_eq!(channel.receive(&Wait::No), Err(Unreceived::Closed));
            assert!(channel.is_empty() && !channel.is_fed());
        });
    }
}

#[test]
fn a_timer_that_sleeps_is_woken_by_a_close() {
    check_all(|| {
        let channel = Arc::new(Crossing::timer(true));
        let timer = spawn(&channel, |channel| {
            let slept = channel.sleep_open(Moment::NEVER);
            (slept, channel.feed(1))
        });
        assert!(channel.close());
        assert_eq!(timer.join().unwrap(), (false, false));
    });
}

#[test]
fn a_tick_is_received_or_dropped_or_left() {
    check_all(|| {
        let channel = Arc::new(Crossing::timer(true));
        let timer = spawn(&channel, |channel| (channel.feed(1), channel.feed(2)));
        let first = receive(&channel).unwrap();
        assert_eq!(timer.join().unwrap(), (true, true));
        let rest = channel.receive(&Wait::No);
        match first {
            // The second was dropped where the first lay there still.
            1 => assert!(rest == Ok(Some(2)) || rest == Err(Unreceived::Empty)),
            other => panic!("{other} came first"),
        }
    });
}

// --- signals -----------------------------------------------------------------------------------

struct Lamp(AtomicBool);

impl Signal for Lamp {
    fn set(&self, on: bool) {
        assert_ne!(self.0.swap(on, Ordering::Relaxed), on, "it was told the same");
    }
}

#[test]
fn a_lamp_shows_what_is_there_in_the_end() {
    check_most(|| {
        let channel = line(1);
        let lamp = Arc::new(Lamp(true.into()));
        let signal: Arc<dyn Signal> = lamp.clone();
        channel.add_signal(signal).unwrap();
        let sender =
            spawn(&channel, |channel| (send_until(channel, 1, PAST), send_until(channel, 2, PAST)));
        let receiver = spawn(&channel, |channel| channel.receive(&Wait::No));
        let _ = channel.receive(&Wait::No);
        let _ = (sender.join().unwrap(), receiver.join().unwrap());
        assert_eq!(lamp.0.load(Ordering::Relaxed), channel.is_ready());
    });
}

// --- jobs --------------------------------------------------------------------------------------

fn member_of(group: u32) -> Member {
    Member { group, number: 0 }
}

/// A crew of one job, and the ticket with which that waits.
fn crew_of_one() -> (Crew<u32>, u32, Waiter<u32>) {
    let mut crew = Crew::new(&Arc::new(Parker::new())).unwrap();
    let number = crew.hire().unwrap();
    let waiter = crew.sit(number).unwrap();
    (crew, number, waiter)
}

#[test]
fn a_group_that_sleeps_is_woken_for_its_member() {
    check_all(|| {
        let channel = line(0);
        let parker = Arc::new(Parker::new());
        let group = parker.open_group().unwrap();
        let waiter = parker.sit(Some(member_of(group))).unwrap();
        let sender = spawn(&channel, |channel| send(channel, 1));
        if channel.receive(&Wait::Enter(&waiter)) == Ok(None) {
            parker.sleep(group, Moment::NEVER);
            let mut woken = parker.woken(group);
            assert_eq!((woken.pop(), woken.pop()), (Some(0), None));
            let (served, _) = woken.collect(&waiter).unwrap();
            assert_eq!(served.outcome, Outcome::Received(1));
        }
        assert_eq!(sender.join().unwrap(), Outcome::Sent);
    });
}

#[test]
fn a_pump_that_waits_as_a_job_is_woken_for_its_members() {
    check_all(|| {
        let channel = line(0);
        let parker = Arc::new(Parker::new());
        let (outer, inner) = (parker.open_group().unwrap(), parker.open_group().unwrap());
        let waiter = parker.sit(Some(member_of(inner))).unwrap();
        let sender = spawn(&channel, |channel| send(channel, 1));
        if channel.receive(&Wait::Enter(&waiter)) == Ok(None) && !parker.has_woken(inner) {
            // The member may be served here, before the pump waits.
            let pump = parker.sit(Some(member_of(outer))).unwrap();
            parker.park_pump(inner, Some(&pump));
            parker.sleep(outer, Moment::NEVER);
            assert_eq!(pump.leave().map(|served| served.outcome), Some(Outcome::Woken));
            parker.park_pump(inner, None);
            assert!(parker.has_woken(inner));
        }
        assert_eq!(sender.join().unwrap(), Outcome::Sent);
    });
}

#[test]
fn a_job_whose_time_is_up_has_received_or_leaves_the_value_to_others() {
    check_all(|| {
        let channel = line(1);
        let (mut crew, number, waiter) = crew_of_one();
        let sender = spawn(&channel, |channel| send(channel, 1));
        let mut received = match channel.receive(&Wait::Enter(&waiter)) {
            Ok(Some(value)) => Some(value),
            Ok(None) => {
                let places = Places::Channel(any_kind(&channel));
                crew.park(number, Parked { waiter, places, deadline: PAST });
                let mut received = None;
                // The end of the wait comes in this turn or, where it was served at the last
                // moment, in the next; and it comes once.
                let mut ends = 0;
                while ends == 0 {
                    crew.begin_turn();
                    while let Some(ready) = crew.next_ready() {
                        assert_eq!(ready, number);
                        let (wait, end) = crew.fetch(number).unwrap();
                        wait.places.withdraw(&wait.waiter, |_, _, value| panic!("{value}"));
                        if let End::Served(served) = end {
                            received = served.outcome.into_value();
                        }
                        ends += 1;
                    }
                }
                crew.begin_turn();
                assert_eq!(crew.next_ready(), None, "it was woken for a wait that is over");
                received
            }
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(sender.join().unwrap(), Outcome::Sent);
        received = received.or_else(|| channel.receive(&Wait::No).ok().flatten());
        assert_eq!(received, Some(1));
        assert!(channel.is_empty());
        crew.dismiss(number);
        crew.close();
    });
}

#[test]
fn a_crew_that_closes_gives_values_back() {
    check_all(|| {
        let channel = line(1);
        let (mut crew, number, waiter) = crew_of_one();
        assert_eq!(channel.receive(&Wait::Enter(&waiter)), Ok(None));
        let places = Places::Channel(any_kind(&channel));
        crew.park(number, Parked { waiter, places, deadline: Moment::NEVER });
        let sender = spawn(&channel, |channel| send(channel, 1));
        crew.close();
        assert_eq!(sender.join().unwrap(), Outcome::Sent);
        assert_eq!(channel.receive(&Wait::No), Ok(Some(1)));
    });
}
