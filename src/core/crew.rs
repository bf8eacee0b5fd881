//! The jobs in flight of a queue whose jobs wait side by side.
//!
//! Each has a number here for as long as it runs. A turn begins by noting who can go on: those whose
//! wait was served, in the order in which that happened, and those whose time was up. They are then
//! resumed one by one, each once.
//!
//! Waits beneath others are in `beneath.rs`; whether anything can end a wait is judged in
//! `dead_end.rs`.
//!
//! A crew belongs to one Lua state and is used on its thread alone.

mod beneath;
mod dead_end;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::OutOfMemory;
use super::clock::Moment;
use super::parker::{Member, Parker};
pub use super::places::{End, Places, Wait};
use super::sync::Arc;
use super::waiter::Waiter;

/// Stale deadlines that are kept at least, before the heap is swept.
const SWEEP: usize = 64;

enum Phase<T> {
    /// No job: the coroutine of the last one waits for the next.
    Idle,
    /// Its coroutine runs, or is about to.
    Running,
    Waiting(Wait<T>),
    /// The wait is over; what it gave is still to be fetched by the job.
    Ended {
        wait: Wait<T>,
        end: End<T>,
    },
}

struct Post<T> {
    /// The slot of the job in the scheduler.
    job: u32,
    /// The slot of its coroutine with the face; 0 while there is none.
    coroutine: u32,
    /// Tells that coroutine from those that the post had before, and will have.
    serial: u64,
    phase: Phase<T>,
    /// Which of all waits the last one is.
    wait: u64,
    /// It is noted that the job goes on in the next turn, though it may not have yielded after all.
    has_yielded: bool,
    /// A wait that is open already, for the next time that the job has to wait.
    spare: Option<Waiter<T>>,
}

/// See the module's page.
pub struct Crew<T> {
    parker: Arc<Parker<T>>,
    group: u32,
    posts: Vec<Post<T>>,
    /// Posts without a job, those with a coroutine last.
    idle: Vec<u32>,
    busy: usize,
    /// Who goes on in this turn and was not resumed yet.
    ready: VecDeque<u32>,
    /// Time limits, the next first; those of waits that have ended are stale.
    deadlines: BinaryHeap<Reverse<(Moment, u64, u32)>>,
    /// Waits with a time limit.
    limited: usize,
    /// Waits of a job that were noted already when its present one was, the last at the end. Their
    /// calls go on once that is over; or errors have ended them, which shows when the job yields.
    under: Vec<(u32, Phase<T>)>,
    /// Counts the coroutines.
    serials: u64,
    /// The queue has gone.
    closed: bool,
}

impl<T> Post<T> {
    /// The wait is over. Returns how many time limits that is less.
    fn settle(&mut self, end: End<T>) -> usize {
        match std::mem::replace(&mut self.phase, Phase::Running) {
            Phase::Waiting(wait) => {
                let limits = usize::from(wait.deadline < Moment::NEVER);
                self.phase = Phase::Ended { wait, end };
                limits
            }
            other => {
                self.phase = other;
                0
            }
        }
    }
}

impl<T> Crew<T> {
    /// # Errors
    /// [`OutOfMemory`].
    pub fn new(parker: &Arc<Parker<T>>) -> Result<Self, OutOfMemory> {
        Ok(Self {
            group: parker.open_group()?,
            parker: Arc::clone(parker),
            posts: Vec::new(),
            idle: Vec::new(),
            busy: 0,
            ready: VecDeque::new(),
            deadlines: BinaryHeap::new(),
            limited: 0,
            under: Vec::new(),
            serials: 0,
            closed: false,
        })
    }

    // --- looking -------------------------------------------------------------------------------

    /// Jobs in flight.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.busy
    }

    #[must_use]
    pub fn parker(&self) -> &Arc<Parker<T>> {
        &self.parker
    }

    #[must_use]
    pub fn group(&self) -> u32 {
        self.group
    }

    #[must_use]
    pub fn job(&self, number: u32) -> u32 {
        self.posts[number as usize].job
    }

    #[must_use]
    pub fn coroutine(&self, number: u32) -> u32 {
        self.posts[number as usize].coroutine
    }

    /// The job has begun and is not over: its own coroutine asks, before it waits. A wait that it
    /// has already is undone, unless that `may_go_on`.
    pub fn is_running(&mut self, number: u32, may_go_on: bool) -> bool {
        if !may_go_on && !matches!(self.posts[number as usize].phase, Phase::Running) {
            self.abort_all(number);
        }
        !self.closed && !matches!(self.posts[number as usize].phase, Phase::Idle)
    }

    /// The job has a wait that has not ended.
    #[must_use]
    pub fn is_waiting(&self, number: u32) -> bool {
        matches!(self.posts[number as usize].phase, Phase::Waiting(_))
    }

    /// A wait of the job is noted.
    #[must_use]
    pub fn has_wait(&self, number: u32) -> bool {
        matches!(self.posts[number as usize].phase, Phase::Waiting(_) | Phase::Ended { .. })
    }

    /// The queue has gone, and nobody resumes its jobs.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Someone can go on, in this turn or the next.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty() || self.parker.has_woken(self.group)
    }

    /// The next time limit of a wait.
    pub fn next_deadline(&mut self) -> Moment {
        while let Some(&Reverse((due, ticket, number))) = self.deadlines.peek() {
            if self.is_current(number, ticket) {
                return due;
            }
            self.deadlines.pop();
        }
        Moment::NEVER
    }

    /// When a job may go on without anyone's doing: `now`, a time limit, or the next time of a
    /// timer whose channel a job waits at; else [`Moment::NEVER`].
    pub fn next_change(&mut self, now: Moment) -> Moment {
        if self.has_ready() {
            return now;
        }
        let timers = self.posts.iter().filter_map(|post| match &post.phase {
            Phase::Waiting(wait) => Some(wait.places.next_feed(now)),
            Phase::Idle | Phase::Running | Phase::Ended { .. } => None,
        });
        let timer = timers.min().unwrap_or(Moment::NEVER);
        self.next_deadline().min(timer)
    }

    fn is_current(&self, number: u32, ticket: u64) -> bool {
        let is_it = |phase: &Phase<T>| matches!(phase, Phase::Waiting(wait) if wait.waiter.number() == ticket);
        self.posts.get(number as usize).is_some_and(|post| is_it(&post.phase))
            || self.under.iter().any(|(whose, phase)| *whose == number && is_it(phase))
    }

    // --- coming and going ----------------------------------------------------------------------

    /// Gives a job a post; its coroutine is to be [`Crew::equip`]ped where the post has none.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn hire(&mut self) -> Result<u32, OutOfMemory> {
        let number = if let Some(number) = self.idle.pop() {
            number
        } else {
            let posts = self.posts.len() + 1;
            self.posts.try_reserve(1)?;
            self.idle.try_reserve(posts)?;
            self.ready.try_reserve(posts)?;
            self.posts.push(Post {
                job: 0,
                coroutine: 0,
                serial: 0,
                phase: Phase::Idle,
                wait: 0,
                has_yielded: false,
                spare: None,
            });
            u32::try_from(posts - 1).map_err(|_| OutOfMemory)?
        };
        self.posts[number as usize].phase = Phase::Running;
        self.busy += 1;
        Ok(number)
    }

    /// Tells which job has the post.
    pub fn assign(&mut self, number: u32, job: u32) {
        self.posts[number as usize].job = job;
    }

    /// A number for the coroutine that a post will get.
    pub fn next_serial(&mut self) -> u64 {
        self.serials += 1;
        self.serials
    }

    /// Gives a post its coroutine.
    pub fn equip(&mut self, number: u32, coroutine: u32, serial: u64) {
        let post = &mut self.posts[number as usize];
        post.coroutine = coroutine;
        post.serial = serial;
    }

    /// The coroutine of this serial number still has the post.
    #[must_use]
    pub fn has_post(&self, number: u32, serial: u64) -> bool {
        self.posts.get(number as usize).is_some_and(|post| post.serial == serial)
    }

    /// The job is done; the post, with its coroutine, waits for another.
    pub fn dismiss(&mut self, number: u32) {
        self.abort_all(number);
        self.posts[number as usize].phase = Phase::Idle;
        self.busy -= 1;
        self.idle.push(number);
    }

    /// The job is done and its coroutine with it. Gives the slot of that back.
    pub fn lose(&mut self, number: u32) -> u32 {
        self.abort_all(number);
        let coroutine = std::mem::take(&mut self.posts[number as usize].coroutine);
        self.posts[number as usize].phase = Phase::Idle;
        self.busy -= 1;
        // Posts with a coroutine are taken first.
        self.idle.insert(0, number);
        coroutine
    }

    /// Once nothing is in flight: takes a coroutine from a post, as long as more than `kept` have
    /// one, and gives its slot back.
    pub fn retire(&mut self, kept: usize) -> Option<u32> {
        if self.busy > 0 || self.posts.len() <= kept {
            return None;
        }
        let post = self.posts.pop()?;
        if let Some(spare) = post.spare {
            spare.leave();
        }
        if self.posts.len() == kept {
            // In their order: those with a coroutine are last.
            self.idle.retain(|&number| (number as usize) < kept);
            self.idle.shrink_to_fit();
            self.ready.clear();
            self.ready.shrink_to(kept);
            self.posts.shrink_to_fit();
        }
        Some(post.coroutine)
    }

    /// Ends the wait of a parked job, and its job with it; gives back the slots of both. `None`
    /// when there are no more.
    pub fn cancel_one(&mut self) -> Option<(u32, u32)> {
        let is_parked =
            |post: &Post<T>| matches!(post.phase, Phase::Waiting(_) | Phase::Ended { .. });
        let number = u32::try_from(self.posts.iter().position(is_parked)?).ok()?;
        Some((self.job(number), self.lose(number)))
    }

    // --- waiting -------------------------------------------------------------------------------

    /// A ticket for a wait of this job.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn sit(&mut self, number: u32) -> Result<Waiter<T>, OutOfMemory> {
        if self.deadlines.len() == self.deadlines.capacity() {
            self.deadlines.try_reserve(1)?;
        }
        if !matches!(self.posts[number as usize].phase, Phase::Running) {
            self.under.try_reserve(1)?;
        }
        match self.posts[number as usize].spare.take() {
            Some(waiter) => Ok(waiter),
            None => self.parker.sit(Some(Member { group: self.group, number })),
        }
    }

    /// The running job waits, from now on.
    pub fn park(&mut self, number: u32, wait: Wait<T>) {
        if wait.deadline < Moment::NEVER {
            self.deadlines.push(Reverse((wait.deadline, wait.waiter.number(), number)));
            self.limited += 1;
        }
        if !matches!(self.posts[number as usize].phase, Phase::Running) {
            self.put_under(number);
        }
        let post = &mut self.posts[number as usize];
        post.phase = Phase::Waiting(wait);
        post.wait = self.parker.count_wait();
        if self.deadlines.len() > 2 * self.limited + SWEEP {
            let mut deadlines = std::mem::take(&mut self.deadlines);
            deadlines.retain(|Reverse((_, ticket, number))| self.is_current(*number, *ticket));
            self.deadlines = deadlines;
        }
    }

    /// The running job lets the others go on. Where it still has a wait, an error has ended its call.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then nobody resumes it.
    pub fn yield_turn(&mut self, number: u32) -> Result<(), OutOfMemory> {
        if !matches!(self.posts[number as usize].phase, Phase::Running) {
            self.abort_all(number);
        }
        // Where its yield has failed, in a sort callback say, that is noted already. It goes on once.
        if !self.posts[number as usize].has_yielded {
            self.parker.wake(Member { group: self.group, number })?;
            self.posts[number as usize].has_yielded = true;
        }
        Ok(())
    }

    /// The wait of a job that runs again, and how it ended; `None` where it has not, so that the
    /// job must have been resumed by a stranger.
    pub fn fetch(&mut self, number: u32) -> Option<(Wait<T>, End<T>)> {
        let phase = &mut self.posts[number as usize].phase;
        match std::mem::replace(phase, Phase::Running) {
            Phase::Ended { wait, end } => Some((wait, end)),
            other => {
                *phase = other;
                None
            }
        }
    }

    // --- turns ---------------------------------------------------------------------------------

    /// Begins a turn: notes who can go on, and returns how many there are. Reads the clock only
    /// where somebody has a time limit.
    pub fn begin_turn(&mut self) -> usize {
        let mut woken = self.parker.woken(self.group);
        while let Some(number) = woken.pop() {
            // One that was woken and has gone since may have taken its post along.
            let Some(post) = self.posts.get_mut(number as usize) else { continue };
            post.has_yielded = false;
            if let Phase::Waiting(wait) = &post.phase {
                // Where it was not served, it was woken for a wait of old.
                let Some((served, next)) = woken.collect(&wait.waiter) else { continue };
                post.spare = Some(wait.waiter.next(next));
                self.limited -= post.settle(End::Served(served));
            }
            self.ready.push_back(number);
        }
        drop(woken);
        if self.limited == 0 {
            return self.ready.len();
        }
        let now = Moment::now();
        while let Some(&Reverse((due, ticket, number))) = self.deadlines.peek() {
            let current = self.is_current(number, ticket);
            if current && due > now {
                break;
            }
            self.deadlines.pop();
            if current && self.expire(number) {
                self.ready.push_back(number);
            }
        }
        self.ready.len()
    }

    /// The number of the next job to resume in this turn.
    pub fn next_ready(&mut self) -> Option<u32> {
        while let Some(number) = self.ready.pop_front() {
            // It may have gone since, or may have been resumed by a stranger and wait anew.
            let phase = self.posts.get(number as usize).map(|post| &post.phase);
            if let Some(Phase::Running | Phase::Ended { .. }) = phase {
                return Some(number);
            }
        }
        None
    }

    /// Ends a wait whose time is up. False: it was served at the last moment, and will be among
    /// those who were.
    fn expire(&mut self, number: u32) -> bool {
        let Phase::Waiting(wait) = &self.posts[number as usize].phase else { return false };
        let served = wait.waiter.leave();
        let in_time = served.is_some();
        let end = served.map_or(End::Timeout, End::Served);
        self.limited -= self.posts[number as usize].settle(end);
        !in_time
    }

    // --- the end -------------------------------------------------------------------------------

    /// Ends all waits. Values that jobs were to receive go back, those that they were to send are
    /// left for the channels' owners.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        for number in (0..).take(self.posts.len()) {
            if self.has_wait(number) {
                self.abort_all(number);
                self.posts[number as usize].phase = Phase::Idle;
            }
            if let Some(spare) = self.posts[number as usize].spare.take() {
                spare.leave();
            }
        }
        self.parker.close_group(self.group);
    }
}
