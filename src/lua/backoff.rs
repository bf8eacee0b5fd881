//! `queue.backoff`: how long to wait before a retry, longer each time.

use std::ffi::c_int;

use super::args::Callee;
use super::ffi::{Outcome, State};
use crate::core::backoff::Backoff;
use crate::core::clock::Span;
use crate::core::random;

const BACKOFF: Callee = Callee::function("backoff").wrapped();

/// The place of an option while it is looked at.
const VALUE: c_int = 3;

/// `check_backoff{ base_ms = …, factor = …, max_ms = …, jitter = … }` → the four numbers
pub fn check(l: State) -> Outcome {
    l.set_top(1);
    let Backoff { mut base, mut factor, mut max, mut jitter } = Backoff::default();
    let number = |name| BACKOFF.option(name, VALUE).amount(l);
    let ms = |name| BACKOFF.option(name, VALUE).duration(l).map(Span::as_ms);
    if !l.is_nil_or_none(1) {
        BACKOFF.each_option(l, 1, |key| {
            match key {
                b"base_ms" => base = ms("base_ms")?.min(f64::MAX),
                b"factor" => factor = number("factor")?,
                b"max_ms" => max = ms("max_ms")?,
                b"jitter" => jitter = number("jitter")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
    }
    for value in [base, factor, max, jitter] {
        l.push_number(value);
    }
    Ok(4)
}

/// `delay(base, factor, max, jitter, attempts)` → milliseconds until the next attempt
pub fn delay(l: State) -> Outcome {
    const ATTEMPTS: c_int = 1;
    // To the caller the number of attempts is the first argument.
    let at = |index| l.to_number(index).unwrap_or_default();
    let backoff = Backoff { base: at(1), factor: at(2), max: at(3), jitter: at(4) };
    (0..4).for_each(|_| l.remove(1));
    let given = BACKOFF.argument(ATTEMPTS);
    let attempts = l.to_number(ATTEMPTS).filter(|number| !number.is_nan());
    let attempts = attempts.ok_or_else(|| given.expected(l, "number"))?;
    // The cast saturates, to either side.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let attempts = attempts as u64;
    l.push_number(backoff.delay_ms(attempts, random::spread()));
    Ok(1)
}
