//! Timers: one thread per live `after` or `tick`, which sleeps at its channel and feeds it.
//!
//! The thread ends when the channel is closed, however that comes about: by its own last value, by
//! a stop or close, or because nobody holds the channel's handle any more.

use std::io;
use std::thread;

use super::channel::Crossing;
use super::clock::{Moment, Span};
use super::sync::Arc;

/// Bytes of stack. With 16 KiB a panic in the thread would kill the process.
const STACK: usize = 64 * 1024;

/// Sends `value` once, `delay` from now, and closes the channel with it.
///
/// # Errors
/// The system's, where it refuses a thread; then nothing is left behind.
pub fn after<T: Send + 'static>(
    channel: &Arc<Crossing<T>>,
    delay: Span,
    value: T,
) -> io::Result<()> {
    let due = Moment::now().after(delay);
    channel.expect_feed(due);
    let channel = Arc::clone(channel);
    spawn("queue-after", move || {
        if channel.sleep_open(due) {
            channel.feed_last(value);
        }
    })
}

/// Sends `value` at every `interval`, first after one, until the channel is closed. Beats that were
/// missed are not made up for, and those that come keep the phase.
///
/// # Errors
/// The system's, where it refuses a thread; then nothing is left behind.
pub fn tick<T: Clone + Send + 'static>(
    channel: &Arc<Crossing<T>>,
    interval: Span,
    value: T,
) -> io::Result<()> {
    let mut beat = Moment::now().after(interval);
    channel.expect_feed(beat);
    let channel = Arc::clone(channel);
    spawn("queue-tick", move || {
        while channel.sleep_open(beat) && channel.feed(value.clone()) {
            beat = beat.next_beat(interval, Moment::now());
        }
    })
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // Dropping the handle detaches the thread: nobody need wait for its end.
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(body).map(drop)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::channel::{Unreceived, Wait};
    use super::super::parker::Parker;
    use super::super::waiter::{Outcome, Served};
    use super::*;

    fn ms(n: u64) -> Span {
        Span::from_nanos(n * 1_000_000)
    }

    fn wait_for<T>(channel: &Crossing<T>) -> Option<Served<T>> {
        let waiter = Arc::new(Parker::new()).sit(None).unwrap();
        match channel.receive(&Wait::EnterFed(&waiter)) {
            Ok(Some(value)) => Some(Served { case: 0, outcome: Outcome::Received(value) }),
            Ok(None) => waiter.sleep(Moment::NEVER).then(|| waiter.leave())?,
            Err(_) => None,
        }
    }

    #[test]
    fn after_sends_once_and_closes() {
        let channel = Arc::new(Crossing::timer(true));
        let start = Moment::now();
        after(&channel, ms(10), 7).unwrap();
        assert_eq!(wait_for(&channel), Some(Served { case: 0, outcome: Outcome::Received(7) }));
        assert!(Moment::now().since(start) >= ms(10), "never early");
        assert_eq!(channel.receive(&Wait::No), Err(Unreceived::Closed));
    }

    #[test]
    fn tick_goes_on_until_the_channel_is_closed_and_then_lets_go_of_it() {
        let channel = Arc::new(Crossing::timer(true));
        tick(&channel, ms(2), 1).unwrap();
        for _ in 0..5 {
            assert_eq!(wait_for(&channel), Some(Served { case: 0, outcome: Outcome::Received(1) }));
        }
        channel.stop();
        assert_eq!(channel.receive(&Wait::No), Err(Unreceived::Closed));
        let patience = Moment::now().after(ms(10_000));
        while Arc::strong_count(&channel) > 1 {
            assert!(Moment::now() < patience, "the thread has not ended");
            thread::yield_now();
        }
    }

    #[test]
    fn a_closed_after_ends_long_before_its_time() {
        let channel = Arc::new(Crossing::timer(true));
        after(&channel, ms(3_600_000), 1).unwrap();
        channel.close();
        assert!(wait_for(&channel).is_none());
        let patience = Moment::now().after(ms(10_000));
        while Arc::strong_count(&channel) > 1 {
            assert!(Moment::now() < patience, "the thread has not ended");
            thread::yield_now();
        }
    }
}
