//! `queue.shared`: channels that other Lua states of the process can open.

use super::args::{Callee, Text, check_memory};
use super::channel::Channel;
use super::ffi::{Outcome, State};
use crate::core::shared::{Handle, OtherCapacity};

const SHARED: Callee = Callee::function("shared");

/// `queue.shared(name, capacity)`
pub fn open(l: State) -> Outcome {
    SHARED.argument(1).string(l)?;
    let capacity = if l.is_nil_or_none(2) {
        None
    } else {
        Some(usize::try_from(SHARED.argument(2).count(l)?).unwrap_or(usize::MAX))
    };
    check_memory(l)?;
    let mut other = None;
    l.try_new_object(|| match Handle::open(l.bytes_at(1).unwrap_or_default(), capacity) {
        Ok(handle) => Some(Channel::shared(handle)),
        Err(OtherCapacity(there)) => {
            other = Some(there);
            None
        }
    });
    if let Some(there) = other {
        let name = Text::of(l.bytes_at(1).unwrap_or_default());
        let got = capacity.unwrap_or(0);
        let why = format_args!("capacity of '{name}' is {there}, got {got}");
        return Err(SHARED.argument(2).bad(l, why));
    }
    Ok(1)
}
