//! `queue.select`.

use std::ffi::c_int;

use super::args::{Callee, Text, out_of_memory};
use super::channel::Channel;
use super::crew::{self, Resumed};
use super::ffi::{CONTINUES, Fail, LUA_TBOOLEAN, LUA_TNIL, LUA_TTABLE, Outcome, PARK, State};
use super::wait;
use crate::core::channel::Wait;
use crate::core::clock::{Moment, Span};
use crate::core::crew::{End, Places};
use crate::core::random;
use crate::core::select::{Case, Selected, select as try_cases};
use crate::core::sync::Arc;
use crate::core::waiter::{Outcome as Ending, Waiter};
use crate::core::wire::Item;

const SELECT: Callee = Callee::function("select").parking(2);

/// The places of the arguments, and of a list of the channels: the script may change its own table
/// while the select waits.
const CASES: c_int = 1;
const LIMIT: c_int = 2;
const CHANNELS: c_int = 3;

type Cases = Vec<Option<Case<Item>>>;

/// `queue.select(cases, timeout_ms)`
pub fn select(l: State) -> Outcome {
    SELECT.argument(CASES).table(l)?;
    let limit = SELECT.limit(l, LIMIT)?;
    if CONTINUES {
        l.set_top(LIMIT);
        l.new_table(0, 0);
    }
    let count = check_cases(l)?;
    let mut cases = Cases::new();
    let mut order = Vec::new();
    if cases.try_reserve_exact(count as usize).is_err()
        || order.try_reserve_exact(count as usize).is_err()
    {
        return Err(out_of_memory(l));
    }
    if let Err(fail) = read_cases(l, count, &mut cases) {
        discard_unsent(l, &mut cases);
        return Err(fail);
    }
    order.extend(0..count);
    random::shuffle(&mut order);

    match try_cases(&mut cases, &order, &Wait::No) {
        Selected::Done(case, ending) => {
            discard_unsent(l, &mut cases);
            drop((cases, order));
            done(l, case, ending)
        }
        Selected::OutOfMemory => {
            discard_unsent(l, &mut cases);
            Err(out_of_memory(l))
        }
        _ if limit == Span::ZERO => {
            discard_unsent(l, &mut cases);
            timeout(l)
        }
        _ => wait(l, cases, &order, limit),
    }
}

/// What a parked `select` does when it is resumed.
pub fn resumed(l: State) -> Outcome {
    let Resumed::Ended(wait, end) = crew::resumed(l)? else { return Ok(PARK) };
    withdraw(l, &wait.places, &wait.waiter);
    drop(wait);
    ended(l, end)
}

/// Looks at all cases, so that a bad one is told before anything has happened, and lists their
/// channels. Returns how many there are.
fn check_cases(l: State) -> Result<u32, Fail> {
    let count = u32::try_from(l.raw_len(CASES)).unwrap_or(u32::MAX);
    for number in 1..=count {
        l.raw_get(CASES, number);
        let at = l.top();
        match l.kind(at) {
            LUA_TBOOLEAN if !l.to_bool(at) => {}
            LUA_TTABLE => {
                l.raw_get(at, 1);
                if l.object::<Channel>(-1).is_none() {
                    return Err(bad_case(l, number, "{channel, value}", l.top()));
                }
                l.raw_get(at, 2);
                if l.kind(-1) == LUA_TNIL {
                    let why = format_args!("case {number}: cannot send nil");
                    return Err(SELECT.argument(CASES).bad(l, why));
                }
                l.pop(1);
                l.replace(at);
                if l.object::<Channel>(at).is_some_and(Channel::is_timer) {
                    return Err(SELECT.fail(l, format_args!("select sends on a timer's channel")));
                }
            }
            _ if l.object::<Channel>(at).is_some() => {}
            _ => return Err(bad_case(l, number, "channel", at)),
        }
        l.raw_set(CHANNELS, number);
    }
    Ok(count)
}

fn bad_case(l: State, number: u32, what: &str, at: c_int) -> Fail {
    let got = l.type_name(at, Text::of);
    let why = format_args!("case {number}: {what} expected, got {got}");
    SELECT.argument(CASES).bad(l, why)
}

/// Reads the cases, which have been looked at, and stores what is to be sent.
fn read_cases(l: State, count: u32, cases: &mut Cases) -> Result<(), Fail> {
    for number in 1..=count {
        l.raw_get(CHANNELS, number);
        l.raw_get(CASES, number);
        let channel_at = l.top() - 1;
        let case = match l.object::<Channel>(channel_at) {
            None => None,
            Some(channel) => {
                let send = if l.kind(channel_at + 1) == LUA_TTABLE {
                    l.raw_get(channel_at + 1, 2);
                    let refuse = |why: &Text| {
                        let why = format_args!("case {number}: {why}");
                        SELECT.argument(CASES).bad(l, why)
                    };
                    let value = (channel_at + 2, l.kind(channel_at + 2));
                    Some(channel.stow(l, channel_at, value, refuse)?)
                } else {
                    None
                };
                Some(Case { channel: Arc::clone(&channel.core), send })
            }
        };
        cases.push(case);
        l.set_top(channel_at - 1);
    }
    Ok(())
}

/// Forgets the values that were not sent.
fn discard_unsent(l: State, cases: &mut Cases) {
    for (number, case) in (1..).zip(cases) {
        if let Some(item) = case.as_mut().and_then(|case| case.send.take()) {
            discard(l, number, item);
        }
    }
}

/// Forgets a value that the case of this number, counted from 1, was to send.
fn discard(l: State, number: u32, item: Item) {
    l.raw_get(CHANNELS, number);
    let at = l.top();
    if let Some(channel) = l.object::<Channel>(at) {
        channel.discard(l, at, item);
    }
    l.pop(1);
}

/// Waits, as a job or by blocking the thread.
fn wait(l: State, mut cases: Cases, order: &[u32], limit: Span) -> Outcome {
    let post = crew::current(l);
    let prepared = match &post {
        Some(post) => post.sit(l).map(|waiter| (0, waiter)),
        None => wait::prepare(l),
    };
    let (nothing, waiter) = match prepared {
        Ok(prepared) => prepared,
        Err(fail) => {
            discard_unsent(l, &mut cases);
            return Err(fail);
        }
    };
    let how = match post {
        None if limit == Span::FOREVER => Wait::EnterFed(&waiter),
        _ => Wait::Enter(&waiter),
    };
    match try_cases(&mut cases, order, &how) {
        Selected::Entered => {
            let channels = cases.into_iter().map(|case| case.map(|case| case.channel)).collect();
            let places = Places::Select(channels);
            if let Some(post) = post {
                return post.park(waiter, places, limit);
            }
            let (end, hooks) =
                wait::block(l, nothing, &waiter, places.is_prompt(), Moment::deadline(limit));
            withdraw(l, &places, &waiter);
            if let Err(fail) = hooks {
                if let End::Served(served) = end {
                    places.take_back(served, |case, item| discard(l, case + 1, item));
                }
                return Err(fail);
            }
            drop((places, waiter));
            ended(l, end)
        }
        other => {
            waiter.leave();
            discard_unsent(l, &mut cases);
            drop((cases, waiter, post));
            match other {
                Selected::Done(case, ending) => done(l, case, ending),
                Selected::Endless => Err(deadlock(l)),
                Selected::OutOfMemory => Err(out_of_memory(l)),
                Selected::NotReady | Selected::Entered => timeout(l),
            }
        }
    }
}

/// Takes the waiter out of all lines, and forgets the values that it was to send.
fn withdraw(l: State, places: &Places<Item>, waiter: &Waiter<Item>) {
    places.withdraw(waiter, |case, _, item| discard(l, case + 1, item));
}

fn ended(l: State, end: End<Item>) -> Outcome {
    match end {
        End::Timeout => timeout(l),
        End::Served(served) => done(l, served.case, served.outcome),
    }
}

fn deadlock(l: State) -> Fail {
    SELECT.fail(l, format_args!("deadlock: select can never complete"))
}

fn timeout(l: State) -> Outcome {
    l.push_nil();
    l.push_str("timeout");
    Ok(2)
}

/// What a case that took place gives.
fn done(l: State, case: u32, ending: Ending<Item>) -> Outcome {
    let number = case + 1;
    match ending {
        Ending::Sent => {
            l.push_count(number.into());
            l.push_bool(true);
            Ok(2)
        }
        Ending::Received(item) => {
            l.raw_get(CHANNELS, number);
            let at = l.top();
            l.push_count(number.into());
            if let Some(channel) = l.object::<Channel>(at) {
                channel.push(l, at, item)?;
            }
            l.push_bool(true);
            Ok(3)
        }
        Ending::Closed(None) => {
            l.push_count(number.into());
            l.push_nil();
            l.push_bool(false);
            Ok(3)
        }
        Ending::Closed(Some(item)) => {
            discard(l, number, item);
            Err(SELECT.fail(l, format_args!("send on closed channel")))
        }
        Ending::Endless | Ending::Woken => Err(deadlock(l)),
    }
}
