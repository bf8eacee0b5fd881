//! What is done to a queue, at random.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use queue::core::clock::Span;

use super::oracle::LAST;
use crate::scripts::Script;

/// What a queue is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Pending jobs at most; 0: any number.
    pub capacity: usize,
    pub keep_failed: usize,
    pub limit: Option<(usize, Span)>,
    /// Where the clock begins.
    pub start: u64,
    /// Whether all that can be asked is asked after every step. That moves jobs from heap to heap,
    /// and so may hide a mistake: half of the runs ask only when told to.
    pub is_curious: bool,
}

/// One of those that the operation can be done to; nothing is done where there are none.
pub type Pick = usize;

/// Picks are below this. A pick is a share of those that there are, from 0 for the newest on: so it
/// means much the same when there are fewer.
pub const PICKS: usize = 16;

/// Ids that jobs are given, and others. Some read as if they had been made up.
pub const IDS: [&[u8]; 11] = [
    b"a",
    b"b",
    b"job-1",
    b"job-2",
    b"job-3",
    b"",
    b"job-",
    b"job-01",
    b"job-x",
    b"job-4294967295",
    b"job-18446744073709551617",
];

/// Which id.
#[derive(Clone, Copy, Debug)]
pub enum Id {
    /// One of [`IDS`].
    Known(usize),
    /// That of a job that is there.
    Of(Pick),
    /// That of a job that has failed and is kept.
    Kept(Pick),
    /// The one that is made up next, or so many later.
    Coming(u64),
}

/// What a job is pushed with.
#[derive(Clone, Debug)]
pub struct Order {
    pub priority: i64,
    pub delay: Span,
    pub retries: u64,
    pub backoff: Span,
    pub patience: Span,
    pub id: Option<Id>,
    pub is_unique: bool,
    pub every: Option<Span>,
}

/// How far the clock goes on.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    By(u64),
    /// To the moment when the next job may start, or a nanosecond to either side of it.
    BeforeDue,
    ToDue,
    PastDue,
}

#[derive(Clone, Debug)]
pub enum Op {
    Push(Order),
    Next,
    /// An attempt ends well.
    Succeed(Pick),
    /// An attempt raises. Its job stays until `Retry` or `Leave`.
    Raise(Pick),
    Retry(Pick, Option<Span>),
    /// A job that raised or was shed goes. True: if it has failed, and such are kept, it is.
    Leave(Pick, bool),
    /// An attempt does not end: its coroutine was closed.
    Close(Pick),
    /// The end of an attempt is told of a slot where none runs.
    Meddle(u32),
    /// A failed job is tried again.
    Revive(Id),
    Cancel(Id),
    Status(Id),
    SetPriority(Id, i64),
    /// To the one priority and to the other, so many times.
    Toggle(Id, [i64; 2], usize),
    /// All jobs are looked at; what one saw of them is looked up again later.
    Look,
    DueJobs,
    NextDue,
    Step(Step),
    Pause(Option<Span>),
    Resume,
    /// One pending job is dropped.
    ClearOne,
    Clear,
    Stop,
    /// Many pushes of the same, with so many priorities in turn, and as many delays.
    Burst(usize, Order, u32),
    /// The jobs of every so manieth id are cancelled.
    CancelSome(usize),
    /// Many pushes, of which each is cancelled before the next; now and then a job starts.
    Churn(usize, Order),
    /// Jobs run, or are shed, until nothing is left to start. False: they fail, and are not tried
    /// again.
    Drain(bool),
    /// Everything that is left ends or is dropped.
    Finish,
}

/// Mostly spans that meet each other, now and then an extreme one.
fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![
        4 => Just(Span::ZERO),
        8 => (0..6u64).prop_map(Span::from_nanos),
        1 => (0..3_000_000_000u64).prop_map(Span::from_nanos),
        1 => select(vec![Span::FOREVER, Span::from_nanos(LAST), Span::from_nanos(LAST / 2)]),
    ]
}

/// The same, but none that is no time.
fn intervals() -> impl Strategy<Value = Span> {
    spans().prop_map(|span| span.max(Span::from_nanos(1)))
}

fn priorities() -> impl Strategy<Value = i64> {
    prop_oneof![
        9 => -1..=1i64,
        1 => select(vec![i64::MIN, i64::MAX, i64::MIN + 1, 1 << 53, (1 << 53) + 1]),
    ]
}

fn picks() -> impl Strategy<Value = Pick> {
    0..PICKS
}

fn ids() -> impl Strategy<Value = Id> {
    prop_oneof![
        3 => (0..IDS.len()).prop_map(Id::Known),
        5 => picks().prop_map(Id::Of),
        1 => picks().prop_map(Id::Kept),
        1 => (0..3u64).prop_map(Id::Coming),
    ]
}

fn orders() -> impl Strategy<Value = Order> {
    let retries = prop_oneof![9 => 0..4u64, 1 => Just(u64::MAX)];
    let patience = prop_oneof![2 => Just(Span::FOREVER), 1 => spans()];
    let ids = prop_oneof![4 => Just(None), 3 => ids().prop_map(Some)];
    let is_unique = prop_oneof![3 => Just(false), 2 => Just(true)];
    let every = prop_oneof![4 => Just(None), 1 => intervals().prop_map(Some)];
    (priorities(), spans(), retries, spans(), patience, ids, is_unique, every).prop_map(
        |(priority, delay, retries, backoff, patience, id, is_unique, every)| Order {
            priority,
            delay,
            retries,
            backoff,
            patience,
            id,
            is_unique,
            every,
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4u64).prop_map(Step::By),
        1 => (0..2_000_000_000u64).prop_map(Step::By),
        1 => Just(Step::BeforeDue),
        4 => Just(Step::ToDue),
        1 => Just(Step::PastDue),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let of_attempts = prop_oneof![
        25 => Just(Op::Next),
        10 => picks().prop_map(Op::Succeed),
        16 => picks().prop_map(Op::Raise),
        12 => (picks(), option::of(spans())).prop_map(|(pick, span)| Op::Retry(pick, span)),
        13 => (picks(), prop::bool::weighted(0.8)).prop_map(|(pick, kept)| Op::Leave(pick, kept)),
        3 => picks().prop_map(Op::Close),
        2 => (0..12u32).prop_map(Op::Meddle),
    ];
    let revived = prop_oneof![3 => picks().prop_map(Id::Kept), 1 => ids()];
    let toggles = (ids(), [priorities(), priorities()], 1..100usize);
    let of_ids = prop_oneof![
        6 => revived.prop_map(Op::Revive),
        6 => ids().prop_map(Op::Cancel),
        4 => ids().prop_map(Op::Status),
        5 => (ids(), priorities()).prop_map(|(id, priority)| Op::SetPriority(id, priority)),
        1 => toggles.prop_map(|(id, both, times)| Op::Toggle(id, both, times)),
    ];
    let of_all = prop_oneof![
        30 => steps().prop_map(Op::Step),
        4 => Just(Op::Look),
        6 => Just(Op::DueJobs),
        6 => Just(Op::NextDue),
        3 => option::weighted(0.7, spans()).prop_map(Op::Pause),
        3 => Just(Op::Resume),
        3 => Just(Op::ClearOne),
        2 => Just(Op::Clear),
        1 => Just(Op::Stop),
    ];
    prop_oneof![
        30 => orders().prop_map(Op::Push),
        80 => of_attempts,
        22 => of_ids,
        58 => of_all,
    ]
}

fn setups(capacity: impl Strategy<Value = usize>) -> impl Strategy<Value = Setup> {
    let keep_failed = prop_oneof![1 => Just(0), 3 => 1..4usize];
    let limit = option::weighted(0.3, (1..4usize, intervals()));
    let starts = prop_oneof![6 => 0..10u64, 2 => Just(LAST / 2), 1 => (LAST - 20)..=LAST];
    (capacity, keep_failed, limit, starts, any::<bool>()).prop_map(
        |(capacity, keep_failed, limit, start, is_curious)| Setup {
            capacity,
            keep_failed,
            limit,
            start,
            is_curious,
        },
    )
}

pub fn scripts() -> impl Strategy<Value = Script<Setup, Op>> {
    let capacity = prop_oneof![1 => Just(0), 1 => 1..6usize];
    (setups(capacity), vec(ops(), 1..100)).prop_map(|(setup, ops)| Script { setup, ops })
}

/// Runs in which so much comes and goes at once that memory is given back, and stale entries are
/// dropped.
pub fn bursts() -> impl Strategy<Value = Script<Setup, Op>> {
    let sizes = prop_oneof![1 => 1..40usize, 1 => 1000..1050usize, 1 => 1100..1300usize];
    let toggles = (ids(), [priorities(), priorities()], 1..4usize);
    let op = prop_oneof![
        5 => (sizes, orders(), prop_oneof![Just(1), 2..40u32])
            .prop_map(|(count, order, variety)| Op::Burst(count, order, variety)),
        2 => (1..4usize).prop_map(Op::CancelSome),
        2 => (100..500usize, orders()).prop_map(|(count, order)| Op::Churn(count, order)),
        2 => toggles.prop_map(|(id, both, times)| Op::Toggle(id, both, times)),
        3 => any::<bool>().prop_map(Op::Drain),
        3 => Just(Op::Finish),
        4 => ops(),
    ];
    (setups(Just(0)), vec(op, 1..16)).prop_map(|(setup, ops)| Script { setup, ops })
}
