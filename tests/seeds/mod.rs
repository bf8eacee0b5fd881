//! Runs a test once for each of many seeds. A failing seed is printed, with the shortest run of
//! operations that still fails; `QUEUE_SEED=n` runs that seed alone, `QUEUE_SEEDS=n` the first `n`.

use std::env;
use std::fmt::{self, Debug, Formatter};
use std::ops::Range;

use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config, RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner, contextualize_config,
};

/// What is done to a newly made thing, step by step.
pub struct Script<Setup, Op> {
    pub setup: Setup,
    pub ops: Vec<Op>,
}

/// One line for each step.
impl<Setup: Debug, Op: Debug> Debug for Script<Setup, Op> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.setup)?;
        self.ops.iter().try_for_each(|op| write!(f, "\n    {op:?}"))
    }
}

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

/// Puts the first `count` seeds, or those that the environment names, to `property`.
///
/// # Panics
/// With the first seed that fails, after it was made as small as it gets.
pub fn check<S: Strategy>(
    test: &str,
    count: u64,
    strategy: &S,
    property: impl Fn(S::Value) -> TestCaseResult,
) {
    let config = Config {
        cases: 1,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..contextualize_config(Config::default())
    };
    for seed in seeds(count) {
        // Of all the algorithms this one is the fastest, and a seed of zeroes is no seed for it.
        let bytes = (u128::from(seed) | 1 << 64).to_le_bytes();
        let rng = TestRng::from_seed(RngAlgorithm::XorShift, &bytes);
        match TestRunner::new_with_rng(config.clone(), rng).run(strategy, &property) {
            Ok(()) => {}
            Err(TestError::Fail(reason, input)) => panic!(
                "seed {seed} failed; QUEUE_SEED={seed} cargo test {test} runs it again\n\
                 {reason}\nafter the last of these:\n{input:?}"
            ),
            Err(TestError::Abort(reason)) => panic!("seed {seed} was given up: {reason}"),
        }
    }
}
