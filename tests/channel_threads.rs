//! Threads that really block. They send and receive at one channel, or with selects at several, for
//! random times, while somebody closes the channels: what was sent is received once and in order,
//! exactly one case of a select takes place, what was not sent comes back, and nobody is left
//! asleep.

#![cfg(not(loom))]

mod people;
mod seeds;

/// Values that a sender has for each channel.
const VALUES: u32 = 60;

/// A round for each seed; in every other one a close races the rest.
fn rounds(count: u64, capacities: &[&[usize]]) {
    for seed in seeds::seeds(count) {
        let which = usize::try_from(seed / 2).unwrap_or(0) % capacities.len();
        people::round(seed, capacities[which], VALUES, seed % 2 == 0);
    }
}

#[test]
fn a_rendezvous_loses_and_doubles_nothing() {
    rounds(120, &[&[0]]);
}

#[test]
fn a_buffer_loses_and_doubles_nothing() {
    rounds(180, &[&[1], &[3], &[16]]);
}

#[test]
fn a_select_takes_place_at_one_of_several_channels() {
    rounds(200, &[&[0, 0], &[1, 0], &[0, 0, 0], &[2, 0, 1]]);
}
