//! The scheduler and a naive oracle, side by side: what is done to both, what should come of it, and
//! what must be the same.

mod compare;
mod ledger;
mod ops;
mod oracle;
mod pair;

use proptest::test_runner::TestCaseResult;

use crate::scripts::Script;

pub use ops::{bursts, scripts};

/// Does all that is in a script, and compares after every step.
pub fn agree(script: &Script<ops::Setup, ops::Op>) -> TestCaseResult {
    let mut pair = pair::Pair::new(&script.setup)?;
    pair.compare(script.setup.is_curious)?;
    for op in &script.ops {
        pair.apply(op)?;
        pair.compare(script.setup.is_curious)?;
    }
    pair.wind_up()
}
