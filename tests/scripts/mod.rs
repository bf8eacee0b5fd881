//! Random scripts: a property is put to one for each of many seeds. A seed that fails is printed,
//! with the shortest script that still fails.

use std::fmt::{self, Debug, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config, Reason, RngAlgorithm, TestCaseError, TestCaseResult, TestError, TestRng, TestRunner,
    contextualize_config,
};

use crate::seeds::seeds;

/// What is done to a newly made thing, step by step.
#[derive(Clone)]
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

/// Puts a script for each of the first `count` seeds, or of those that the environment names, to
/// `property`.
///
/// # Panics
/// With the first seed that fails, after its script was made as short as it gets.
pub fn check<S, Setup, Op>(
    test: &str,
    count: u64,
    strategy: &S,
    property: impl Fn(&Script<Setup, Op>) -> TestCaseResult,
) where
    S: Strategy<Value = Script<Setup, Op>>,
    Setup: Clone + Debug,
    Op: Clone + Debug,
{
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
        let mut runner = TestRunner::new_with_rng(config.clone(), rng);
        match runner.run(strategy, |script| property(&script)) {
            Ok(()) => {}
            Err(TestError::Fail(reason, script)) => {
                let (reason, script) = shorten(&property, reason, script);
                panic!(
                    "seed {seed} failed; QUEUE_SEED={seed} cargo test {test} runs it again\n\
                     {reason}\nafter these:\n{script:?}"
                )
            }
            Err(TestError::Abort(reason)) => panic!("seed {seed} was given up: {reason}"),
        }
    }
}

/// Leaves out every step without which the script still fails. The runner did so before it made the
/// steps themselves simpler; now more of them can go.
fn shorten<Setup: Clone, Op: Clone>(
    property: &impl Fn(&Script<Setup, Op>) -> TestCaseResult,
    mut reason: Reason,
    mut script: Script<Setup, Op>,
) -> (Reason, Script<Setup, Op>) {
    let mut place = script.ops.len();
    while place > 0 {
        place -= 1;
        let mut shorter = script.clone();
        shorter.ops.remove(place);
        // A panic is a failure too, but one without a reason: it stays as it was.
        let outcome = catch_unwind(AssertUnwindSafe(|| property(&shorter)));
        if let Ok(Err(TestCaseError::Fail(why))) = outcome {
            (reason, script) = (why, shorter);
            place = script.ops.len();
        }
    }
    (reason, script)
}
