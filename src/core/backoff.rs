//! How long a job that raised waits for its next attempt.

/// Delays that grow by a factor from one attempt to the next.
///
/// Every field is a finite number from 0 on, but that `max` may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Milliseconds after the first attempt.
    pub base: f64,
    /// 1 for delays that stay the same.
    pub factor: f64,
    /// Milliseconds that no delay exceeds, whatever its jitter.
    pub max: f64,
    /// By how large a share of itself a delay may be shorter or longer, so that jobs which failed
    /// together do not come back together.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: 100.0, factor: 2.0, max: 60_000.0, jitter: 0.1 }
    }
}

impl Backoff {
    /// The milliseconds to wait after this attempt, the first being 1. `spread`, from -1 up to 1,
    /// says how much of the jitter applies, and to which side: the caller draws it, for tests need
    /// the same delays every time.
    ///
    /// It is a finite number from 0 on, for any attempt.
    ///
    /// ```
    /// use queue::core::backoff::Backoff;
    /// let backoff = Backoff { base: 100.0, factor: 2.0, max: 1_000.0, jitter: 0.5 };
    /// assert_eq!(backoff.delay_ms(3, 0.0), 400.0);
    /// assert_eq!(backoff.delay_ms(3, -1.0), 200.0);
    /// assert_eq!(backoff.delay_ms(4, 0.9), 1_000.0);
    /// assert_eq!(backoff.delay_ms(u64::MAX, 0.0), 1_000.0);
    /// ```
    #[must_use]
    pub fn delay_ms(&self, attempt: u64, spread: f64) -> f64 {
        // However often no time is multiplied: the power may be infinite, and 0 × ∞ is NaN.
        if self.base == 0.0 {
            return 0.0;
        }
        #[allow(clippy::cast_precision_loss, reason = "nobody tries as often as that")]
        let steps = attempt.saturating_sub(1) as f64;
        // Made finite, for it may yet be multiplied by a sway of 0.
        let delay = (self.base * self.factor.powf(steps)).min(f64::MAX);
        let sway = (1.0 + self.jitter * spread).max(0.0);
        (delay * sway).min(self.max).min(f64::MAX)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the results are exact")]
mod tests {
    use super::*;

    const PLAIN: Backoff = Backoff { base: 100.0, factor: 2.0, max: f64::INFINITY, jitter: 0.0 };

    #[test]
    fn delays_grow_up_to_the_largest() {
        let capped = Backoff { max: 500.0, ..PLAIN };
        let delays = [1, 2, 3, 4, 5].map(|attempt| capped.delay_ms(attempt, 0.0));
        assert_eq!(delays, [100.0, 200.0, 400.0, 500.0, 500.0]);
        assert_eq!(capped.delay_ms(0, 0.0), 100.0, "there is no attempt before the first");
    }

    #[test]
    fn a_factor_below_one_shrinks_and_zero_ends_the_waiting() {
        let shrinking = Backoff { factor: 0.5, ..PLAIN };
        assert_eq!([1, 2, 3].map(|n| shrinking.delay_ms(n, 0.0)), [100.0, 50.0, 25.0]);
        assert_eq!(shrinking.delay_ms(u64::MAX, 0.0), 0.0);
        let none = Backoff { factor: 0.0, ..PLAIN };
        assert_eq!([1, 2, u64::MAX].map(|n| none.delay_ms(n, 0.0)), [100.0, 0.0, 0.0]);
    }

    #[test]
    fn jitter_goes_both_ways_but_not_past_the_largest_nor_below_none() {
        let swaying = Backoff { max: 420.0, jitter: 0.25, ..PLAIN };
        assert_eq!(
            [-1.0, 0.0, 1.0].map(|spread| swaying.delay_ms(1, spread)),
            [75.0, 100.0, 125.0]
        );
        assert_eq!(
            [-1.0, 0.0, 1.0].map(|spread| swaying.delay_ms(3, spread)),
            [300.0, 400.0, 420.0]
        );
        let wild = Backoff { jitter: 3.0, ..PLAIN };
        assert_eq!([-1.0, 0.5].map(|spread| wild.delay_ms(1, spread)), [0.0, 250.0]);
    }

    #[test]
    fn a_delay_that_overflows_is_the_largest() {
        assert_eq!(PLAIN.delay_ms(u64::MAX, 0.0), f64::MAX);
        assert_eq!(Backoff { max: 9.0, ..PLAIN }.delay_ms(u64::MAX, 0.0), 9.0);
        assert_eq!(Backoff { jitter: 1.0, ..PLAIN }.delay_ms(u64::MAX, -1.0), 0.0, "∞ × 0");
        assert_eq!(Backoff { base: 0.0, ..PLAIN }.delay_ms(u64::MAX, 0.0), 0.0, "0 × ∞");
    }

    #[test]
    fn every_delay_is_a_finite_time() {
        const NUMBERS: [f64; 9] =
            [0.0, -0.0, 5e-324, f64::MIN_POSITIVE, 0.5, 1.0, 1.000_001, 1e9, f64::MAX];
        const ATTEMPTS: [u64; 7] = [0, 1, 2, 3, 1_075, 1 << 53, u64::MAX];
        let each = |base: f64, factor: f64, max: f64, jitter: f64| {
            let backoff = Backoff { base, factor, max, jitter };
            for attempt in ATTEMPTS {
                for spread in [-1.0, -0.5, -5e-324, 0.0, 0.5, 1.0 - f64::EPSILON] {
                    let delay = backoff.delay_ms(attempt, spread);
                    let is_time = delay.is_finite() && delay >= 0.0;
                    assert!(is_time && delay <= max, "{backoff:?}, {attempt}, {spread}: {delay}");
                }
            }
        };
        for base in NUMBERS {
            for factor in NUMBERS {
                for jitter in NUMBERS {
                    each(base, factor, f64::INFINITY, jitter);
                    for max in NUMBERS {
                        each(base, factor, max, jitter);
                    }
                }
            }
        }
    }
}
