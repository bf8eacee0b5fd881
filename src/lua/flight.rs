//! How a queue with a `concurrency` above 1 runs, and the pump that is inside it. Its steps are in
//! `turns.rs`.
//!
//! As only one pump is inside such a queue at a time, what it has done so far is kept here.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::args::Callee;
use super::crew::Crew;
use super::ffi::{Fail, State};

/// How such a queue runs.
pub struct Flight {
    pub crew: Rc<RefCell<Crew>>,
    /// Jobs in flight at most.
    pub concurrency: usize,
    pub turn: Rc<Cell<Turn>>,
}

/// What the pump that is inside the queue has done, and may still do.
#[derive(Clone, Copy, Default)]
pub struct Turn {
    /// The number of the pump; 0 while none is inside.
    pub pump: u64,
    /// One turn is all: it is a `poll`.
    pub is_poll: bool,
    /// Jobs that can go on and were not resumed yet in this turn.
    pub resumes: usize,
    /// Jobs that may still start in this turn; `None`: it has not come to that yet.
    pub starts: Option<u64>,
    /// Attempts that this pump may still start, and jobs that it may shed.
    pub most: u64,
    pub sheds: u64,
    /// Attempts that ended.
    pub ended: u64,
    /// The job whose coroutine the pump resumes.
    pub current: Option<u32>,
    /// What that job yielded is with who resumed the pump.
    pub is_outward: bool,
    /// The job that an earlier pump was with when an error struck that one.
    pub struck: Option<u32>,
    /// One whose attempt had raised, and of which an earlier pump never said what becomes of it.
    pub orphan: Option<u32>,
}

/// A pump that is inside a queue. Where it does not leave by itself, since the coroutine that it ran
/// in is closed or collected, it leaves when this is dropped.
pub struct Pump {
    number: u64,
    turn: Rc<Cell<Turn>>,
    crew: Rc<RefCell<Crew>>,
}

impl Drop for Pump {
    fn drop(&mut self) {
        let turn = self.turn.get();
        if turn.pump == self.number {
            let mut left = Turn { orphan: turn.orphan, ..Turn::default() };
            match turn.current {
                // Without memory for it the job stays parked for good.
                Some(number) if turn.is_outward => {
                    let _ = self.crew.borrow_mut().yield_turn(number);
                }
                struck => left.struck = struck.or(turn.struck),
            }
            self.turn.set(left);
        }
    }
}

impl Pump {
    /// The pump goes without having said what becomes of this job, whose attempt has raised.
    pub fn orphan(&self, job: u32) {
        let mut turn = self.turn.get();
        if turn.pump == self.number {
            turn.orphan = Some(job);
            self.turn.set(turn);
        }
    }
}

impl Flight {
    pub fn new(crew: Crew, concurrency: usize) -> Self {
        Self { crew: Rc::new(RefCell::new(crew)), concurrency, turn: Rc::default() }
    }

    /// As many jobs are in flight as may be.
    pub fn is_full(&self) -> bool {
        self.crew.borrow().busy() >= self.concurrency
    }

    /// A pump enters: at most `most` starts and `sheds` sheds.
    pub fn enter(&self, l: State, callee: Callee, (most, sheds): (u64, u64)) -> Result<Pump, Fail> {
        if self.turn.get().pump != 0 {
            // Perhaps a hook has struck it where it could not leave: then it is garbage.
            l.collect();
        }
        let Turn { pump, struck, orphan, .. } = self.turn.get();
        if pump != 0 {
            return Err(callee.fail(l, format_args!("queue is already running")));
        }
        let is_poll = most < u64::MAX;
        let (pump, resumes) = {
            let mut crew = self.crew.borrow_mut();
            (crew.next_serial(), crew.begin_turn())
        };
        self.turn.set(Turn {
            pump,
            is_poll,
            resumes,
            most,
            sheds,
            struck,
            orphan,
            ..Turn::default()
        });
        Ok(Pump { number: pump, turn: Rc::clone(&self.turn), crew: Rc::clone(&self.crew) })
    }

    /// Begins a turn, and returns how many jobs can go on.
    pub fn begin_turn(&self) -> usize {
        let mut turn = self.turn.get();
        turn.resumes = self.crew.borrow_mut().begin_turn();
        turn.starts = None;
        self.turn.set(turn);
        turn.resumes
    }

    /// No job's coroutine is with the pump any more.
    pub fn came_back(&self) {
        let mut turn = self.turn.get();
        (turn.current, turn.is_outward) = (None, false);
        self.turn.set(turn);
    }

    /// An attempt has ended.
    pub fn count_end(&self) {
        let mut turn = self.turn.get();
        turn.ended += 1;
        self.turn.set(turn);
    }

    /// Job `number` is done, and its coroutine has come back: its post may serve another.
    pub fn dismiss(&self, number: u32) {
        self.crew.borrow_mut().dismiss(number);
        self.came_back();
        self.count_end();
    }

    /// An earlier pump has left a job of which it never said what becomes of it.
    pub fn has_leftover(&self) -> bool {
        let Turn { struck, orphan, .. } = self.turn.get();
        struck.or(orphan).is_some()
    }
}
