//! Random order, for a fair choice. Not for secrets.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

thread_local! {
    /// The state of the generator; the standard library's own random keys seed it.
    static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish() | 1);
}

/// The next number of a xorshift generator (Marsaglia, 2003).
fn next() -> u64 {
    STATE.with(|state| {
        let mut bits = state.get();
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        state.set(bits);
        bits
    })
}

/// A number below `bound`, each as likely as any other but for one part in 2³².
fn below(bound: usize) -> usize {
    let high = next() >> 32;
    usize::try_from((high * bound as u64) >> 32).unwrap_or(0)
}

/// A number from -1 up to, but not, 1, each as likely as any other.
#[must_use]
pub fn spread() -> f64 {
    // 53 bits, which is what a float holds.
    #[allow(clippy::cast_precision_loss)]
    let bits = (next() >> 11) as f64;
    bits / 2f64.powi(52) - 1.0
}

/// Puts the items in a random order, all orders being as likely (Fisher and Yates).
pub fn shuffle<T>(items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last + 1));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_as_likely() {
        let mut first = [0u32; 4];
        for _ in 0..40_000 {
            let mut items = [0, 1, 2, 3];
            shuffle(&mut items);
            first[items[0]] += 1;
        }
        assert!(first.iter().all(|count| (9_500..10_500).contains(count)), "{first:?}");
    }
}
