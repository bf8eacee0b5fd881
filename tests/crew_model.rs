//! Crews against a naive oracle: lists of jobs that are searched from end to end, and lists of those
//! that can go on, in the order in which they became able to. Two crews of one desk wait at the same
//! channels, and a job of the first may run the second. After each operation both must agree on who
//! is ready, on what comes next and on every channel, and no token is lost.

#![cfg(not(loom))]

mod oracle;
mod scripts;
mod seeds;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use queue::core::channel::Channel;
use queue::core::channel::Wait as How;
use queue::core::clock::Moment;
use queue::core::crew::{Crew, End, Places, Wait};
use queue::core::parker::Parker;
use queue::core::select::{Selected, select};
use queue::core::sync::Arc;
use queue::core::waiter::{Outcome, Waiter};

use oracle::{
    Due, Ending, Entry, Kind, Lines, Mint, Phase, Phases, Token, Want, cases, ending_of, redeem_all,
};
use scripts::Script;

/// Moments before this one have passed when a test begins; from here on they are far.
const FAR: u64 = 1 << 62;

/// The moment at which a crew is asked what comes next.
const NOW: Moment = Moment::from_nanos(1 << 20);

// --- operations --------------------------------------------------------------------------------

const CHANNELS: usize = 4;

/// Which channel.
type At = usize;

/// The crew that may run the other in one of its jobs, and that other.
const OUTER: usize = 0;
const INNER: usize = 1;

/// Which crew.
type Side = usize;

/// One of those that the operation can be done to; nothing is done where there are none.
type Pick = usize;

/// Picks are below this.
const PICKS: usize = 16;

#[derive(Clone, Debug)]
enum Place {
    Nowhere,
    One(Want),
    Select(Vec<Option<Want>>),
    /// In the run of the inner crew; only for jobs of the outer.
    Run,
}

impl Place {
    fn wants(&self) -> Vec<Option<Want>> {
        match self {
            Self::Nowhere | Self::Run => Vec::new(),
            Self::One(want) => vec![Some(*want)],
            Self::Select(wants) => wants.clone(),
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// A job starts, where none runs.
    Hire(Side),
    /// The job that runs waits until a moment, or goes on where it need not.
    Wait(Side, Place, Moment),
    Yield(Side),
    /// The job that runs ends well, or raises.
    Dismiss(Side),
    Lose(Side),
    Begin(Side),
    Next(Side),
    /// A job that waits goes on regardless, as its coroutine could not yield.
    Regain(Side, Pick),
    /// It waits on the thread, and looks whether the wait is over.
    Poll(Side, Pick),
    CancelOne(Side),
    Retire(Side, usize),
    CloseCrew(Side),
    DeadEnd(Side),
    /// Somebody who never waits does these.
    Send(At),
    Receive(At),
    FeedLast(At),
    Expect(At, Moment),
    Close(At),
    Stop(At),
    FetchOrphan(At),
    /// A job waits and is served, many times, each time with a limit that is far.
    Churn(Side, At, usize),
}

type Setup = [Kind; CHANNELS];

fn ops() -> impl Strategy<Value = Op> {
    let side = || prop_oneof![3 => Just(OUTER), 1 => Just(INNER)];
    let at = || prop_oneof![2 => Just(0), 1 => 1..CHANNELS];
    let want = || prop_oneof![1 => at().prop_map(Want::Send), 2 => at().prop_map(Want::Receive)];
    let place = prop_oneof![
        2 => Just(Place::Nowhere),
        6 => want().prop_map(Place::One),
        4 => vec(proptest::option::weighted(0.9, want()), 0..4).prop_map(Place::Select),
        3 => Just(Place::Run),
    ];
    let moment = || {
        let nanos = prop_oneof![1 => 0..6u64, 1 => FAR..FAR + 6];
        prop_oneof![3 => Just(Moment::NEVER), 1 => nanos.prop_map(Moment::from_nanos)]
    };
    let pick = || 0..PICKS;
    let of_jobs = prop_oneof![
        20 => side().prop_map(Op::Hire),
        36 => (side(), place, moment()).prop_map(|(side, place, until)| Op::Wait(side, place, until)),
        6 => side().prop_map(Op::Yield),
        6 => side().prop_map(Op::Dismiss),
        3 => side().prop_map(Op::Lose),
        10 => side().prop_map(Op::Begin),
        20 => side().prop_map(Op::Next),
        2 => (side(), pick()).prop_map(|(side, pick)| Op::Regain(side, pick)),
        2 => (side(), pick()).prop_map(|(side, pick)| Op::Poll(side, pick)),
    ];
    let of_crews = prop_oneof![
        6 => side().prop_map(Op::CancelOne),
        6 => (side(), 0..4usize).prop_map(|(side, kept)| Op::Retire(side, kept)),
        1 => side().prop_map(Op::CloseCrew),
        20 => side().prop_map(Op::DeadEnd),
        1 => (side(), at(), 1..90usize).prop_map(|(side, at, times)| Op::Churn(side, at, times)),
    ];
    let of_channels = prop_oneof![
        14 => at().prop_map(Op::Send),
        14 => at().prop_map(Op::Receive),
        1 => at().prop_map(Op::FeedLast),
        2 => (at(), moment()).prop_map(|(at, moment)| Op::Expect(at, moment)),
        1 => at().prop_map(Op::Close),
        1 => at().prop_map(Op::Stop),
        2 => at().prop_map(Op::FetchOrphan),
    ];
    prop_oneof![10 => of_jobs, 2 => of_crews, 3 => of_channels]
}

fn scripts() -> impl Strategy<Value = Script<Setup, Op>> {
    let kind = || {
        prop_oneof![
            6 => (0..3usize).prop_map(Kind::Plain),
            1 => any::<bool>().prop_map(Kind::Timer),
            1 => (0..2usize).prop_map(Kind::Shared),
        ]
    };
    let setup =
        [(0..2usize).prop_map(Kind::Plain).boxed(), kind().boxed(), kind().boxed(), kind().boxed()];
    (setup, vec(ops(), 1..160)).prop_map(|(setup, ops)| Script { setup, ops })
}

// --- oracle ------------------------------------------------------------------------------------

/// A wait of a job.
#[derive(Clone, Debug)]
struct Stay {
    guest: usize,
    place: Place,
    until: Moment,
    /// Which of all waits it is, from the first on.
    number: u64,
    /// What decides between time limits that are the same. A ticket may be older than its wait.
    ticket: u64,
}

impl Stay {
    /// Where the waiter was entered, and under which cases.
    fn entered(&self) -> Vec<(At, u32)> {
        let wants = self.place.wants();
        (0..).zip(wants).filter_map(|(case, want)| Some((want?.at(), case))).collect()
    }

    fn at(&self, case: u32) -> Option<At> {
        self.entered().into_iter().find(|&(_, there)| there == case).map(|(at, _)| at)
    }
}

/// How a wait ended; `None`: its time was up.
type Ended = Option<(u32, Ending)>;

#[derive(Clone, Debug)]
enum Stage {
    Idle,
    /// The job runs, or has yielded.
    Running,
    Waiting(Stay),
    Ended(Stay, Ended),
}

#[derive(Debug)]
struct Post {
    stage: Stage,
    job: u32,
    /// The slot of its coroutine; 0: it has none.
    coroutine: u32,
    serial: u64,
    /// It is among those who can go on as one that has yielded, and is noted once as such.
    has_yielded: bool,
}

/// A crew and its oracle.
struct Team {
    real: Rc<RefCell<Crew<Token>>>,
    posts: Vec<Post>,
    /// Who can go on in the next turn, and who still can in this one. Some may be there who no longer
    /// wait.
    woken: VecDeque<u32>,
    turn: VecDeque<u32>,
    /// The job that runs.
    current: Option<u32>,
    closed: bool,
}

impl Team {
    fn new(parker: &Arc<Parker<Token>>) -> Self {
        Self {
            real: Rc::new(RefCell::new(Crew::new(parker).expect("there is memory"))),
            posts: Vec::new(),
            woken: VecDeque::new(),
            turn: VecDeque::new(),
            current: None,
            closed: false,
        }
    }

    fn has_ready(&self) -> bool {
        !self.woken.is_empty() || !self.turn.is_empty()
    }

    fn busy(&self) -> usize {
        self.posts.iter().filter(|post| !matches!(post.stage, Stage::Idle)).count()
    }

    fn stays(&self) -> impl Iterator<Item = &Stay> {
        self.posts.iter().filter_map(|post| match &post.stage {
            Stage::Waiting(stay) => Some(stay),
            _ => None,
        })
    }

    fn next_deadline(&self) -> Moment {
        self.stays().map(|stay| stay.until).min().unwrap_or(Moment::NEVER)
    }

    fn post(&mut self, number: u32) -> &mut Post {
        &mut self.posts[number as usize]
    }

    /// One of those that wait, or whose wait has ended.
    fn choose_parked(&self, pick: Pick) -> Option<u32> {
        let is_parked = |post: &Post| matches!(post.stage, Stage::Waiting(_) | Stage::Ended(..));
        let parked = (0..).zip(&self.posts).filter(|(_, post)| is_parked(post));
        let all: Vec<u32> = parked.map(|(number, _)| number).collect();
        (!all.is_empty()).then(|| all[pick * all.len() / PICKS])
    }
}

struct Pair {
    parker: Arc<Parker<Token>>,
    teams: [Team; 2],
    /// The outer crew's job that runs the inner crew.
    runner: Option<u32>,
    channels: [Arc<Channel<Token>>; CHANNELS],
    lines: [Lines; CHANNELS],
    /// All waiters, with the jobs that wait.
    guests: Vec<(Waiter<Token>, Side, u32)>,
    phases: Phases,
    mint: Mint,
    /// The tokens that this operation should lose.
    dropped: Vec<u32>,
    /// Counts jobs, coroutines and waits alike.
    count: u32,
}

impl Pair {
    fn new(kinds: Setup) -> Self {
        let parker = Arc::new(Parker::new());
        Self {
            teams: [Team::new(&parker), Team::new(&parker)],
            parker,
            runner: None,
            channels: kinds.map(Kind::channel),
            lines: kinds.map(Kind::lines),
            guests: Vec::new(),
            phases: Phases::default(),
            mint: Mint::default(),
            dropped: Vec::new(),
            count: 0,
        }
    }

    fn count(&mut self) -> u32 {
        self.count += 1;
        self.count
    }

    fn real(&self, side: Side) -> std::cell::RefMut<'_, Crew<Token>> {
        self.teams[side].real.borrow_mut()
    }

    /// Its pump is at work, and no job is.
    fn is_between(&self, side: Side) -> bool {
        let team = &self.teams[side];
        let runs_elsewhere = side == INNER && self.runner.is_some();
        !team.closed && team.current.is_none() && !runs_elsewhere
    }

    /// Notes who was served.
    fn note_woken(&mut self) {
        for side in [OUTER, INNER] {
            for guest in self.phases.take_log(side) {
                let (_, _, number) = self.guests[guest];
                if !self.teams[side].closed {
                    self.teams[side].woken.push_back(number);
                }
            }
        }
    }

    fn apply(&mut self, op: &Op) -> TestCaseResult {
        match *op {
            Op::Hire(side) => self.hire(side),
            Op::Wait(side, ref place, until) => self.wait(side, place, until),
            Op::Yield(side) => self.yield_turn(side),
            Op::Dismiss(side) => {
                self.dismiss(side);
                Ok(())
            }
            Op::Lose(side) => self.lose(side),
            Op::Begin(side) => self.begin(side),
            Op::Next(side) => self.next(side),
            Op::Regain(side, pick) => self.regain(side, pick),
            Op::Poll(side, pick) => self.poll(side, pick),
            Op::CancelOne(side) => self.cancel_one(side),
            Op::Retire(side, kept) => self.retire(side, kept),
            Op::CloseCrew(side) => self.close_crew(side),
            Op::DeadEnd(side) => self.dead_end(side),
            Op::Send(at) => self.alone(Want::Send(at)),
            Op::Receive(at) => self.alone(Want::Receive(at)),
            Op::FeedLast(at) => {
                let (token, number) = self.mint.make();
                self.channels[at].feed_last(token);
                let lines = &mut self.lines[at];
                if lines.closed || !lines.accept(&mut self.phases, number) {
                    self.dropped.push(number);
                }
                lines.close(&mut self.phases);
                Ok(())
            }
            Op::Expect(at, moment) => {
                self.lines[at].expect(&self.channels[at], moment);
                Ok(())
            }
            Op::Close(at) => {
                self.channels[at].close();
                self.lines[at].close(&mut self.phases);
                Ok(())
            }
            Op::Stop(at) => {
                let _ = self.channels[at].stop().into_iter().filter_map(Token::redeem).count();
                let lines = &mut self.lines[at];
                lines.close(&mut self.phases);
                lines.stopped = true;
                lines.buffer.clear();
                Ok(())
            }
            Op::FetchOrphan(at) => self.lines[at].fetch_orphan(&self.channels[at]).map(drop),
            Op::Churn(side, at, times) => (0..times).try_for_each(|_| self.churn(side, at)),
        }
    }

    // --- jobs ----------------------------------------------------------------------------------

    fn hire(&mut self, side: Side) -> TestCaseResult {
        if !self.is_between(side) {
            return Ok(());
        }
        let (job, slot) = (self.count(), self.count());
        let team = &mut self.teams[side];
        let mut real = team.real.borrow_mut();
        let hired = real.hire();
        prop_assert!(hired.is_ok());
        let number = hired.unwrap_or(0);
        real.assign(number, job);
        if number as usize == team.posts.len() {
            prop_assert_eq!(team.busy(), team.posts.len(), "a new post, though others are idle");
            let stage = Stage::Idle;
            team.posts.push(Post { stage, job, coroutine: 0, serial: 0, has_yielded: false });
        }
        let is_idle = |post: &Post| matches!(post.stage, Stage::Idle);
        let spare = team.posts.iter().any(|post| is_idle(post) && post.coroutine != 0);
        let post = &mut team.posts[number as usize];
        prop_assert!(is_idle(post), "the post has a job");
        prop_assert_eq!(post.coroutine != 0, spare, "another has a coroutine to spare");
        post.stage = Stage::Running;
        post.job = job;
        if post.coroutine == 0 {
            let (before, serial) = (post.serial, real.next_serial());
            real.equip(number, slot, serial);
            post.coroutine = slot;
            post.serial = serial;
            prop_assert!(before != serial && !real.has_post(number, before));
        }
        team.current = Some(number);
        Ok(())
    }

    fn wait(&mut self, side: Side, place: &Place, until: Moment) -> TestCaseResult {
        let Some(number) = self.teams[side].current else { return Ok(()) };
        if matches!(place, Place::Run) {
            // Before it waits a pump sees that nobody of its own can go on.
            let inner = &self.teams[INNER];
            if side == INNER || !self.is_between(INNER) || inner.has_ready() {
                return Ok(());
            }
        }
        prop_assert!(self.real(side).is_running(number, false));
        let waiter = self.real(side).sit(number);
        prop_assert!(waiter.is_ok());
        let Ok(waiter) = waiter else { return Ok(()) };
        let is_new = self.guests.iter().all(|(there, ..)| *there != waiter);
        prop_assert!(is_new && waiter.is_open(), "a ticket was sold twice");
        let guest = self.phases.open(side);
        self.guests.push((waiter.clone(), side, number));

        let wants = place.wants();
        let order: Vec<u32> = (0..).take(wants.len()).collect();
        let (mut tried, mut brought) = cases(&wants, &self.channels, &mut self.mint);
        let real = match select(&mut tried, &order, &How::Enter(&waiter)) {
            Selected::Done(case, outcome) => Some(Due::Done(case, ending_of(outcome))),
            Selected::Entered => Some(Due::Entered),
            _ => None,
        };
        let (lines, phases) = (&mut self.lines, &mut self.phases);
        let due =
            oracle::select(lines, phases, (&wants, &order), Some((guest, false)), &mut brought);
        prop_assert_eq!(real, Some(due));
        prop_assert_eq!(redeem_all(tried), brought, "what was not sent");
        if due != Due::Entered {
            prop_assert!(waiter.leave().is_none());
            self.phases.leave(guest);
            return Ok(());
        }

        let channel = |at: At| Arc::clone(&self.channels[at]);
        let places = match place {
            Place::Nowhere => Places::Nowhere,
            Place::One(want) => Places::Channel(channel(want.at())),
            Place::Select(wants) => Places::Select(
                wants.iter().map(|want| want.map(|want| channel(want.at()))).collect(),
            ),
            Place::Run => {
                self.parker.park_pump(self.real(INNER).group(), Some(&waiter));
                self.phases.pump = Some((INNER, guest));
                self.runner = Some(number);
                Places::Run(Rc::clone(&self.teams[INNER].real))
            }
        };
        let ticket = waiter.number();
        self.real(side).park(number, Wait { waiter, places, deadline: until });
        let stay = Stay { guest, place: place.clone(), until, number: self.count().into(), ticket };
        let team = &mut self.teams[side];
        team.post(number).stage = Stage::Waiting(stay);
        team.current = None;
        Ok(())
    }

    fn yield_turn(&mut self, side: Side) -> TestCaseResult {
        let Some(number) = self.teams[side].current.take() else { return Ok(()) };
        prop_assert_eq!(self.real(side).yield_turn(number), Ok(()));
        if !mem::replace(&mut self.teams[side].post(number).has_yielded, true) {
            self.teams[side].woken.push_back(number);
        }
        Ok(())
    }

    fn dismiss(&mut self, side: Side) {
        let Some(number) = self.teams[side].current.take() else { return };
        self.real(side).dismiss(number);
        self.teams[side].post(number).stage = Stage::Idle;
    }

    fn lose(&mut self, side: Side) -> TestCaseResult {
        let Some(number) = self.teams[side].current.take() else { return Ok(()) };
        let coroutine = self.real(side).lose(number);
        let post = self.teams[side].post(number);
        prop_assert_eq!(coroutine, post.coroutine);
        post.coroutine = 0;
        post.stage = Stage::Idle;
        Ok(())
    }

    /// What becomes of the wait of a job that does not wait any more, and has not fetched its end.
    fn undo(&mut self, stay: &Stay, ended: Ended) {
        let guest = stay.guest;
        for (at, case) in stay.entered() {
            let unsent = self.lines[at].withdraw(Entry { guest, case });
            let gone = unsent.and_then(|token| self.lines[at].abandon(token));
            self.dropped.extend(gone);
        }
        if let Some((case, ending)) = ended
            && let Some(at) = stay.at(case)
        {
            let lines = &mut self.lines[at];
            let left = match ending {
                Ending::Received(token) => lines.put_back(&mut self.phases, token),
                other => other.token(),
            };
            self.dropped.extend(left.and_then(|token| lines.abandon(token)));
        }
        self.end_run(stay);
    }

    fn end_run(&mut self, stay: &Stay) {
        if matches!(stay.place, Place::Run) {
            self.runner = None;
        }
    }

    /// Undoes the wait of a job, which is then in another stage.
    fn abort(&mut self, side: Side, number: u32, then: Stage) {
        match mem::replace(&mut self.teams[side].post(number).stage, then) {
            Stage::Waiting(stay) => {
                let ended = self.phases.leave(stay.guest);
                self.undo(&stay, ended);
            }
            Stage::Ended(stay, ended) => self.undo(&stay, ended),
            Stage::Running | Stage::Idle => {}
        }
    }

    fn regain(&mut self, side: Side, pick: Pick) -> TestCaseResult {
        let Some(number) = self.teams[side].choose_parked(pick) else { return Ok(()) };
        if !self.is_between(side) {
            return Ok(());
        }
        prop_assert!(self.real(side).is_running(number, false));
        self.abort(side, number, Stage::Running);
        self.teams[side].current = Some(number);
        Ok(())
    }

    fn poll(&mut self, side: Side, pick: Pick) -> TestCaseResult {
        let Some(number) = self.teams[side].choose_parked(pick) else { return Ok(()) };
        if !self.is_between(side) {
            return Ok(());
        }
        let next = self.real(side).poll_wait(number, NOW);
        let stage = self.teams[side].post(number).stage.clone();
        if let Stage::Waiting(stay) = stage {
            let is_over = stay.until < NOW;
            let runs = matches!(stay.place, Place::Run);
            let is_vain = stay.until == Moment::NEVER && !runs && !self.is_fed(&stay);
            if runs && stay.until == Moment::NEVER && self.is_stuck(INNER) {
                // One of those that it waits for is told, and that wakes it.
                let oldest = self.oldest(INNER).map(|stay| stay.guest);
                oldest.map(|guest| self.phases.serve(Entry { guest, case: 0 }, Ending::Endless));
            }
            let is_open = self.phases.all[stay.guest] == Phase::Open;
            let goes_on = is_open && !is_over && !is_vain;
            let due = goes_on.then(|| (&self.guests[stay.guest].0, stay.until));
            let next = next.as_ref().map(|(waiter, until)| (waiter, *until));
            prop_assert!(next == due, "poll_wait: {goes_on} is due");
            if goes_on {
                return Ok(());
            }
            let vain = is_vain.then_some((0, Ending::Endless));
            let ended = self.phases.leave(stay.guest).or(vain);
            self.teams[side].post(number).stage = Stage::Ended(stay, ended);
        } else {
            prop_assert!(next.is_none());
        }
        self.resume(side, number)
    }

    /// The job of this number goes on.
    fn resume(&mut self, side: Side, number: u32) -> TestCaseResult {
        self.teams[side].current = Some(number);
        let stage = mem::replace(&mut self.teams[side].post(number).stage, Stage::Running);
        let fetched = self.real(side).fetch(number);
        let Stage::Ended(stay, ended) = stage else {
            prop_assert!(matches!(stage, Stage::Running), "{stage:?} is resumed");
            prop_assert!(fetched.is_none(), "a job that had yielded has waited");
            return Ok(());
        };
        let Some((wait, end)) = fetched else {
            prop_assert!(false, "a job that has waited is told nothing");
            return Ok(());
        };
        prop_assert!(wait.waiter == self.guests[stay.guest].0 && wait.deadline == stay.until);
        let real = match end {
            End::Timeout => None,
            End::Served(served) => Some((served.case, ending_of(served.outcome))),
        };
        prop_assert_eq!(real, ended, "how a wait ended");
        let mut back = Vec::new();
        wait.places.withdraw(&wait.waiter, |case, _, token| back.push((case, token.redeem())));
        let mut due = Vec::new();
        for (at, case) in stay.entered() {
            let unsent = self.lines[at].withdraw(Entry { guest: stay.guest, case });
            due.extend(unsent.map(|token| (case, Some(token))));
        }
        prop_assert_eq!(back, due, "what was not sent");
        if matches!(stay.place, Place::Run) {
            self.parker.park_pump(self.real(INNER).group(), None);
            self.phases.pump = None;
        }
        self.end_run(&stay);
        Ok(())
    }

    // --- turns ---------------------------------------------------------------------------------

    fn begin(&mut self, side: Side) -> TestCaseResult {
        if !self.is_between(side) {
            return Ok(());
        }
        let count = self.real(side).begin_turn();
        let team = &mut self.teams[side];
        for number in mem::take(&mut team.woken) {
            let Some(post) = team.posts.get_mut(number as usize) else { continue };
            post.has_yielded = false;
            match mem::replace(&mut post.stage, Stage::Running) {
                Stage::Waiting(stay) if self.phases.all[stay.guest] != Phase::Open => {
                    let ended = self.phases.leave(stay.guest);
                    post.stage = Stage::Ended(stay, ended);
                }
                Stage::Waiting(stay) => {
                    post.stage = Stage::Waiting(stay);
                    continue;
                }
                other => post.stage = other,
            }
            team.turn.push_back(number);
        }
        let mut late: Vec<(Moment, u64, u32)> = Vec::new();
        for (number, post) in (0..).zip(&team.posts) {
            if let Stage::Waiting(stay) = &post.stage
                && stay.until < NOW
            {
                late.push((stay.until, stay.ticket, number));
            }
        }
        // Of limits that are the same it does not matter which comes first, but it is the older ticket.
        late.sort_unstable();
        for (_, _, number) in late {
            let post = team.post(number);
            if let Stage::Waiting(stay) = mem::replace(&mut post.stage, Stage::Running) {
                let ended = self.phases.leave(stay.guest);
                post.stage = Stage::Ended(stay, ended);
                // One that was served in time is among those who were.
                if ended.is_none() {
                    team.turn.push_back(number);
                }
            }
        }
        prop_assert_eq!(count, team.turn.len(), "how many can go on");
        Ok(())
    }

    fn next(&mut self, side: Side) -> TestCaseResult {
        if !self.is_between(side) {
            return Ok(());
        }
        let real = self.real(side).next_ready();
        let mut due = None;
        while let Some(number) = self.teams[side].turn.pop_front() {
            let Some(post) = self.teams[side].posts.get(number as usize) else { continue };
            let is_able = matches!(post.stage, Stage::Ended(..) | Stage::Running);
            if is_able {
                due = Some(number);
                break;
            }
        }
        prop_assert_eq!(real, due, "who goes on");
        due.map_or(Ok(()), |number| self.resume(side, number))
    }

    fn churn(&mut self, side: Side, at: At) -> TestCaseResult {
        let lines = &self.lines[at];
        if lines.closed || !lines.buffer.is_empty() || self.teams[side].has_ready() {
            return Ok(());
        }
        self.hire(side)?;
        self.wait(side, &Place::One(Want::Receive(at)), Moment::from_nanos(FAR))?;
        self.alone(Want::Send(at))?;
        self.note_woken();
        self.begin(side)?;
        self.next(side)?;
        self.dismiss(side);
        Ok(())
    }

    // --- ends ----------------------------------------------------------------------------------

    fn cancel_one(&mut self, side: Side) -> TestCaseResult {
        if !self.is_between(side) {
            return Ok(());
        }
        let gone = self.real(side).cancel_one();
        let Some((job, coroutine)) = gone else {
            prop_assert_eq!(self.teams[side].choose_parked(0), None);
            return Ok(());
        };
        let mut posts = (0..).zip(&self.teams[side].posts);
        let found = posts.find(|(_, post)| !matches!(post.stage, Stage::Idle) && post.job == job);
        let Some((number, post)) = found else {
            prop_assert!(false, "a job was cancelled that is not there");
            return Ok(());
        };
        prop_assert!(matches!(post.stage, Stage::Waiting(_) | Stage::Ended(..)));
        prop_assert_eq!(coroutine, post.coroutine);
        self.abort(side, number, Stage::Idle);
        self.teams[side].post(number).coroutine = 0;
        Ok(())
    }

    fn retire(&mut self, side: Side, kept: usize) -> TestCaseResult {
        if !self.is_between(side) {
            return Ok(());
        }
        let mut real = self.real(side);
        let retired: Vec<u32> = std::iter::from_fn(|| real.retire(kept)).collect();
        drop(real);
        let team = &mut self.teams[side];
        let mut due = Vec::new();
        if team.busy() == 0 && team.posts.len() > kept {
            due.extend(team.posts.drain(kept..).map(|post| post.coroutine).rev());
            team.turn.clear();
        }
        prop_assert_eq!(retired, due, "coroutines that go");
        Ok(())
    }

    fn close_crew(&mut self, side: Side) -> TestCaseResult {
        if !self.is_between(side) {
            return Ok(());
        }
        self.real(side).close();
        for number in (0..).take(self.teams[side].posts.len()) {
            self.abort(side, number, Stage::Idle);
        }
        prop_assert!(self.real(side).is_closed());
        self.teams[side].closed = true;
        Ok(())
    }

    fn is_fed(&self, stay: &Stay) -> bool {
        stay.entered().iter().any(|&(at, _)| self.lines[at].is_fed)
    }

    /// Whether nothing can end any wait of a crew.
    fn is_stuck(&self, side: Side) -> bool {
        self.teams[side].posts.iter().all(|post| match &post.stage {
            Stage::Idle => true,
            Stage::Running | Stage::Ended(..) => false,
            Stage::Waiting(stay) => {
                let can_end = stay.until < Moment::NEVER || self.is_fed(stay);
                let runs = matches!(stay.place, Place::Run);
                !can_end && (!runs || self.is_stuck(INNER))
            }
        })
    }

    /// The waits of a crew, but for one that waits for others of the kind; and those.
    fn culprits(&self, side: Side) -> Vec<&Stay> {
        let mut all = Vec::new();
        for stay in self.teams[side].stays() {
            if matches!(stay.place, Place::Run) && self.teams[INNER].busy() > 0 {
                all.extend(self.culprits(INNER));
            } else {
                all.push(stay);
            }
        }
        all
    }

    fn oldest(&self, side: Side) -> Option<&Stay> {
        self.culprits(side).into_iter().min_by_key(|stay| stay.number)
    }

    fn dead_end(&mut self, side: Side) -> TestCaseResult {
        if !self.is_between(side) || self.teams[side].has_ready() {
            return Ok(());
        }
        let real = self.real(side).dead_end();
        let due = self.oldest(side).filter(|_| self.is_stuck(side)).map(|stay| stay.guest);
        let accused =
            real.as_ref().map(|waiter| self.guests.iter().position(|(there, ..)| there == waiter));
        prop_assert_eq!(accused, due.map(Some), "who has waited longest, where nothing can come");
        if let (Some(waiter), Some(guest)) = (real, due) {
            prop_assert!(waiter.serve(0, Outcome::Endless).is_ok());
            self.phases.serve(Entry { guest, case: 0 }, Ending::Endless);
        }
        Ok(())
    }

    // --- others --------------------------------------------------------------------------------

    /// Somebody sends or receives, and does not wait.
    fn alone(&mut self, want: Want) -> TestCaseResult {
        let wants = [Some(want)];
        let (mut tried, mut brought) = cases(&wants, &self.channels, &mut self.mint);
        let real = match select(&mut tried, &[0], &How::No) {
            Selected::Done(case, outcome) => Some(Due::Done(case, ending_of(outcome))),
            Selected::NotReady => Some(Due::NotReady),
            _ => None,
        };
        let (lines, phases) = (&mut self.lines, &mut self.phases);
        let due = oracle::select(lines, phases, (&wants, &[0]), None, &mut brought);
        prop_assert_eq!(real, Some(due));
        prop_assert_eq!(redeem_all(tried), brought);
        Ok(())
    }

    // --- comparing -----------------------------------------------------------------------------

    fn next_change(&self, side: Side) -> Moment {
        let team = &self.teams[side];
        if team.has_ready() {
            return NOW;
        }
        let feeds = team.stays().map(|stay| {
            let feeds = stay.entered().into_iter().map(|(at, _)| self.lines[at].next_feed());
            let runs = matches!(stay.place, Place::Run);
            feeds.chain(runs.then(|| self.next_change(INNER))).min().unwrap_or(Moment::NEVER)
        });
        feeds.chain([team.next_deadline()]).min().unwrap_or(Moment::NEVER)
    }

    fn compare(&mut self) -> TestCaseResult {
        self.note_woken();
        for side in [OUTER, INNER] {
            let team = &self.teams[side];
            if team.closed {
                continue;
            }
            let mut real = team.real.borrow_mut();
            prop_assert_eq!(real.busy(), team.busy(), "jobs in flight");
            prop_assert_eq!(real.has_ready(), team.has_ready(), "somebody can go on");
            prop_assert_eq!(real.next_deadline(), team.next_deadline(), "the next time limit");
            for (number, post) in (0..).zip(&team.posts) {
                prop_assert_eq!(real.coroutine(number), post.coroutine);
                if !matches!(post.stage, Stage::Idle) {
                    prop_assert_eq!(real.job(number), post.job);
                    prop_assert!(real.has_post(number, post.serial));
                }
            }
            drop(real);
            let next_change = self.real(side).next_change(NOW);
            prop_assert_eq!(next_change, self.next_change(side), "when something can change");
        }
        for (channel, lines) in self.channels.iter().zip(&self.lines) {
            lines.compare(channel, &self.phases)?;
        }
        for ((waiter, ..), phase) in self.guests.iter().zip(&self.phases.all) {
            prop_assert_eq!(waiter.is_open(), *phase == Phase::Open, "is_open");
        }
        self.mint.check_lost(&mut self.dropped)
    }

    /// The crews close, then everything goes as it is.
    fn end(mut self) -> TestCaseResult {
        for side in [OUTER, INNER] {
            self.teams[side].current = None;
            self.close_crew(side)?;
            self.compare()?;
        }
        let mut dropped: Vec<u32> = self.lines.iter().flat_map(Lines::tokens).collect();
        let Self { parker, teams, channels, guests, mint, .. } = self;
        drop((parker, teams, channels, guests));
        mint.check_lost(&mut dropped)?;
        prop_assert_eq!(Arc::strong_count(&mint.lost), 1, "a token is still somewhere");
        Ok(())
    }
}

fn agree(script: &Script<Setup, Op>) -> TestCaseResult {
    // The clock goes on from the first time that somebody looks.
    while Moment::now() < NOW {
        std::thread::yield_now();
    }
    let mut pair = Pair::new(script.setup);
    for op in &script.ops {
        pair.apply(op)?;
        pair.compare()?;
    }
    pair.end()
}

#[test]
fn crews_agree_with_the_oracle() {
    scripts::check("crews_agree_with_the_oracle", 2_000, &scripts(), agree);
}
