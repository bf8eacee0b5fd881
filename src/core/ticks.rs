//! The time at a third of what a reading of the clock costs, for what is only measured: how long jobs
//! wait and run. A job takes two such times, and with the clock they are a tenth of all that it costs.
//!
//! The processor counts ticks. The clock is read every now and then, which shows how long a tick is,
//! and in between the ticks since the last reading tell the time. What decides when something happens
//! goes by the clock itself.

use std::ops::RangeInclusive;

use super::clock::{Moment, Span};

/// How long a reading of the clock is relied on, and the least that shows how long a tick is.
const RELIED_ON: Span = Span::from_nanos(100_000);

/// The most that shows it.
const LONGEST: Span = Span::from_nanos(1_000_000_000);

/// Ticks that a reading takes at most, unless the thread is interrupted in it.
const READING: u64 = 5_000;

/// What `rate` can be: a processor makes a tick in less than 4 ns and in more than the 16th part of one.
const RATES: RangeInclusive<u64> = 1 << 28..=1 << 34;

/// Tells the time of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// The last reading of the clock, if there was one, and the count at that.
    has_read: bool,
    moment: Moment,
    count: u64,
    /// 2^32 times as many nanoseconds as a tick takes.
    rate: u64,
    /// Ticks after the last reading that tell the time; 0: it is not known how long one is.
    relied_on: u64,
    /// All ticks are equally long, and none is left out.
    is_steady: bool,
}

impl Ticks {
    /// Where the count is not steady the time is read from the clock.
    #[must_use]
    pub fn new(is_steady: bool) -> Self {
        Self {
            has_read: false,
            moment: Moment::from_nanos(0),
            count: 0,
            rate: 0,
            relied_on: 0,
            is_steady,
        }
    }

    /// The time, as `clock` would tell it give or take some nanoseconds. `ticks` reads the count.
    ///
    /// ```
    /// use queue::core::{clock::Moment, ticks::Ticks};
    /// let mut ticks = Ticks::new(true);
    /// // Two ticks a nanosecond; the clock is read until that is known.
    /// for nanos in [1_000_000, 2_000_000] {
    ///     ticks.now(|| 2 * nanos, || Moment::from_nanos(nanos));
    /// }
    /// let now = ticks.now(|| 4_000_100, || unreachable!());
    /// assert_eq!(now, Moment::from_nanos(2_000_050));
    /// ```
    #[inline]
    pub fn now(&mut self, ticks: impl Fn() -> u64, clock: impl FnOnce() -> Moment) -> Moment {
        let passed = ticks().wrapping_sub(self.count);
        if passed < self.relied_on {
            return self.moment.after(Span::from_nanos((passed * self.rate) >> 32));
        }
        self.read(&ticks, clock)
    }

    #[cold]
    #[inline(never)]
    fn read(&mut self, ticks: &dyn Fn() -> u64, clock: impl FnOnce() -> Moment) -> Moment {
        if !self.is_steady {
            return clock();
        }
        let before = ticks();
        let now = clock();
        let count = ticks();
        if count.wrapping_sub(before) > READING {
            // Who knows at which of these ticks it was.
            return now;
        }
        let (span, passed) = (now.since(self.moment), count.wrapping_sub(self.count));
        if self.has_read {
            if span < RELIED_ON {
                // Too short to show anything yet.
                return now;
            }
            let rate = (span.nanos() << 32).checked_div(passed).unwrap_or(0);
            if span <= LONGEST && RATES.contains(&rate) {
                self.rate = rate;
                self.relied_on = (RELIED_ON.nanos() << 32) / rate;
            }
        }
        self.has_read = true;
        (self.moment, self.count) = (now, count);
        now
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock and a count that tests move.
    struct Watch {
        nanos: Cell<u64>,
        ticks: Cell<u64>,
        readings: Cell<u32>,
        /// Nanoseconds that pass after a reading of the clock.
        interrupt: Cell<u64>,
    }

    impl Watch {
        fn new() -> Self {
            Self {
                nanos: Cell::new(50_000_000),
                ticks: Cell::new(u64::MAX - 1_000_000),
                readings: Cell::new(0),
                interrupt: Cell::new(0),
            }
        }

        fn pass(&self, nanos: u64, ticks: u64) {
            self.nanos.set(self.nanos.get() + nanos);
            self.ticks.set(self.ticks.get().wrapping_add(ticks));
        }

        /// How far off the time is that `ticks` tells.
        fn error(&self, ticks: &mut Ticks) -> u64 {
            let right = self.nanos.get();
            let clock = || {
                self.readings.set(self.readings.get() + 1);
                self.pass(self.interrupt.get(), 3 * self.interrupt.get());
                Moment::from_nanos(right)
            };
            ticks.now(|| self.ticks.get(), clock).nanos().abs_diff(right)
        }
    }

    #[test]
    fn the_clock_is_read_once_in_a_while_and_the_time_is_right() {
        let (watch, mut ticks) = (Watch::new(), Ticks::new(true));
        for _ in 0..100_000 {
            watch.pass(301, 900);
            assert!(watch.error(&mut ticks) <= 1);
        }
        // Each 100 us, 30 ms long, and at first as often as it is asked.
        assert!(watch.readings.get() < 301 + 340, "{} readings", watch.readings.get());
    }

    #[test]
    fn a_pause_however_long_and_a_count_that_jumps_change_nothing() {
        let (watch, mut ticks) = (Watch::new(), Ticks::new(true));
        let back = u64::MAX - 1_000_000_000;
        let jumps =
            [(5_000_000_000, 15_000_000_000), (1, u64::MAX / 2), (1_000, back), (1, 1 << 50)];
        for (nanos, count) in jumps.into_iter().cycle().take(50) {
            watch.pass(nanos, count);
            for _ in 0..1_000 {
                assert!(watch.error(&mut ticks) <= 1);
                watch.pass(200, 600);
            }
        }
    }

    #[test]
    fn the_first_reading_shows_nothing_whatever_the_count_is() {
        for count in [0, 1, 1_000_000_000, 1 << 40, 1 << 48, 1 << 63] {
            let (watch, mut ticks) = (Watch::new(), Ticks::new(true));
            watch.ticks.set(count);
            for nanos in [10_000, 30_000_000, 1_000, 2_000_000_000, 50_000, 1_000_000] {
                watch.pass(nanos, 3 * nanos);
                assert!(watch.error(&mut ticks) <= 1);
            }
        }
    }

    #[test]
    fn nothing_is_learned_from_a_reading_that_was_interrupted() {
        let (watch, mut ticks) = (Watch::new(), Ticks::new(true));
        for round in 0..1_000 {
            watch.interrupt.set(if round % 3 == 0 { 4_000_000 } else { 0 });
            watch.pass(150_000, 450_000);
            assert_eq!(watch.error(&mut ticks), 0);
            watch.interrupt.set(0);
            watch.pass(150, 450);
            assert!(watch.error(&mut ticks) <= 1);
        }
    }

    #[test]
    fn where_the_count_is_not_steady_it_is_the_clock() {
        for (is_steady, step) in [(true, 0), (true, u64::MAX / 3), (false, 200_000)] {
            let (watch, mut ticks) = (Watch::new(), Ticks::new(is_steady));
            for _ in 0..1_000 {
                watch.pass(77_777, step);
                assert_eq!(watch.error(&mut ticks), 0);
            }
            assert_eq!(watch.readings.get(), 1_000);
        }
    }
}
