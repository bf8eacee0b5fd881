//! The percentiles of a timing against a naive oracle: all the samples, sorted.

#![cfg(not(loom))]
#![allow(clippy::cast_precision_loss, reason = "the comparison leaves room for it")]

mod scripts;
mod seeds;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use queue::core::clock::Span;
use queue::core::metrics::Timing;

use scripts::Script;

/// How far a percentile may be off, as a share of it.
const ERROR: f64 = 1.0 / 64.0;

/// A share to ask for, and samples in nanoseconds.
type Series = Script<f64, u64>;

/// The shares that are asked for in practice, and any other.
fn shares() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(0.5), Just(0.95), Just(0.99), Just(1.0), 0.0..1.0]
}

/// Samples of a random number of bits, so that every octave is as likely; a series keeps to a few
/// octaves or roams through them all.
fn series() -> impl Strategy<Value = Series> {
    let octaves = (0..=u64::BITS, 0..=u64::BITS);
    (shares(), octaves).prop_flat_map(|(setup, (least, more))| {
        let sample = (least..=(least + more).min(u64::BITS), any::<u64>())
            .prop_map(|(bits, nanos)| nanos.checked_shr(u64::BITS - bits).unwrap_or(0));
        vec(sample, 1..2_000).prop_map(move |ops| Script { setup, ops })
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 on")]
fn nearest_rank(sorted: &[u64], share: f64) -> u64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.max(1) - 1]
}

fn is_near(series: &Series) -> TestCaseResult {
    // Series are made shorter when they fail, down to none.
    let Some(&max) = series.ops.iter().max() else { return Ok(()) };
    let mut timing = Timing::default();
    series.ops.iter().for_each(|&nanos| timing.add(Span::from_nanos(nanos)));
    let mut sorted = series.ops.clone();
    sorted.sort_unstable();

    let exact = nearest_rank(&sorted, series.setup) as f64;
    let found = timing.percentile_ms(series.setup) * 1e6;
    // The finest parts are 8 ns wide. The rest is what floats lose on the way to ms and back.
    let room = (exact * ERROR).max(4.0) + exact * 1e-12;
    prop_assert!((found - exact).abs() <= room, "{found} is not {exact}");

    let summary = timing.summary();
    let ascending = [0.0, summary.p50_ms, summary.p95_ms, summary.p99_ms, summary.max_ms];
    prop_assert!(ascending.is_sorted(), "{summary:?}");
    prop_assert!(summary.max_ms <= max as f64 / 1e6, "{summary:?}");
    Ok(())
}

#[test]
fn percentiles_are_near_the_exact_ones() {
    scripts::check("percentiles_are_near_the_exact_ones", 1_000, &series(), is_near);
}
