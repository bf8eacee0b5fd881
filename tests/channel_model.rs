//! Channels against an oracle of plain double-ended queues: mostly sends and receives at one
//! channel, with a select now and then.

#![cfg(not(loom))]

mod oracle;
mod pair;
mod scripts;
mod seeds;

#[test]
fn channels_agree_with_the_oracle() {
    scripts::check("channels_agree_with_the_oracle", 2_000, &pair::scripts(4), pair::agree);
}
