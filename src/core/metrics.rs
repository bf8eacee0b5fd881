//! What a queue counts. Plain numbers, no allocation.

use super::clock::Span;

/// Sum, number and largest of a series of spans.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Milliseconds in all. A float: no series is long enough to wrap it.
    sum: f64,
    count: u64,
    max: Span,
}

impl Timing {
    pub fn add(&mut self, sample: Span) {
        self.sum += sample.as_ms();
        self.count += 1;
        self.max = self.max.max(sample);
    }

    /// Milliseconds; 0 without samples.
    #[must_use]
    pub fn average_ms(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        #[allow(clippy::cast_precision_loss)]
        let count = self.count as f64;
        self.sum / count
    }

    /// Milliseconds; 0 without samples.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        self.max.as_ms()
    }
}

/// The counters of one queue. At any time
/// `enqueued = succeeded + failed + expired + cancelled + cleared + pending + in flight`.
#[derive(Clone, Copy, Debug, Default)]
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
        assert!(timing.average_ms().abs() < f64::EPSILON && timing.max_ms().abs() < f64::EPSILON);
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
}
