//! A close races sends, receives and selects of real threads, many times over; too long for every
//! day:
//!
//! `cargo test --release --test stress -- --ignored --nocapture`
//!
//! `QUEUE_SEED=n` runs one round, `QUEUE_SEEDS=n` so many.

#![cfg(not(loom))]

mod people;
mod seeds;

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Rounds, where the environment does not say otherwise.
const ROUNDS: u64 = 1_000;

/// A round that takes longer never ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the process where a round hangs.
fn watch(round: &AtomicU64, is_done: &mpsc::Receiver<()>) {
    let mut last = (u64::MAX, Instant::now());
    while is_done.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        let seed = round.load(Ordering::Relaxed);
        if seed != last.0 {
            last = (seed, Instant::now());
        } else if last.1.elapsed() > PATIENCE {
            eprintln!("seed {seed} hangs; QUEUE_SEED={seed} runs it again");
            process::abort();
        }
    }
}

#[test]
#[ignore = "`make stress` runs it"]
fn a_close_that_races_sends_and_selects_loses_nothing() {
    let (seeds, started) = (seeds::seeds(ROUNDS), Instant::now());
    let capacities: [&[usize]; 8] =
        [&[0], &[1], &[3], &[16], &[0, 0], &[1, 0], &[0, 0, 0], &[2, 0, 1]];
    let round = &AtomicU64::new(seeds.start);
    let mut values = 0;
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        scope.spawn(move || watch(round, &is_done));
        for seed in seeds.clone() {
            round.store(seed, Ordering::Relaxed);
            let which = usize::try_from(seed).unwrap_or(0) % capacities.len();
            values += people::round(seed, capacities[which], u32::MAX, true);
            if (seed + 1 - seeds.start) % 100 == 0 {
                eprintln!("up to seed {seed}: {values} values in {:?}", started.elapsed());
            }
        }
        drop(done);
    });
    eprintln!("{values} values in {:?}, and none was lost", started.elapsed());
}
