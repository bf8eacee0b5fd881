//! What a queue counts. Plain numbers, but for the histograms behind the percentiles.

use super::clock::Span;
use super::histogram::Histogram;

/// Sum, number, largest and spread of a series of spans.
#[derive(Debug, Default)]
pub struct Timing {
    /// Nanoseconds in all. A float: no series is long enough to wrap it.
    sum: f64,
    count: u64,
    max: Span,
    histogram: Histogram,
}

/// What there is to say of a series, in milliseconds; 0 without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    pub average_ms: f64,
    pub max_ms: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
}

impl Timing {
    #[inline]
    pub fn add(&mut self, sample: Span) {
        #[allow(clippy::cast_precision_loss)]
        let nanos = sample.nanos() as f64;
        self.sum += nanos;
        self.count += 1;
        self.max = self.max.max(sample);
        self.histogram.add(sample.nanos());
    }

    /// Milliseconds; 0 without samples.
    #[must_use]
    pub fn average_ms(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        #[allow(clippy::cast_precision_loss)]
        let count = self.count as f64;
        self.sum / count / 1e6
    }

    /// Milliseconds; 0 without samples.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        self.max.as_ms()
    }

    /// Milliseconds that this share of the samples, from 0 to 1, does not exceed, as near as
    /// [`Histogram::percentile`] tells; never more than the largest. 0 without samples.
    #[must_use]
    pub fn percentile_ms(&self, share: f64) -> f64 {
        // The middle of the largest sample's part may lie beyond it.
        self.histogram
            .percentile(share)
            .map_or(0.0, |nanos| Span::from_nanos(nanos).min(self.max).as_ms())
    }

    /// All of it at once, for who keeps the queue no longer than that.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            average_ms: self.average_ms(),
            max_ms: self.max_ms(),
            p50_ms: self.percentile_ms(0.50),
            p95_ms: self.percentile_ms(0.95),
            p99_ms: self.percentile_ms(0.99),
        }
    }
}

/// The counters of one queue. At any time
/// `enqueued = succeeded + failed + expired + cancelled + cleared + pending + in flight`.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Jobs that a push took in.
    pub enqueued: u64,
    /// Attempts that ended, whatever their end.
    pub processed: u64,
    pub succeeded: u64,
    /// Jobs whose last attempt raised.
    pub failed: u64,
    pub retried: u64,
    /// Jobs shed unrun, past their start deadline.
    pub expired: u64,
    /// Refused pushes and cleared jobs.
    pub dropped: u64,
    /// The cleared jobs among the dropped.
    pub cleared: u64,
    /// Pending jobs taken out by hand.
    pub cancelled: u64,
    /// From when an attempt might start to its start.
    pub wait: Timing,
    /// From the start of an attempt to its end.
    pub exec: Timing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing_without_samples_is_zero() {
        let timing = Timing::default();
        assert_eq!(timing.summary(), Summary::default());
    }

    #[test]
    fn timing_survives_spans_that_would_overflow_a_sum() {
        let mut timing = Timing::default();
        for _ in 0..4 {
            timing.add(Span::from_nanos(u64::MAX - 1));
        }
        let longest = Span::from_nanos(u64::MAX - 1).as_ms();
        assert!((timing.average_ms() - longest).abs() < longest * 1e-12);
        assert!((timing.max_ms() - longest).abs() < longest * 1e-12);
    }

    #[test]
    fn no_percentile_exceeds_the_largest() {
        // In the lower half of a histogram's part, whose middle is more.
        for nanos in [0, 1, 264, 1 << 20, (1 << 40) + 1, u64::MAX - 1, u64::MAX] {
            let mut timing = Timing::default();
            timing.add(Span::from_nanos(nanos));
            let Summary { max_ms, p50_ms, p95_ms, p99_ms, .. } = timing.summary();
            for ms in [p50_ms, p95_ms, p99_ms, timing.percentile_ms(1.0)] {
                assert!((0.0..=max_ms).contains(&ms), "{ms} exceeds {max_ms}");
            }
        }
    }
}
