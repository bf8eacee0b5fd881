//! What shows outside whether there is something to do here.

/// Something outside that shows a state, say a file descriptor that polls readable.
pub trait Signal: Send + Sync {
    /// Called only when the state has changed.
    fn set(&self, on: bool);
}
