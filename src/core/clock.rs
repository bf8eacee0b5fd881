//! Monotonic time: moments, spans, and the one place where milliseconds turn into either.

use std::time::{Duration, Instant};

use once_cell::sync::Lazy;

/// Where the process's count of nanoseconds begins.
static ANCHOR: Lazy<Instant> = Lazy::new(Instant::now);

const NANOS_PER_MS: f64 = 1e6;

/// A length of time in nanoseconds; [`Span::FOREVER`] is a case of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(u64);

impl Span {
    pub const ZERO: Self = Self(0);
    /// Longer than anything: what `math.huge` milliseconds are.
    pub const FOREVER: Self = Self(u64::MAX);
    /// The longest span that still ends, some 584 years.
    const LONGEST: Self = Self(u64::MAX - 1);

    /// Milliseconds, as a script gives them: fractions count and are rounded up, a negative number
    /// is no time, infinity is for ever, and a number too large for the clock is a very long time.
    /// `None` for NaN.
    ///
    /// ```
    /// use queue::core::clock::Span;
    /// assert_eq!(Span::from_ms(1.5), Some(Span::from_nanos(1_500_000)));
    /// assert_eq!(Span::from_ms(-3.0), Some(Span::ZERO));
    /// assert_eq!(Span::from_ms(f64::INFINITY), Some(Span::FOREVER));
    /// assert_eq!(Span::from_ms(f64::NAN), None);
    /// ```
    #[must_use]
    pub fn from_ms(ms: f64) -> Option<Self> {
        if ms.is_nan() {
            return None;
        }
        if ms == f64::INFINITY {
            return Some(Self::FOREVER);
        }
        // The cast saturates: below zero it gives 0, beyond the range the largest number.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let nanos = (ms * NANOS_PER_MS).ceil() as u64;
        Some(Self(nanos).min(Self::LONGEST))
    }

    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Milliseconds; infinity for [`Span::FOREVER`].
    #[must_use]
    pub fn as_ms(self) -> f64 {
        if self == Self::FOREVER {
            return f64::INFINITY;
        }
        #[allow(clippy::cast_precision_loss)]
        let nanos = self.0 as f64;
        nanos / NANOS_PER_MS
    }

    /// For the standard library's timed waits.
    #[must_use]
    pub const fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

/// A point on the monotonic clock; [`Moment::NEVER`] is a case of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Later than anything that comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Reads the clock. It does not run backwards and nobody can set it.
    #[must_use]
    pub fn now() -> Self {
        let elapsed = Instant::now().saturating_duration_since(*ANCHOR);
        Self(elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos()))
    }

    /// A moment of a manual clock, for tests.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the process's clock began.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// `limit` from now. Reads the clock only where there is a limit.
    #[must_use]
    pub fn deadline(limit: Span) -> Self {
        if limit == Span::FOREVER { Self::NEVER } else { Self::now().after(limit) }
    }

    /// This moment plus `span`. It never overflows: what is finite stays short of [`Moment::NEVER`].
    #[must_use]
    pub fn after(self, span: Span) -> Self {
        if span == Span::FOREVER || self == Self::NEVER {
            return Self::NEVER;
        }
        Self(self.0.saturating_add(span.0).min(u64::MAX - 1))
    }

    /// How long before this moment `earlier` was; no time where it was later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Span {
        if self == Self::NEVER {
            return Span::FOREVER;
        }
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Milliseconds since the process's clock began.
    #[must_use]
    pub fn as_ms(self) -> f64 {
        Span(self.0).as_ms()
    }

    /// The beat after this one, of those that lie `interval` apart: the next one, or, where that and
    /// perhaps others were missed by `now`, the latest of them.
    #[must_use]
    pub fn following_beat(self, interval: Span, now: Self) -> Self {
        let next = self.after(interval);
        if next > now {
            return next;
        }
        let passed = now.since(self).0 / interval.0.max(1);
        self.after(Span(interval.0.saturating_mul(passed)))
    }

    /// The first moment after `now` that lies a whole number of `interval`s after `self`: the next
    /// beat of a ticker that keeps its phase and makes up for nothing.
    #[must_use]
    pub fn next_beat(self, interval: Span, now: Self) -> Self {
        if interval == Span::FOREVER || self == Self::NEVER {
            return Self::NEVER;
        }
        let passed = now.since(self).0 / interval.0.max(1);
        self.after(Span(interval.0.saturating_mul(passed.saturating_add(1)).min(u64::MAX - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn every_number_of_milliseconds_has_a_span() {
        let ms = |n: f64| Span::from_ms(n).map(Span::nanos);
        assert_eq!(ms(0.0), Some(0));
        assert_eq!(ms(-0.0), Some(0));
        assert_eq!(ms(f64::NEG_INFINITY), Some(0));
        assert_eq!(ms(1e-9), Some(1), "a positive span never rounds to nothing");
        assert_eq!(ms(2f64.powi(31)), Some((1 << 31) * MS));
        assert_eq!(ms(2f64.powi(32)), Some((1 << 32) * MS));
        assert_eq!(ms(2f64.powi(53)), Some(u64::MAX - 1));
        assert_eq!(ms(1e300), Some(u64::MAX - 1), "finite stays finite");
        assert_eq!(ms(f64::INFINITY), Some(u64::MAX));
        assert_eq!(ms(f64::NAN), None);
    }

    #[test]
    fn moments_never_overflow() {
        let late = Moment::from_nanos(u64::MAX - 5);
        assert!(late.after(Span::from_nanos(100)) < Moment::NEVER);
        assert_eq!(late.after(Span::FOREVER), Moment::NEVER);
        assert_eq!(Moment::NEVER.after(Span::ZERO), Moment::NEVER);
        assert_eq!(Moment::from_nanos(3).since(late), Span::ZERO);
        assert_eq!(Moment::NEVER.since(late), Span::FOREVER);
    }

    #[test]
    fn the_clock_does_not_run_backwards() {
        let mut last = Moment::now();
        for _ in 0..10_000 {
            let now = Moment::now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn a_beat_keeps_its_phase_over_a_day_and_skips_what_was_missed() {
        let interval = Span::from_nanos(7 * MS + 1);
        let first = Moment::from_nanos(12_345);
        let mut beat = first;
        for n in 1..=100_000u64 {
            // The thread wakes late by a varying while.
            beat = beat.next_beat(interval, Moment::from_nanos(beat.0 + n % (5 * MS)));
            assert_eq!(beat.0, first.0 + n * interval.0);
        }
        let missed = beat.next_beat(interval, Moment::from_nanos(beat.0 + 10 * interval.0 + 3));
        assert_eq!(missed.0, beat.0 + 11 * interval.0);
    }

    #[test]
    fn of_beats_that_were_missed_the_latest_follows() {
        let beat = Moment::from_nanos(100);
        let following = |now| beat.following_beat(Span::from_nanos(10), Moment::from_nanos(now)).0;
        assert_eq!([90, 100, 109].map(following), [110; 3], "the next is still to come");
        assert_eq!([110, 119, 120, 129].map(following), [110, 110, 120, 120]);
        let last = Moment::from_nanos(u64::MAX - 1);
        assert_eq!(beat.following_beat(Span::FOREVER, last), Moment::NEVER);
        assert!(beat.following_beat(Span::from_nanos(1), last) < Moment::NEVER);
    }

    #[test]
    fn a_beat_of_a_huge_interval_does_not_overflow() {
        let now = Moment::from_nanos(5);
        let beat = now.next_beat(Span::LONGEST, now);
        assert!(beat > now && beat < Moment::NEVER);
        assert_eq!(now.next_beat(Span::FOREVER, now), Moment::NEVER);
    }
}
