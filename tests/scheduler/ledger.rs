//! The values of the jobs: numbers, of which every one that was given to the scheduler must come
//! back, once.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// What is kept with a job; 0 is no number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    pub own: u64,
    /// What comes to it when the job has failed and is kept.
    pub notes: u64,
}

impl Held {
    fn numbers(self) -> impl Iterator<Item = u64> {
        [self.own, self.notes].into_iter().filter(|&number| number != 0)
    }
}

/// The numbers that the scheduler holds.
#[derive(Debug, Default)]
pub struct Ledger {
    given: u64,
    out: BTreeSet<u64>,
}

impl Ledger {
    /// A number that was never there before.
    pub fn give(&mut self) -> u64 {
        self.given += 1;
        self.out.insert(self.given);
        self.given
    }

    /// These have come back.
    pub fn free(&mut self, held: Held) -> TestCaseResult {
        for number in held.numbers() {
            prop_assert!(self.out.remove(&number), "number {number} has come back twice");
        }
        Ok(())
    }

    /// These are all that are held.
    pub fn compare(&self, all: impl Iterator<Item = Held>) -> TestCaseResult {
        let mut seen: Vec<u64> = all.flat_map(Held::numbers).collect();
        seen.sort_unstable();
        prop_assert!(seen.iter().eq(&self.out), "{:?} are held, not {:?}", seen, self.out);
        Ok(())
    }
}
