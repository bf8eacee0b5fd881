//! The process's named channels, which any Lua state can open.
//!
//! A name lives while its channel is open or has values left, and while anyone holds a handle on
//! it. Until then whoever opens it gets that channel; after that the name is free.

use std::collections::HashMap;
use std::sync::{Arc as StdArc, Mutex as StdMutex, PoisonError};

use once_cell::sync::Lazy;

use super::channel::Crossing;
use super::sync::Arc;
use super::wire::Item;

/// The names and their channels. The standard library's locks, as it lives as long as the process.
static NAMES: Lazy<StdMutex<HashMap<Box<[u8]>, Named>>> = Lazy::new(StdMutex::default);

#[derive(Debug)]
struct Named {
    channel: Arc<Crossing<Item>>,
    /// Live handles.
    handles: usize,
}

/// The channel of that name has another capacity, which is this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherCapacity(pub usize);

/// Holds a named channel, and so its name.
#[derive(Debug)]
pub struct Handle {
    name: StdArc<[u8]>,
    channel: Arc<Crossing<Item>>,
}

impl Handle {
    /// Opens the channel of this name, or makes it. Without a capacity it takes what is there, or
    /// makes an unbuffered one.
    ///
    /// # Errors
    /// [`OtherCapacity`], where the channel is there and its capacity differs.
    pub fn open(name: &[u8], capacity: Option<usize>) -> Result<Self, OtherCapacity> {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = names.get_mut(name) {
            let there = named.channel.capacity();
            if capacity.is_some_and(|capacity| capacity != there) {
                return Err(OtherCapacity(there));
            }
            named.handles += 1;
            return Ok(Self { name: name.into(), channel: Arc::clone(&named.channel) });
        }
        let channel = Arc::new(Crossing::shared(capacity.unwrap_or(0)));
        names.insert(name.into(), Named { channel: Arc::clone(&channel), handles: 1 });
        Ok(Self { name: name.into(), channel })
    }

    #[must_use]
    pub fn channel(&self) -> &Arc<Crossing<Item>> {
        &self.channel
    }

    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = names.get_mut(&*self.name) {
            named.handles += 1;
        }
        Self { name: StdArc::clone(&self.name), channel: Arc::clone(&self.channel) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = names.get_mut(&*self.name) else { return };
        entry.handles -= 1;
        // With no handle left nobody can change what this finds.
        let over = entry.handles == 0 && entry.channel.is_closed() && entry.channel.is_empty();
        // The channel goes when the lock has: what it holds could be handles too.
        let gone = if over { names.remove(&*self.name) } else { None };
        drop(names);
        drop(gone);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::channel::Wait;
    use super::*;

    fn open(name: &str, capacity: Option<usize>) -> Handle {
        Handle::open(name.as_bytes(), capacity).unwrap()
    }

    #[test]
    fn a_name_is_one_channel() {
        let (a, b) = (open("one", Some(2)), open("one", None));
        assert!(Arc::ptr_eq(a.channel(), b.channel()));
        assert_eq!(Handle::open(b"one", Some(3)).unwrap_err(), OtherCapacity(2));
    }

    #[test]
    fn an_open_channel_outlives_its_handles() {
        let first = open("open", Some(1));
        assert_eq!(first.channel().send(Item::Bool(true), &Wait::No).ok(), Some(true));
        drop(first);
        assert_eq!(open("open", None).channel().len(), 1);
    }

    #[test]
    fn a_closed_channel_keeps_its_name_until_drained_and_dropped() {
        let first = open("closed", Some(1));
        assert_eq!(first.channel().send(Item::Bool(true), &Wait::No).ok(), Some(true));
        first.channel().close();
        drop(first);
        let late = open("closed", None);
        assert!(late.channel().is_closed(), "values are left");
        assert!(late.channel().receive(&Wait::No).is_ok());
        let later = late.clone();
        drop(late);
        assert!(open("closed", None).channel().is_closed(), "a handle is left");
        drop(later);
        assert!(!open("closed", Some(5)).channel().is_closed(), "the name is free");
    }
}
