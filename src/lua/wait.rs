//! How a call waits.
//!
//! In the own coroutine of a concurrent job a wait parks the job ([`crew::Post::park`]). Anywhere
//! else it blocks the thread, in slices, between which pending hooks get their turn: the
//! interpreter's Ctrl-C is such a hook.

use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

use super::args::{Callee, out_of_memory};
use super::crew;
use super::ffi::{self, Fail, Key, Object, Outcome, State};
use crate::core::clock::{Moment, Span};
use crate::core::crew::{End, Places};
use crate::core::parker::Parker;
use crate::core::sync::Arc;
use crate::core::ticks::Ticks;
use crate::core::waiter::Waiter;
use crate::core::wire::Item;

/// How long a Ctrl-C can go unseen.
const SLICE: Span = Span::from_nanos(100_000_000);

const SLEEP: Callee = Callee::function("sleep").parking(0);

/// What all queues and channels of a Lua state have in common.
struct Desk {
    /// Where its thread sleeps.
    parker: Arc<Parker<Item>>,
    ticks: Rc<RefCell<Ticks>>,
}

static DESK: Key = Key(1);

impl Object for Desk {
    const KEY: &'static Key = {
        static KEY: Key = Key(2);
        &KEY
    };
    const NAME: &'static str = "queue.desk";
}

/// When hooks are to get their turn next.
pub fn end_of_slice() -> Moment {
    Moment::now().after(SLICE)
}

/// `queue.sleep(ms)`
pub fn sleep(l: State) -> Outcome {
    let span = SLEEP.argument(1).duration(l)?;
    let post = crew::current(l);
    if span == Span::FOREVER {
        drop(post);
        return Err(SLEEP.fail(l, format_args!("deadlock: sleep can never complete")));
    }
    if let Some(post) = post {
        if span == Span::ZERO {
            return post.yield_turn(l);
        }
        let waiter = post.sit(l)?;
        return post.park(waiter, Places::Nowhere, span);
    }
    let until = Moment::now().after(span);
    l.push_nothing();
    let nothing = l.top();
    while !slice(l, nothing, until)? {}
    Ok(0)
}

/// What a parked `sleep` does when it is resumed.
pub fn sleep_resumed(l: State) -> Outcome {
    crew::slept(l)
}

/// `queue.now()`
pub fn now(l: State) -> Outcome {
    l.push_number(Moment::now().as_ms());
    Ok(1)
}

/// Makes the desk of a Lua state that loads the module. Takes its metatable from the top.
pub fn open(l: State) -> Outcome {
    l.keep_metatable::<Desk>();
    l.push_registered(&DESK);
    // A state that loads the module once more keeps its desk: there may be waits at it.
    if l.object::<Desk>(-1).is_none() {
        l.new_object(|| Desk {
            parker: Arc::new(Parker::new()),
            ticks: Rc::new(RefCell::new(Ticks::new(ffi::are_ticks_steady()))),
        });
        l.register(&DESK);
    }
    Ok(0)
}

/// The desk goes when its Lua state ends.
pub fn finalize(l: State) -> Outcome {
    l.finalize::<Desk>(1);
    Ok(0)
}

/// Where the thread of this Lua state sleeps.
pub fn parker(l: State) -> Result<Arc<Parker<Item>>, Fail> {
    from_desk(l, |desk| Arc::clone(&desk.parker))
}

/// What tells this Lua state's thread the time for metrics.
pub fn ticks(l: State) -> Result<Rc<RefCell<Ticks>>, Fail> {
    from_desk(l, |desk| Rc::clone(&desk.ticks))
}

fn from_desk<R>(l: State, read: impl FnOnce(&Desk) -> R) -> Result<R, Fail> {
    l.push_registered(&DESK);
    let found = l.object::<Desk>(-1).map(read);
    l.pop(1);
    // Only a finalizer that runs while the state ends can find none.
    found.ok_or_else(|| {
        l.push_str("the Lua state is closing");
        Fail
    })
}

/// What a wait that blocks the thread needs: the place of a function for [`State::breathe`], and a
/// ticket.
pub fn prepare(l: State) -> Result<(c_int, Waiter<Item>), Fail> {
    l.push_nothing();
    let nothing = l.top();
    let waiter = parker(l)?.sit(None);
    waiter.map(|waiter| (nothing, waiter)).map_err(|_| out_of_memory(l))
}

/// Sleeps until `until`, but no longer than a slice, then lets hooks run. True: `until` has come.
/// `nothing` is the place of what [`State::push_nothing`] pushed.
pub fn slice(l: State, nothing: c_int, until: Moment) -> Result<bool, Fail> {
    let waiter = parker(l)?.sit(None).map_err(|_| out_of_memory(l))?;
    let end_of_slice = end_of_slice();
    let served = waiter.sleep(until.min(end_of_slice));
    waiter.leave();
    drop(waiter);
    l.breathe(nothing)?;
    Ok(!served && until <= end_of_slice)
}

/// Sleeps until a job of the group can go on, or until `until`, but no longer than a slice; then
/// lets hooks run.
pub fn group_slice(l: State, parker: &Parker<Item>, group: u32, until: Moment) -> Result<(), Fail> {
    l.push_nothing();
    let nothing = l.top();
    parker.sleep(group, until.min(end_of_slice()));
    l.breathe(nothing)
}

/// Blocks the thread until `waiter`, which was entered somewhere, is served, or until `deadline`.
/// `is_prompt`: another thread may serve it at once.
///
/// # Errors
/// A hook raised; its error is on the top. The wait may have been served all the same.
pub fn block(
    l: State,
    nothing: c_int,
    waiter: &Waiter<Item>,
    is_prompt: bool,
    deadline: Moment,
) -> (End<Item>, Result<(), Fail>) {
    if !is_prompt {
        return sleep_till_end(l, nothing, waiter, deadline);
    }
    if waiter.spin(deadline)
        && let Some(served) = waiter.leave()
    {
        return (End::Served(served), Ok(()));
    }
    let asleep = Moment::now();
    let ended = sleep_till_end(l, nothing, waiter, deadline);
    waiter.slept(match ended.0 {
        End::Served(_) => Moment::now().since(asleep),
        End::Timeout => Span::FOREVER,
    });
    ended
}

fn sleep_till_end(
    l: State,
    nothing: c_int,
    waiter: &Waiter<Item>,
    deadline: Moment,
) -> (End<Item>, Result<(), Fail>) {
    loop {
        let served = waiter.sleep(deadline.min(end_of_slice()));
        let over = served || Moment::now() >= deadline;
        if served && let Some(served) = waiter.leave() {
            return (End::Served(served), Ok(()));
        }
        // Protected, so `waiter` is safe: no error jumps over it.
        let hooks = l.breathe(nothing);
        if over || hooks.is_err() {
            return (waiter.leave().map_or(End::Timeout, End::Served), hooks);
        }
    }
}
