//! The seeds that random tests run with. `QUEUE_SEED=n` runs one alone, `QUEUE_SEEDS=n` the first
//! `n`.

use std::env;
use std::ops::Range;

/// The seeds of this run: those that the environment names, or else the first `count`.
///
/// # Panics
/// Where the environment names something that is no number.
pub fn seeds(count: u64) -> Range<u64> {
    let number = |name: &str| {
        let text = env::var(name).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
    };
    number("QUEUE_SEED").map_or_else(|| 0..number("QUEUE_SEEDS").unwrap_or(count), |n| n..n + 1)
}
