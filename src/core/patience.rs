//! How long a thread looks for the end of a wait before it goes to sleep.
//!
//! A sleep and a wake-up take some ten microseconds each. Two threads that answer each other save
//! both where each looks for longer than the other takes to wake up; after that they meet awake, and
//! a round takes one or two of them. Where the other never is that quick, because it has more to do or has
//! to run on the same processor, a long look is time lost. So it is tried after a sleep that turned
//! out short, and each time that it was in vain it waits for twice as many of those.

use std::sync::atomic::{AtomicU32, Ordering};

use super::clock::Span;

const SHORT: Span = Span::from_nanos(2_000);
const LONG: Span = Span::from_nanos(40_000);

/// Short sleeps at most before a long look is tried again.
const MOST_DOUBT: u32 = 1 << 12;

/// What a thread has seen of its waits. It alone reads and writes it.
pub struct Patience {
    /// Short sleeps to come before the next long look.
    doubt: AtomicU32,
    /// How many those are after the next long look that is in vain.
    next: AtomicU32,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { doubt: AtomicU32::new(1), next: AtomicU32::new(2) }
    }

    /// How long to look for the end of the next wait.
    #[must_use]
    pub fn span(&self) -> Span {
        if self.doubt.load(Ordering::Relaxed) == 0 { LONG } else { SHORT }
    }

    /// The look has seen the end of the wait.
    pub fn was_right(&self) {
        if self.doubt.load(Ordering::Relaxed) == 0 {
            self.next.store(2, Ordering::Relaxed);
        }
    }

    /// The look was in vain; the sleep after it took so long till the wait was served, or it never
    /// was.
    pub fn was_wrong(&self, slept: Span) {
        let doubt = self.doubt.load(Ordering::Relaxed);
        if doubt == 0 {
            let next = self.next.load(Ordering::Relaxed);
            self.doubt.store(next, Ordering::Relaxed);
            self.next.store((next * 2).min(MOST_DOUBT), Ordering::Relaxed);
        } else if slept < LONG {
            self.doubt.store(doubt - 1, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_long_look_comes_after_a_short_sleep_and_lasts_while_it_is_right() {
        let patience = Patience::new();
        assert_eq!(patience.span(), SHORT);
        patience.was_wrong(LONG);
        assert_eq!(patience.span(), SHORT, "it would have been in vain");
        patience.was_wrong(SHORT);
        assert_eq!(patience.span(), LONG);
        for _ in 0..100 {
            patience.was_right();
            assert_eq!(patience.span(), LONG);
        }
    }

    #[test]
    fn long_looks_in_vain_become_rare() {
        let patience = Patience::new();
        let mut long = 0;
        for _ in 0..100_000 {
            long += u32::from(patience.span() == LONG);
            patience.was_wrong(SHORT);
        }
        assert!((13..50).contains(&long), "{long}");
        // Until one is right.
        while patience.span() == SHORT {
            patience.was_wrong(SHORT);
        }
        patience.was_right();
        patience.was_wrong(SHORT);
        patience.was_wrong(SHORT);
        patience.was_wrong(SHORT);
        assert_eq!(patience.span(), LONG);
    }
}
