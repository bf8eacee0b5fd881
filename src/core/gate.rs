//! What holds starts back: a pause, and a limit on how many there are in any window of time.

use std::collections::VecDeque;

use super::OutOfMemory;
use super::clock::{Moment, Span};

/// Whether a queue lets a job start.
#[derive(Debug)]
pub(super) struct Gate {
    /// No job starts before then; [`Moment::NEVER`]: not until somebody says so.
    paused_until: Moment,
    limit: Option<Limit>,
}

/// At most so many starts in any window of so long a time.
#[derive(Debug)]
struct Limit {
    most: usize,
    window: Span,
    /// The starts that the next one is counted with, the oldest first: `most` of them at most.
    starts: VecDeque<Moment>,
}

impl Gate {
    /// `limit`: the number of starts and the window.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn new(limit: Option<(usize, Span)>) -> Result<Self, OutOfMemory> {
        let limit = match limit {
            None => None,
            Some((most, window)) => {
                let mut starts = VecDeque::new();
                starts.try_reserve(1)?;
                Some(Limit { most, window, starts })
            }
        };
        Ok(Self { paused_until: Moment::from_nanos(0), limit })
    }

    pub fn pause(&mut self, until: Moment) {
        self.paused_until = until;
    }

    pub fn resume(&mut self) {
        self.paused_until = Moment::from_nanos(0);
    }

    pub fn is_paused(&self, now: Moment) -> bool {
        self.paused_until > now
    }

    /// It opens only when somebody says so.
    pub fn is_shut(&self) -> bool {
        self.paused_until == Moment::NEVER
    }

    /// Whether a start is allowed does not hang on the time.
    #[inline]
    pub fn is_timeless(&self) -> bool {
        self.limit.is_none() && self.paused_until == Moment::from_nanos(0)
    }

    /// A start is allowed.
    #[inline]
    pub fn is_open(&mut self, now: Moment) -> bool {
        self.paused_until <= now && (self.limit.is_none() || self.opens(now) <= now)
    }

    /// When a start is allowed: `now`, or later.
    pub fn opens(&mut self, now: Moment) -> Moment {
        let opens = self.limit.as_mut().map_or(now, |limit| limit.opens(now));
        opens.max(self.paused_until)
    }

    /// Counts a start at `now`, when the gate was open.
    pub fn pass(&mut self, now: Moment) {
        if let Some(limit) = &mut self.limit {
            limit.starts.push_back(now);
        }
    }
}

impl Limit {
    fn opens(&mut self, now: Moment) -> Moment {
        while let Some(first) = self.starts.front().map(|start| start.after(self.window)) {
            if first > now {
                // Where there is no memory to note one start more, fewer are allowed.
                let is_full = self.starts.len() >= self.most || self.starts.try_reserve(1).is_err();
                return if is_full { first } else { now };
            }
            self.starts.pop_front();
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    #[test]
    fn a_window_holds_no_more_than_the_limit_wherever_it_begins() {
        let mut gate = Gate::new(Some((3, Span::from_nanos(10)))).unwrap();
        let mut starts: Vec<u64> = Vec::new();
        let mut now = 0;
        for step in [0, 1, 0, 4, 5, 0, 3, 0, 0, 9, 1, 1, 1, 1, 0, 0, 30].repeat(20) {
            now += step;
            let recent = starts.iter().filter(|&&start| start + 10 > now).count();
            assert_eq!(gate.opens(at(now)) == at(now), recent < 3, "at {now}, {starts:?}");
            if recent < 3 {
                gate.pass(at(now));
                starts.push(now);
            } else {
                let third = starts[starts.len() - 3];
                assert_eq!(gate.opens(at(now)), at(third + 10), "exact at the edge");
            }
        }
    }

    #[test]
    fn a_pause_and_a_limit_hold_together() {
        let mut gate = Gate::new(Some((1, Span::from_nanos(10)))).unwrap();
        gate.pass(at(5));
        gate.pause(at(12));
        assert_eq!(gate.opens(at(6)), at(15));
        gate.pause(at(20));
        assert!(gate.is_paused(at(19)) && !gate.is_paused(at(20)));
        assert_eq!(gate.opens(at(6)), at(20));
        gate.pause(Moment::NEVER);
        assert!(gate.is_shut());
        gate.resume();
        assert!(!gate.is_shut() && !gate.is_paused(at(0)));
        assert_eq!(gate.opens(at(16)), at(16));
    }
}
