//! Selects against an oracle of plain double-ended queues: with cases that send and receive, at the
//! same channel or at others, with some that are never ready, and at channels that close. Exactly
//! one case takes place, the first ready one of the given order, and of the others' values none
//! goes.

#![cfg(not(loom))]

mod oracle;
mod pair;
mod scripts;
mod seeds;

#[test]
fn selects_agree_with_the_oracle() {
    scripts::check("selects_agree_with_the_oracle", 2_000, &pair::scripts(32), pair::agree);
}
