//! Corners of the core that the models do not reach: what shows outside, how a thread sleeps for a
//! group, what the face alone asks for.

#![cfg(not(loom))]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use queue::core::OutOfMemory;
use queue::core::backoff::Backoff;
use queue::core::channel::{Channel, Crossing, Local, Unreceived, Unsent, Wait as How};
use queue::core::clock::{Moment, Span};
use queue::core::crew::{Crew, End, Places, Wait};
use queue::core::parker::{Member, Parker};
use queue::core::poll::Signal;
use queue::core::random;
use queue::core::scheduler::{Next, Plan, Scheduler, Setup};
use queue::core::select::{Case, Selected, select};
use queue::core::shared::Handle;
use queue::core::sync::Arc;
use queue::core::waiter::{Outcome, Served, Waiter};
use queue::core::wire::{Packet, Piece, Sizes};

/// Far away.
const LATER: Span = Span::from_nanos(60_000_000_000);

/// Shows a state, and counts how often it was told one.
#[derive(Default)]
struct Lamp {
    on: AtomicBool,
    told: AtomicU32,
}

impl Lamp {
    fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    fn signal(self: &Arc<Self>) -> Arc<dyn Signal> {
        self.clone()
    }
}

impl Signal for Lamp {
    fn set(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
        self.told.fetch_add(1, Ordering::Relaxed);
    }
}

#[allow(
    clippy::arc_with_non_send_sync,
    reason = "what waits at a channel holds it by this pointer"
)]
fn local(capacity: usize) -> Arc<Channel<u32>> {
    Arc::new(Local::new(capacity))
}

fn shared(capacity: usize) -> Arc<Channel<u32>> {
    Arc::new(Crossing::shared(capacity))
}

fn member(group: u32, number: u32) -> Member {
    Member { group, number }
}

// --- time and numbers --------------------------------------------------------------------------

#[test]
fn a_deadline_is_in_the_future_and_never_where_there_is_no_limit() {
    let before = Moment::now();
    assert!(Moment::deadline(LATER) >= before.after(LATER));
    assert_eq!(Moment::deadline(Span::FOREVER), Moment::NEVER);
}

#[test]
#[allow(clippy::float_cmp, reason = "the results are exact")]
fn moments_and_delays_in_milliseconds() {
    assert_eq!(Moment::from_nanos(1_500_000).as_ms(), 1.5);
    assert_eq!(Moment::NEVER.as_ms(), f64::INFINITY);
    assert_eq!(Backoff::default().delay_ms(3, 0.0), 400.0);
}

#[test]
fn random_numbers_are_spread_evenly_from_minus_one_to_one() {
    let numbers: Vec<f64> = (0..40_000).map(|_| random::spread()).collect();
    assert!(numbers.iter().all(|number| (-1.0..1.0).contains(number)));
    for part in [-1.0, -0.5, 0.0, 0.5] {
        let count = numbers.iter().filter(|&&number| (part..part + 0.5).contains(&number)).count();
        assert!((9_500..10_500).contains(&count), "{count} from {part} on");
    }
}

#[test]
fn a_refusal_of_memory_is_told_as_one() {
    assert_eq!(OutOfMemory::probe(), Ok(()));
    assert_eq!(OutOfMemory::probe_box::<Packet>(), Ok(()));
    let refusal = Vec::<u8>::new().try_reserve(usize::MAX).unwrap_err();
    assert_eq!(OutOfMemory::from(refusal), OutOfMemory);
}

// --- the scheduler -----------------------------------------------------------------------------

fn plan(priority: i64) -> Plan<u32> {
    Plan {
        priority,
        delay: Span::ZERO,
        retries: 0,
        backoff: Span::ZERO,
        patience: Span::FOREVER,
        name: None,
        is_unique: false,
        every: None,
        values: 0,
    }
}

fn push(scheduler: &mut Scheduler<u32>, priority: i64, delay: Span) -> u32 {
    let mut plan = Plan { delay, ..plan(priority) };
    scheduler.reserve(&plan, false).unwrap();
    scheduler.push(&mut plan, Moment::from_nanos(0))
}

#[test]
fn a_queue_is_timeless_while_the_time_decides_nothing() {
    let at = Moment::from_nanos;
    let mut scheduler = Scheduler::new(Setup::default()).unwrap();
    assert!(scheduler.is_timeless());
    push(&mut scheduler, 1, Span::ZERO);
    assert!(scheduler.is_timeless(), "one that may start at once");
    push(&mut scheduler, 1, Span::from_nanos(50));
    assert!(!scheduler.is_timeless(), "a delayed one");
    scheduler.due_jobs(at(1_000));
    assert!(scheduler.is_timeless(), "it has come due");
    scheduler.pause(Moment::NEVER);
    assert!(!scheduler.is_timeless(), "paused");
    scheduler.resume();
    assert!(scheduler.is_timeless());
    let mut patient = Plan { patience: Span::from_nanos(9), ..plan(2) };
    assert!(plan(2).is_timeless() && !patient.is_timeless());
    assert!(!Plan { delay: Span::from_nanos(1), ..plan(2) }.is_timeless());
    scheduler.reserve(&patient, false).unwrap();
    scheduler.push(&mut patient, at(1_000));
    assert!(!scheduler.is_timeless(), "a deadline");
    let Next::Start(slot, _) = scheduler.next(at(1_001)) else { panic!("nothing starts") };
    scheduler.succeed(slot, at(1_002));
    assert!(scheduler.is_timeless(), "the last deadline has gone");
    let limit = Some((3, Span::from_nanos(10)));
    assert!(!Scheduler::<u32>::new(Setup { limit, ..Setup::default() }).unwrap().is_timeless());
}

#[test]
fn the_likely_next_job_is_the_one_that_starts() {
    let mut scheduler = Scheduler::new(Setup::default()).unwrap();
    assert_eq!(scheduler.likely_next(), None);
    // The last comes to the front by way of the heap.
    push(&mut scheduler, 0, Span::ZERO);
    push(&mut scheduler, 5, Span::ZERO);
    push(&mut scheduler, 9, Span::from_nanos(10));
    let now = Moment::from_nanos(10);
    let mut likely = Vec::new();
    for slot in [2, 1, 0] {
        scheduler.due_jobs(now);
        likely.push(scheduler.likely_next());
        assert_eq!(scheduler.next(now), Next::Start(slot, 0));
    }
    assert_eq!(scheduler.likely_next(), None);
    // A hint: the heap is looked at where no queue has a job.
    assert_eq!(likely[0], likely[1]);
    assert!(likely[1].is_some() && likely[2].is_some() && likely[1] != likely[2]);
    push(&mut scheduler, 0, Span::from_nanos(10));
    scheduler.due_jobs(now);
    assert!(scheduler.likely_next().is_some());
}

// --- channels ----------------------------------------------------------------------------------

#[test]
fn a_channel_shows_its_fill_and_whether_waits_there_are_short() {
    let local = local(3);
    local.try_send(1).unwrap();
    assert_eq!(format!("{local:?}"), "channel(1/3)");
    assert!(!local.is_prompt());
    assert!(shared(0).is_prompt() && shared(1).is_prompt() && !shared(2).is_prompt());
    let mixed = Places::Select(vec![None, Some(local.clone()), Some(shared(1))]);
    assert!(mixed.is_prompt());
    assert!(Places::Channel(shared(0)).is_prompt());
    assert!(!Places::Select(vec![None, Some(local.clone())]).is_prompt());
    assert!(!Places::Channel(local).is_prompt() && !Places::<u32>::Nowhere.is_prompt());
}

#[test]
fn a_refused_send_gives_its_value_back_whatever_the_reason() {
    for refusal in [Unsent::Full(7), Unsent::Closed(7), Unsent::Endless(7), Unsent::OutOfMemory(7)]
    {
        assert_eq!(refusal.into_value(), 7);
    }
}

#[test]
fn a_large_buffer_that_ran_empty_is_filled_again() {
    let channel = Local::new(usize::MAX);
    for _ in 0..2 {
        (0..5_000).for_each(|n| channel.try_send(n).unwrap());
        (0..5_000).for_each(|n| assert_eq!(channel.try_receive(), Ok(n)));
        assert_eq!(channel.try_receive(), Err(Unreceived::Empty));
    }
}

/// A channel with the values from 1 to 6, of which the first is received and the others are lent.
fn lent() -> Arc<Channel<u32>> {
    let channel = shared(6);
    (1..7).for_each(|n| channel.try_send(n).unwrap());
    assert_eq!(channel.try_receive(), Ok(1));
    channel
}

fn drain(channel: &Channel<u32>) -> Vec<u32> {
    std::iter::from_fn(|| channel.try_receive().ok()).collect()
}

#[test]
fn what_is_lent_takes_the_room_that_it_took() {
    let channel = lent();
    assert_eq!(channel.try_send(7), Ok(()));
    assert_eq!(channel.try_send(8), Err(Unsent::Full(8)));
    assert_eq!(channel.try_receive(), Ok(2));
    assert_eq!(channel.try_send(8), Ok(()));
    assert_eq!(channel.len(), 6);
    assert_eq!(channel.try_send(9), Err(Unsent::Full(9)));
    assert_eq!(drain(&channel), [3, 4, 5, 6, 7, 8]);
}

#[test]
fn what_is_lent_is_there_for_all_who_look() {
    assert_eq!(lent().len(), 5);
    assert!(lent().is_ready());
    let channel = lent();
    channel.put_back(1).unwrap();
    assert_eq!(drain(&channel), [1, 2, 3, 4, 5, 6]);
    let (channel, lamp) = (lent(), Arc::new(Lamp::default()));
    channel.add_signal(lamp.signal()).unwrap();
    assert!(lamp.is_on());
    assert_eq!(drain(&channel), [2, 3, 4, 5, 6]);
    assert!(!lamp.is_on());
    assert_eq!(lent().stop(), [2, 3, 4, 5, 6]);
    let channel = lent();
    channel.close();
    assert_eq!(drain(&channel), [2, 3, 4, 5, 6]);
    assert_eq!(channel.try_receive(), Err(Unreceived::Closed));
}

#[test]
fn while_somebody_waits_to_send_nothing_is_lent() {
    let (channel, parker) = (lent(), Arc::new(Parker::new()));
    channel.try_send(7).unwrap();
    let waiters = [8, 9].map(|value| {
        let waiter = parker.sit(None).unwrap();
        assert_eq!(channel.send(value, &How::Enter(&waiter)), Ok(false));
        waiter
    });
    for (value, waiter) in (2..).zip(&waiters) {
        assert_eq!(channel.try_receive(), Ok(value));
        assert!(!waiter.is_open(), "the room was his");
        assert_eq!(channel.try_send(10), Err(Unsent::Full(10)));
    }
    assert_eq!(drain(&channel), [4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_later_look_sends_and_receives_between_threads() {
    let channel = shared(16);
    assert_eq!(channel.receive_soon(), Err(Unreceived::Empty));
    (1..=16).for_each(|n| channel.send_soon(n).unwrap());
    assert_eq!(channel.send_soon(17), Err(Unsent::Full(17)));
    assert_eq!(channel.receive_soon(), Ok(1));
    let channel = shared(2);
    assert_eq!(channel.send_soon(1), Err(Unsent::Full(1)), "it is too small to wait for room");
    channel.try_send(1).unwrap();
    assert_eq!(channel.receive_soon(), Err(Unreceived::Empty));
    let channel = local(16);
    assert_eq!(channel.send_soon(1), Err(Unsent::Full(1)), "nobody makes room meanwhile");
    channel.try_send(1).unwrap();
    assert_eq!(channel.receive_soon(), Err(Unreceived::Empty), "nobody sends meanwhile");
}

#[test]
fn a_lamp_is_lit_while_a_receive_would_not_wait_until_it_is_taken_off() {
    let channel = Local::new(1);
    let (lamp, late) = (Arc::new(Lamp::default()), Arc::new(Lamp::default()));
    channel.add_signal(lamp.signal()).unwrap();
    channel.try_send(1).unwrap();
    channel.add_signal(late.signal()).unwrap();
    assert!(lamp.is_on() && late.is_on());
    channel.remove_signal(&lamp.signal());
    channel.try_receive().unwrap();
    assert!(lamp.is_on() && !late.is_on());
}

#[test]
fn a_sender_who_went_elsewhere_lights_the_lamp_until_somebody_looks() {
    let (here, there) = (local(0), local(0));
    let lamp = Arc::new(Lamp::default());
    here.add_signal(lamp.signal()).unwrap();
    let waiter = Arc::new(Parker::new()).sit(None).unwrap();
    let case = |channel: &Arc<Channel<u32>>| Case { channel: channel.clone(), send: Some(1) };
    let mut cases = [Some(case(&here)), Some(case(&there))];
    assert_eq!(select(&mut cases, &[0, 1], &How::Enter(&waiter)), Selected::Entered);
    assert!(lamp.is_on(), "its value can be received");
    assert_eq!(there.try_receive(), Ok(1));
    assert!(lamp.is_on(), "nobody has told this channel");
    here.check_signals();
    assert!(!lamp.is_on());
    assert_eq!(here.try_receive(), Err(Unreceived::Empty));
}

// --- threads and groups ------------------------------------------------------------------------

#[test]
fn a_look_before_the_sleep_sees_whether_the_wait_was_served() {
    let waiter = Arc::new(Parker::default()).sit(None).unwrap();
    assert!(!waiter.spin(Moment::NEVER));
    waiter.serve(0, Outcome::Received(1)).unwrap();
    assert!(waiter.spin(Moment::NEVER));
}

#[test]
fn a_look_is_long_once_a_sleep_was_short_and_ends_with_the_time_limit() {
    let looked = |waiter: &Waiter<u32>, until: Moment| {
        let begun = Moment::now();
        assert!(!waiter.spin(until));
        Moment::now().since(begun)
    };
    let long = Span::from_nanos(40_000);
    let waiter = Arc::new(Parker::default()).sit(None).unwrap();
    // Of several, as the system may take the processor away from any.
    let quickest = |until: &dyn Fn() -> Moment| {
        (0..20).map(|_| looked(&waiter, until())).min().unwrap_or(Span::FOREVER)
    };
    assert!(quickest(&|| Moment::NEVER) < long);
    waiter.slept(Span::ZERO);
    assert!(quickest(&|| Moment::NEVER) >= long);
    assert!(quickest(&|| Moment::now().after(Span::from_nanos(5_000))) < long);
    waiter.slept(Span::FOREVER);
    assert!(quickest(&|| Moment::NEVER) < long, "it was in vain");
}

#[test]
fn a_groups_lamp_is_lit_while_a_member_can_go_on() {
    let parker = Arc::new(Parker::<u32>::new());
    let group = parker.open_group().unwrap();
    let lamp = Arc::new(Lamp::default());
    parker.wake(member(group, 3)).unwrap();
    parker.show_woken(group, lamp.signal());
    assert!(lamp.is_on());
    let members = || {
        let mut woken = parker.woken(group);
        std::iter::from_fn(|| woken.pop()).collect::<Vec<_>>()
    };
    assert_eq!(members(), [3]);
    assert!(!lamp.is_on());
    let waiter = parker.sit(Some(member(group, 1))).unwrap();
    waiter.serve(0, Outcome::Sent).unwrap();
    parker.wake(member(group, 0)).unwrap();
    assert_eq!(lamp.told.load(Ordering::Relaxed), 3, "on, off, on: once for two members");
    assert_eq!(members(), [1, 0]);
}

#[test]
fn a_group_that_has_ended_leaves_its_number_and_no_trace() {
    let parker = Parker::<u32>::new();
    let group = parker.open_group().unwrap();
    let lamp = Arc::new(Lamp::default());
    parker.show_woken(group, lamp.signal());
    parker.wake(member(group, 0)).unwrap();
    parker.close_group(group);
    assert_eq!(parker.open_group(), Ok(group));
    assert!(!parker.has_woken(group));
    assert_eq!(Arc::strong_count(&lamp), 1);
}

#[test]
fn a_thread_sleeps_for_a_group_until_its_moment_or_a_members() {
    let parker = Arc::new(Parker::new());
    let group = parker.open_group().unwrap();
    let until = Moment::now().after(Span::from_nanos(5_000_000));
    parker.sleep(group, until);
    assert!(Moment::now() >= until);
    let waiter = parker.sit(Some(member(group, 0))).unwrap();
    let server = waiter.clone();
    let thread = thread::spawn(move || server.serve(0, Outcome::Received(1)).is_ok());
    parker.sleep(group, Moment::NEVER);
    assert!(thread.join().unwrap() && parker.has_woken(group));
}

#[test]
fn a_pump_that_parks_too_late_to_see_its_member_wake_goes_on_at_once() {
    let parker = Arc::new(Parker::<u32>::new());
    let (outer, inner) = (parker.open_group().unwrap(), parker.open_group().unwrap());
    let pump = parker.sit(Some(member(outer, 0))).unwrap();
    parker.wake(member(inner, 0)).unwrap();
    parker.park_pump(inner, Some(&pump));
    assert!(parker.has_woken(outer));
    assert_eq!(pump.leave(), Some(Served { case: 0, outcome: Outcome::Woken }));
}

/// A crew with one job, and how that waits.
fn crew_of_one() -> (Crew<u32>, u32) {
    let mut crew = Crew::new(&Arc::new(Parker::new())).unwrap();
    let number = crew.hire().unwrap();
    (crew, number)
}

fn park(crew: &mut Crew<u32>, number: u32, channel: Option<&Arc<Channel<u32>>>, deadline: Moment) {
    let waiter = crew.sit(number).unwrap();
    let places = channel.map_or(Places::Nowhere, |channel| {
        assert!(matches!(channel.receive(&How::Enter(&waiter)), Ok(None)));
        Places::Channel(Arc::clone(channel))
    });
    crew.park(number, Wait { waiter, places, deadline });
}

#[test]
fn a_turn_that_is_given_away_twice_is_noted_once() {
    let (mut crew, number) = crew_of_one();
    for _ in 0..2 {
        assert!(crew.yield_turn(number).is_ok() && crew.yield_turn(number).is_ok());
        assert_eq!(crew.begin_turn(), 1);
        assert_eq!((crew.next_ready(), crew.next_ready()), (Some(number), None));
    }
}

#[test]
fn a_wait_beneath_another_comes_back_with_what_it_was_given_and_its_time_limit() {
    let (mut crew, number) = crew_of_one();
    let channel: Arc<Channel<u32>> = local(0);
    let now = Moment::now();
    let later = now.after(LATER);
    park(&mut crew, number, Some(&channel), later);
    park(&mut crew, number, None, now);
    assert!(channel.try_send(7).is_ok());
    assert!(crew.next_deadline() == now, "the one above");
    assert!(crew.poll_wait(number, now).is_none());
    assert!(matches!(crew.fetch(number), Some((_, End::Timeout))));
    crew.bring_back(number);
    assert!(crew.next_deadline() == later);
    assert_eq!(crew.begin_turn(), 1);
    assert_eq!(crew.next_ready(), Some(number));
    let received = Served { case: 0, outcome: Outcome::Received(7) };
    assert!(matches!(crew.fetch(number), Some((_, End::Served(served))) if served == received));
    assert!(crew.fetch(number).is_none() && crew.next_deadline() == Moment::NEVER);
}

#[test]
fn waits_beneath_one_that_has_yielded_give_back_what_they_were_given() {
    for all in [false, true] {
        let (mut crew, number) = crew_of_one();
        let channel: Arc<Channel<u32>> = local(0);
        park(&mut crew, number, Some(&channel), Moment::NEVER);
        park(&mut crew, number, Some(&channel), Moment::NEVER);
        park(&mut crew, number, None, Moment::NEVER);
        assert!(channel.try_send(1).is_ok() && channel.try_send(2).is_ok());
        if all {
            crew.abort_all(number);
        } else {
            crew.abort_under(number);
        }
        assert_eq!(crew.has_wait(number), !all);
        let mut left = [channel.try_receive().ok(), channel.try_receive().ok()];
        left.sort_unstable();
        assert_eq!(left, [Some(1), Some(2)]);
        assert!(channel.try_receive().is_err());
    }
}

#[test]
fn a_crew_is_at_no_dead_end_while_a_crew_inside_it_has_one_who_runs() {
    let parker = Arc::new(Parker::<u32>::new());
    let crew = || Rc::new(RefCell::new(Crew::new(&parker).unwrap()));
    let (outer, inner) = (crew(), crew());
    let park = |crew: &RefCell<Crew<u32>>, places| {
        let mut crew = crew.borrow_mut();
        let number = crew.hire().unwrap();
        let waiter = crew.sit(number).unwrap();
        crew.park(number, Wait { waiter: waiter.clone(), places, deadline: Moment::NEVER });
        waiter
    };
    let stuck = park(&inner, Places::Channel(local(0)));
    park(&outer, Places::Run(inner.clone()));
    let runs = inner.borrow_mut().hire().unwrap();
    assert!(!inner.borrow().is_waiting(runs) && inner.borrow().is_waiting(0));
    assert!(outer.borrow().dead_end().is_none());
    inner.borrow_mut().dismiss(runs);
    assert!(outer.borrow().dead_end() == Some(stuck), "it waits longer than the pump");
}

// --- between threads ---------------------------------------------------------------------------

#[test]
fn a_packet_carries_channels_by_number() {
    let handles = ["left", "right"].map(|name| Handle::open(name.as_bytes(), None).unwrap());
    let mut packet = Packet::default();
    let place = packet.begin_table().unwrap();
    for handle in &handles {
        packet.push_channel(handle.clone()).unwrap();
    }
    packet.end_table(place, Sizes { array: 1, entries: 1 });
    assert_eq!(packet.tables(), 1);
    let mut reader = packet.reader();
    reader.next_table().unwrap();
    for (number, handle) in (0..).zip(&handles) {
        assert_eq!(reader.next_piece(), Some(Piece::Channel(number)));
        let carried = packet.channel(number).unwrap();
        assert!(Arc::ptr_eq(carried.channel(), handle.channel()));
    }
    assert_eq!(reader.next_piece(), None);
    assert!(packet.channel(2).is_none());
}
