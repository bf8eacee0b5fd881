//! Waiting on the caller's thread: in slices, between which pending hooks get their turn. The
//! interpreter's Ctrl-C is such a hook.

use std::ffi::c_int;

use super::args::{Callee, out_of_memory};
use super::channel::{Core, Item};
use super::ffi::{Fail, Key, Object, Outcome, State};
use crate::core::clock::{Moment, Span};
use crate::core::sync::Arc;
use crate::core::waiter::{Outcome as Ending, Parker, Waiter};

/// How long a Ctrl-C can go unseen.
const SLICE: Span = Span::from_nanos(100_000_000);

const SLEEP: Callee = Callee::function("sleep");

/// Where the thread of this Lua state sleeps.
struct Desk(Arc<Parker<Item>>);

static DESK: Key = Key(1);

impl Object for Desk {
    const KEY: &'static Key = {
        static KEY: Key = Key(2);
        &KEY
    };
    const NAME: &'static str = "queue.desk";
}

/// `queue.sleep(ms)`
pub fn sleep(l: State) -> Outcome {
    let span = SLEEP.argument(1).duration(l)?;
    if span == Span::FOREVER {
        return Err(SLEEP.fail(l, format_args!("deadlock: sleep can never complete")));
    }
    let until = Moment::now().after(span);
    l.push_nothing();
    let nothing = l.top();
    while !slice(l, nothing, until)? {}
    Ok(0)
}

/// `queue.now()`
pub fn now(l: State) -> Outcome {
    l.push_number(Moment::now().as_ms());
    Ok(1)
}

/// Makes the desk of a Lua state that loads the module. Takes its metatable from the top.
pub fn open(l: State) -> Outcome {
    l.keep_metatable::<Desk>();
    l.new_object(|| Desk(Arc::new(Parker::new())));
    l.register(&DESK);
    Ok(0)
}

/// The desk goes when its Lua state ends.
pub fn finalize(l: State) -> Outcome {
    l.finalize::<Desk>(1);
    Ok(0)
}

/// Sleeps until `until`, but no longer than a slice, then lets hooks run. True: `until` has come.
/// `nothing` is the place of what [`State::push_nothing`] pushed.
pub fn slice(l: State, nothing: c_int, until: Moment) -> Result<bool, Fail> {
    let waiter = sit(l)?;
    let reached = !waiter.sleep(until.min(Moment::now().after(SLICE))) && Moment::now() >= until;
    waiter.leave();
    drop(waiter);
    l.breathe(nothing)?;
    Ok(reached)
}

/// What a wait needs: the place of a function for [`State::breathe`], and a seat.
pub fn prepare(l: State) -> Result<(c_int, Waiter<Item>), Fail> {
    l.push_nothing();
    Ok((l.top(), sit(l)?))
}

/// Opens a wait at the desk of this Lua state.
fn sit(l: State) -> Result<Waiter<Item>, Fail> {
    l.push_registered(&DESK);
    let waiter = l.object::<Desk>(-1).map(|desk| desk.0.sit());
    l.pop(1);
    match waiter {
        Some(Ok(waiter)) => Ok(waiter),
        Some(Err(_)) => Err(out_of_memory(l)),
        // Only a finalizer that runs while the state ends can come here.
        None => {
            l.push_str("the Lua state is closing");
            Err(Fail)
        }
    }
}

/// How a wait at one channel ended.
pub enum End {
    Served(Ending<Item>),
    /// The time was up. A sender has his value back.
    Timeout(Option<Item>),
    /// A hook raised, and its error is on the top. A sender has his value back.
    Broken(Fail, Option<Item>),
}

/// Sleeps until `waiter`, which was entered at `core` once, is served, or until `deadline`. After
/// this nothing of the wait is left anywhere.
pub fn block(
    l: State,
    nothing: c_int,
    core: &Core,
    waiter: &Waiter<Item>,
    deadline: Moment,
) -> End {
    loop {
        let woken = waiter.sleep(deadline.min(Moment::now().after(SLICE)));
        let over = woken || Moment::now() >= deadline;
        let served = if over { waiter.leave() } else { None };
        if let Some(served) = served {
            return End::Served(served.outcome);
        }
        // Protected, so `waiter` is safe: no error jumps over it.
        let hooks = l.breathe(nothing);
        if !over && hooks.is_ok() {
            continue;
        }
        // A value that came while the hook ran goes back to where it came from.
        let unsent = match waiter.leave().map(|served| served.outcome) {
            Some(Ending::Received(value)) => core.put_back(value).err(),
            Some(Ending::Closed(unsent)) => unsent,
            Some(Ending::Sent) => None,
            None => core.withdraw(waiter),
        };
        return match hooks {
            Ok(()) => End::Timeout(unsent),
            Err(fail) => End::Broken(fail, unsent),
        };
    }
}
