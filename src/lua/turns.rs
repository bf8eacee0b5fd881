//! The steps of the pump for concurrent jobs, which is in `front.lua`.
//!
//! A turn first resumes each job that can go on, once; then it starts pending jobs while there is
//! room in flight. `advance` tells what became of the job that ran last and says which comes next.
//! What the pump that is inside has done so far is in `flight.rs`.

use std::ffi::c_int;
use std::rc::Rc;

use super::args::out_of_memory;
use super::crew::{self, Post, Resumed};
use super::ffi::{Came, Fail, MUST_TRY, Outcome, PARK, State, Token};
use super::flight::Flight;
use super::pump;
use super::queue::Queue;
use super::wait;
use crate::core::clock::Moment;
use crate::core::crew::{Places, Wait};
use crate::core::scheduler::Next;
use crate::core::waiter::Outcome as Ending;

/// Coroutines that are kept for later jobs when a pump ends with nothing in flight.
const KEPT_COROUTINES: usize = 64;

/// Jobs that are resumed before the pump is back in Lua once, where hooks get their turn.
const MOST_STEPS: usize = 64;

/// Where the coroutine lies that is to go on.
const COROUTINE: c_int = 4;

fn parts(l: &State) -> Result<(&Queue, &Flight), Fail> {
    let parts = l.trusted::<Queue>(1).and_then(|queue| Some((queue, queue.flight.as_ref()?)));
    // They are there unless a script called a finalizer by hand.
    parts.ok_or_else(|| pump::RUN.argument(1).expected(*l, "queue"))
}

/// `land(q)`: the pump leaves → attempts that ended
pub fn land(l: State) -> Outcome {
    let (queue, flight) = parts(&l)?;
    let turn = flight.turn.take();
    l.push_values(1);
    let table = l.top();
    loop {
        let spare = flight.crew.borrow_mut().retire(KEPT_COROUTINES);
        let Some(coroutine) = spare else { break };
        queue.values.free(l, table, coroutine);
    }
    l.push_count(turn.ended);
    Ok(1)
}

/// `advance(q, hand, number, ok, …)` tells how the coroutine of job `number` came back from a resume;
/// with `q` and `hand` alone there was none. Resumes jobs one after the other, where nobody is to be
/// told of what they return → what else there is to do: a coroutine and its number, for a job that
/// goes on; these with a function and its args, for one that starts (the coroutine is nil where it
/// has none yet); nothing, at the end of the turn; or nil and a word: `"again"`, which asks for a
/// further call; `"expired"`; `"raised"` or `"failed"`, nil, dead coroutine, error; `"outward"`, nil,
/// number, values
pub fn advance(l: State) -> Outcome {
    if l.top() > 2 {
        let (queue, flight) = parts(&l)?;
        let came = match l.token(5) {
            _ if !l.to_bool(4) => Came::Raised,
            Some(token) => Came::Token(token),
            None => Came::Values(l.top() - 4),
        };
        if let Some(results) = came_back(l, queue, flight, l.to_slot(3), came)? {
            return Ok(results);
        }
    }
    let (mut queue, mut flight) = parts(&l)?;
    for _ in 0..MOST_STEPS {
        let (number, arguments) = match next(l, queue, flight)? {
            Step::Resume(number, arguments) => (number, arguments),
            Step::Tell(results) => return Ok(results),
            // The next turn follows at once where someone can go on.
            Step::End if flight.turn.get().is_poll || flight.begin_turn() == 0 => return Ok(0),
            Step::End => continue,
        };
        let is_told = queue.on_success.get() != 0;
        let came = if is_told { Came::Not } else { l.resume(COROUTINE, arguments) };
        if came == Came::Not {
            l.push_value(COROUTINE);
            l.push_count(number.into());
            for argument in 1..=arguments {
                l.push_value(COROUTINE + argument);
            }
            return Ok(2 + arguments);
        }
        // That ran scripts, so they are looked up anew.
        (queue, flight) = parts(&l)?;
        if let Some(results) = came_back(l, queue, flight, number, came)? {
            return Ok(results);
        }
    }
    l.push_nil();
    l.push_str("again");
    Ok(2)
}

/// Notes how the coroutine of job `number` came back; its values or its error are on the top. `None`
/// where that is all, else what there is to tell the pump.
fn came_back(
    l: State,
    queue: &Queue,
    flight: &Flight,
    number: u32,
    came: Came,
) -> Result<Option<c_int>, Fail> {
    flight.came_back();
    match came {
        Came::Token(Token::Park) => {
            if MUST_TRY {
                flight.crew.borrow_mut().abort_under(number);
            }
        }
        Came::Not => {}
        Came::Token(Token::Done) => finished(l, queue, flight, number),
        Came::Raised => return raised(l, queue, flight, number).map(Some),
        Came::Values(0) => {
            let noted = flight.crew.borrow_mut().yield_turn(number);
            if noted.is_err() {
                return Err(out_of_memory(l));
            }
        }
        Came::Values(count) => return outward(l, flight, number, count).map(Some),
    }
    Ok(None)
}

fn finished(l: State, queue: &Queue, flight: &Flight, number: u32) {
    let job = flight.crew.borrow().job(number);
    let now = queue.now();
    let held = queue.scheduler.borrow_mut().succeed(job, now).unwrap_or_default();
    flight.dismiss(number);
    l.push_values(1);
    queue.free(l, l.top(), held);
}

/// The job raised what is on the top: its coroutine is dead.
fn raised(l: State, queue: &Queue, flight: &Flight, number: u32) -> Outcome {
    let error = l.top();
    let (_, hand) = pump::pumped(&l)?;
    let (job, coroutine) = {
        let mut crew = flight.crew.borrow_mut();
        (crew.job(number), crew.lose(number))
    };
    hand.hold(job);
    flight.count_end();
    let now = queue.now();
    let verdict = queue.scheduler.borrow_mut().raise(job, now);
    l.push_nil();
    l.push_str(pump::outcome_of(verdict));
    l.push_nil();
    l.push_values(1);
    let table = l.top();
    queue.values.take(l, table, coroutine);
    l.remove(table);
    l.push_value(error);
    Ok(5)
}

/// The job yielded the `count` values on the top: they go to who resumed the pump.
fn outward(l: State, flight: &Flight, number: u32, count: c_int) -> Outcome {
    // Whatever wait it still has, an error has ended its call.
    flight.crew.borrow_mut().abort_all(number);
    let mut turn = flight.turn.get();
    (turn.current, turn.is_outward) = (Some(number), true);
    flight.turn.set(turn);
    let before = l.top() - count;
    l.new_table(count, 1);
    let table = l.top();
    for nth in 1..=count {
        l.push_value(before + nth);
        l.raw_set(table, u32::try_from(nth).unwrap_or(0));
    }
    l.push_count(u64::try_from(count).unwrap_or(0));
    l.set_field(c"n");
    l.push_nil();
    l.push_str("outward");
    l.push_nil();
    l.push_count(number.into());
    l.push_value(table);
    Ok(5)
}

/// `coroutine(q, hand, number)` → the coroutine of a job
pub fn coroutine(l: State) -> Outcome {
    let (_, flight) = parts(&l)?;
    l.push_values(1);
    let slot = flight.crew.borrow().coroutine(l.to_slot(3));
    l.raw_get(l.top(), slot);
    Ok(1)
}

/// `abandon(q, hand)` → the number of the job whose coroutine was with the pump when an error struck
/// that, or nothing
pub fn abandon(l: State) -> Outcome {
    let (_, flight) = parts(&l)?;
    match flight.turn.get().current {
        Some(number) => {
            l.push_count(number.into());
            Ok(1)
        }
        None => Ok(0),
    }
}

/// What comes next in a turn.
enum Step {
    /// The job of this number goes on: its coroutine is at [`COROUTINE`], and takes so many values on
    /// the top. One that starts may have none yet.
    Resume(u32, c_int),
    /// There are so many values on the top to tell the pump.
    Tell(c_int),
    /// The turn is over.
    End,
}

/// Says which job comes next in this turn.
fn next(l: State, queue: &Queue, flight: &Flight) -> Result<Step, Fail> {
    l.set_top(2);
    let mut turn = flight.turn.get();
    if let Some(number) = turn.struck.take() {
        flight.turn.set(turn);
        l.push_str(pump::LEFT);
        return raised(l, queue, flight, number).map(Step::Tell);
    }
    if let Some(job) = turn.orphan.take() {
        flight.turn.set(turn);
        pump::pumped(&l)?.1.hold(job);
        l.push_nil();
        l.push_str("failed");
        l.push_nil();
        l.push_nil();
        l.push_str(pump::LEFT);
        return Ok(Step::Tell(5));
    }
    if turn.resumes > 0 {
        let number = flight.crew.borrow_mut().next_ready();
        turn.resumes = if number.is_some() { turn.resumes - 1 } else { 0 };
        turn.current = number;
        flight.turn.set(turn);
        if let Some(number) = number {
            l.push_values(1);
            l.raw_get(3, flight.crew.borrow().coroutine(number));
            return Ok(Step::Resume(number, 0));
        }
    }
    if flight.is_full() || queue.scheduler.borrow().pending() == 0 {
        return Ok(Step::End);
    }
    let now = queue.now();
    let starts = match turn.starts {
        Some(starts) => starts,
        None => turn.most.min(queue.scheduler.borrow_mut().due_jobs(now) as u64),
    };
    turn.starts = Some(starts);
    if starts == 0 || turn.most == 0 {
        flight.turn.set(turn);
        return Ok(Step::End);
    }
    // The post first: a job that has begun must have one.
    let Ok(number) = flight.crew.borrow_mut().hire() else { return Err(out_of_memory(l)) };
    let next = queue.scheduler.borrow_mut().next(now);
    let Next::Start(job, held) = next else {
        flight.crew.borrow_mut().dismiss(number);
        let Next::Shed(job) = next else {
            turn.starts = Some(0);
            flight.turn.set(turn);
            return Ok(Step::End);
        };
        turn.starts = Some(starts - 1);
        turn.sheds = turn.sheds.saturating_sub(1);
        if turn.sheds == 0 {
            turn.most = 0;
        }
        flight.turn.set(turn);
        pump::pumped(&l)?.1.hold(job);
        l.push_nil();
        l.push_str("expired");
        return Ok(Step::Tell(2));
    };
    turn.starts = Some(starts - 1);
    turn.most -= 1;
    turn.current = Some(number);
    flight.turn.set(turn);
    let coroutine = {
        let mut crew = flight.crew.borrow_mut();
        crew.assign(number, job);
        crew.coroutine(number)
    };
    l.push_values(1);
    l.raw_get(3, coroutine);
    l.raw_get(3, held.function);
    if held.args == 0 {
        return Ok(Step::Resume(number, 1));
    }
    l.raw_get(3, held.args);
    Ok(Step::Resume(number, 2))
}

/// `equip(q, number, coroutine)` gives a job its coroutine
pub fn equip(l: State) -> Outcome {
    let (queue, flight) = parts(&l)?;
    let number = l.to_slot(2);
    let serial = flight.crew.borrow_mut().next_serial();
    crew::register(l, Post { crew: Rc::clone(&flight.crew), number, serial });
    l.push_values(1);
    let slot = queue.values.store(l, l.top(), 3)?;
    flight.crew.borrow_mut().equip(number, slot, serial);
    Ok(0)
}

/// `idle(q)` at the end of a turn: waits until there is something to do, parks where the pump is
/// itself in a concurrent job → true, in a new turn; false where there is nothing to wait for;
/// nothing where no job is ever due
pub fn idle(l: State) -> Outcome {
    let (queue, flight) = parts(&l)?;
    let is_over = {
        let scheduler = queue.scheduler.borrow();
        scheduler.in_flight() == 0 && scheduler.is_over()
    };
    if is_over {
        l.push_bool(false);
        return Ok(1);
    }
    let (has_ready, deadline) = {
        let mut crew = flight.crew.borrow_mut();
        (crew.has_ready(), crew.next_deadline())
    };
    if has_ready {
        flight.begin_turn();
        l.push_bool(true);
        return Ok(1);
    }
    let now = Moment::now();
    let until = deadline.min(queue.next_start(now));
    if until > now {
        if until == Moment::NEVER && queue.scheduler.borrow().in_flight() == 0 {
            return Ok(0);
        }
        if let Some(post) = crew::current(l) {
            return park_pump(l, queue, flight, &post, until);
        }
        let accused = if until == Moment::NEVER { flight.crew.borrow().dead_end() } else { None };
        if let Some(waiter) = accused {
            // It waits still, so it takes this.
            let _ = waiter.serve(0, Ending::Endless);
        } else {
            let (parker, group) = {
                let crew = flight.crew.borrow();
                (crew.parker().clone(), crew.group())
            };
            wait::group_slice(l, &parker, group, until)?;
        }
    }
    flight.begin_turn();
    l.push_bool(true);
    Ok(1)
}

/// The pump waits as the job that it is run in.
fn park_pump(l: State, queue: &Queue, flight: &Flight, post: &Post, until: Moment) -> Outcome {
    let waiter = post.sit(l)?;
    {
        let crew = flight.crew.borrow();
        crew.parker().park_pump(crew.group(), Some(&waiter));
    }
    queue.parked_pumps.borrow_mut().push(waiter.clone());
    let places = Places::Run(Rc::clone(&flight.crew));
    let mut crew = post.crew.borrow_mut();
    crew.park(post.number, Wait { waiter, places, deadline: until });
    Ok(PARK)
}

/// What a parked `idle` does when it is resumed.
pub fn idle_resumed(l: State) -> Outcome {
    let resumed = crew::resumed(l)?;
    let Resumed::Ended(wait, _) = resumed else { return Ok(PARK) };
    let (queue, flight) = parts(&l)?;
    {
        let crew = flight.crew.borrow();
        crew.parker().park_pump(crew.group(), None);
    }
    queue.parked_pumps.borrow_mut().retain(|parked| *parked != wait.waiter);
    drop(wait);
    flight.begin_turn();
    l.push_bool(true);
    Ok(1)
}

/// Ends the waits of all parked jobs, which count as cancelled, and returns their coroutines.
pub fn cancel_parked(l: State) -> Outcome {
    let Some(queue) = l.object::<Queue>(1) else { return Ok(0) };
    let Some(flight) = &queue.flight else { return Ok(0) };
    l.new_table(0, 0);
    let list: c_int = l.top();
    let mut count = 0;
    loop {
        let gone = flight.crew.borrow_mut().cancel_one();
        let Some((job, coroutine)) = gone else { break };
        let held = queue.scheduler.borrow_mut().cancel_running(job).unwrap_or_default();
        l.push_values(1);
        let table = l.top();
        queue.free(l, table, held);
        queue.values.take(l, table, coroutine);
        count += 1;
        l.raw_set(list, count);
        l.pop(1);
    }
    Ok(1)
}
