//! Concurrent jobs: whose coroutine is whose, and how a job's wait parks it. The steps of their
//! pump are in `turns.rs`.

use std::cell::RefCell;
use std::rc::Rc;

use super::args::out_of_memory;
use super::ffi::{Fail, Key, MUST_TRY, Object, Outcome, PARK, State};
use super::wait;
use crate::core::clock::{Moment, Span};
use crate::core::crew::{Crew as CoreCrew, End, Places, Wait};
use crate::core::waiter::Waiter;
use crate::core::wire::Item;

pub type Crew = CoreCrew<Item>;

/// The job of a coroutine. Scripts never see it.
#[derive(Clone)]
pub struct Post {
    pub crew: Rc<RefCell<Crew>>,
    pub number: u32,
    /// Of the coroutine: the post may have had others, and may have lost this one.
    pub serial: u64,
}

impl Object for Post {
    const KEY: &'static Key = {
        static KEY: Key = Key(6);
        &KEY
    };
    const NAME: &'static str = "queue.post";
}

/// Takes the metatable of posts from the top.
pub fn open(l: State) -> Outcome {
    l.keep_metatable::<Post>();
    Ok(0)
}

/// A coroutine has gone.
pub fn finalize(l: State) -> Outcome {
    l.finalize::<Post>(1);
    Ok(0)
}

/// Notes that the coroutine at 3 is that of a post.
pub fn register(l: State, post: Post) {
    l.new_object(|| post);
    l.set_own(3);
}

/// The job whose own coroutine this is, while its pump runs it and it can yield here.
///
/// It may have a wait already, for which it has not yielded. Either an error has ended the call of
/// that wait; or a hook or a finalizer has struck there and is what asks, and the call goes on later.
/// Code that strikes cannot yield: so where this can, the old wait is of the first kind, and is
/// undone. A wait on the thread leaves it as it is. On stock 5.1 code that strikes raises instead of
/// waiting. Where it must be tried, [`CoreCrew::park`] keeps the old wait beneath the new one until
/// the new one yields, which undoes the old, or is over on the thread, which brings it back.
pub fn current(l: State) -> Option<Post> {
    own(l).filter(|post| l.can_yield() && post.crew.borrow_mut().is_running(post.number, MUST_TRY))
}

/// `block()` waits as a parked job should, but on the thread: on Lua 5.2, where the yield failed.
pub fn block(l: State) -> Outcome {
    l.push_nothing();
    let nothing = l.top();
    let Some(post) = own(l) else { return Ok(0) };
    loop {
        let next = post.crew.borrow_mut().poll_wait(post.number, Moment::now());
        let Some((waiter, until)) = next else { break };
        let _ = waiter.sleep(until.min(wait::end_of_slice()));
        drop(waiter);
        if let Err(fail) = l.breathe(nothing) {
            post.crew.borrow_mut().abort(post.number);
            return Err(fail);
        }
    }
    Ok(0)
}

/// The job whose own coroutine this is.
fn own(l: State) -> Option<Post> {
    l.push_own();
    // Nobody else puts anything into that table.
    let post = l.trusted::<Post>(-1).cloned();
    l.pop(1);
    post.filter(|post| post.crew.borrow().has_post(post.number, post.serial))
}

impl Post {
    /// A ticket for a wait of this job.
    pub fn sit(&self, l: State) -> Result<Waiter<Item>, Fail> {
        let waiter = self.crew.borrow_mut().sit(self.number);
        waiter.map_err(|_| out_of_memory(l))
    }

    /// Parks the job. `waiter` is entered at `places`.
    pub fn park(self, waiter: Waiter<Item>, places: Places<Item>, limit: Span) -> Outcome {
        let deadline = Moment::deadline(limit);
        self.crew.borrow_mut().park(self.number, Wait { waiter, places, deadline });
        Ok(PARK)
    }

    /// Parks the job until the next turn.
    pub fn yield_turn(self, l: State) -> Outcome {
        // See `current`.
        if MUST_TRY && self.crew.borrow().has_wait(self.number) {
            let waiter = self.sit(l)?;
            return self.park(waiter, Places::Nowhere, Span::ZERO);
        }
        let noted = self.crew.borrow_mut().yield_turn(self.number);
        drop(self);
        if noted.is_err() { Err(out_of_memory(l)) } else { Ok(PARK) }
    }
}

/// What a parked job finds when it is resumed.
pub enum Resumed {
    /// It goes on waiting: it was a stranger that resumed the coroutine.
    Not,
    Ended(Wait<Item>, End<Item>),
}

/// Fetches how the last wait of a job ended, where it has.
fn fetch(crew: &mut Crew, number: u32) -> Option<(Wait<Item>, End<Item>)> {
    let ended = crew.fetch(number);
    if MUST_TRY && ended.is_some() {
        crew.bring_back(number);
    }
    ended
}

/// Fetches how the wait of this coroutine's job ended.
pub fn resumed(l: State) -> Result<Resumed, Fail> {
    let fetched = own(l).map(|post| {
        let mut crew = post.crew.borrow_mut();
        (fetch(&mut crew, post.number), crew.is_closed())
    });
    match fetched {
        Some((Some((wait, end)), _)) => Ok(Resumed::Ended(wait, end)),
        Some((None, false)) => Ok(Resumed::Not),
        _ => Err(gone(l)),
    }
}

/// Something else than the queue has resumed the coroutine of a job whose queue has gone.
fn gone(l: State) -> Fail {
    l.push_str("the queue of this job has gone");
    Fail
}

/// A sleep, or a yielded turn, goes on.
pub fn slept(l: State) -> Outcome {
    let post = own(l).filter(|post| !post.crew.borrow().is_closed());
    let Some(post) = post else { return Err(gone(l)) };
    let mut crew = post.crew.borrow_mut();
    let is_over = fetch(&mut crew, post.number).is_some() || !crew.is_waiting(post.number);
    Ok(if is_over { 0 } else { PARK })
}
