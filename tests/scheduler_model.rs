//! The scheduler against a naive oracle: a plain list of jobs, searched from end to end for every
//! question. Both take the same random operations, on a manual clock, and after each of them must
//! agree on everything that can be seen.

#![cfg(not(loom))]

mod scheduler;
mod scripts;
mod seeds;

#[test]
fn the_scheduler_agrees_with_the_oracle() {
    let scripts = scheduler::scripts();
    scripts::check("the_scheduler_agrees_with_the_oracle", 10_000, &scripts, scheduler::agree);
}

#[test]
fn bursts_agree_with_the_oracle() {
    let bursts = scheduler::bursts();
    scripts::check("bursts_agree_with_the_oracle", 100, &bursts, scheduler::agree);
}
