//! The seeds that random tests run with. `QUEUE_SEED=n` runs one alone, `QUEUE_SEEDS=n` so many, and
//! `QUEUE_FROM=n` those from there on, where it is 0 otherwise.

use std::env;
use std::ops::Range;

/// The seeds of this run: those that the environment names, or else `count` of them.
///
/// # Panics
/// Where the environment names something that is no number.
pub fn seeds(count: u64) -> Range<u64> {
    let number = |name: &str| {
        let text = env::var(name).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
    };
    if let Some(seed) = number("QUEUE_SEED") {
        return seed..seed + 1;
    }
    let from = number("QUEUE_FROM").unwrap_or(0);
    from..from + number("QUEUE_SEEDS").unwrap_or(count)
}
