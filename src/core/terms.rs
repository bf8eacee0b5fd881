//! On what terms a job runs. Most jobs have the plain ones, which are stored once; those of the
//! others are kept apart, so that a job takes no room for what it was not asked for.

use super::OutOfMemory;
use super::clock::{Moment, Span};
use super::job::Plan;

/// The number of a job's terms. 0: the plain ones.
pub(super) type TermsNumber = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// A deadline on starting, counted from when an attempt may start.
    pub patience: Span,
    /// Before each retry.
    pub backoff: Span,
    pub retries: u64,
    /// The series that the job is a beat of.
    pub series: Option<Series>,
}

/// A recurring job. One beat of it is alive at a time, in one slot, beat after beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Series {
    interval: Span,
    /// The time of the beat that is alive, in the phase.
    beat: Moment,
    /// No beat follows this one.
    has_ended: bool,
}

impl Terms {
    /// No deadline, no retries, no series.
    const PLAIN: Self =
        Self { patience: Span::FOREVER, backoff: Span::ZERO, retries: 0, series: None };

    /// What a push asks for; `due` is when the first beat of a series is.
    pub fn of<V>(plan: &Plan<V>, due: Moment) -> Self {
        let series = |interval| Series { interval, beat: due, has_ended: false };
        Self {
            patience: plan.patience,
            backoff: plan.backoff,
            retries: plan.retries,
            series: plan.every.map(series),
        }
    }

    /// Another beat follows this one.
    pub fn goes_on(&self) -> bool {
        self.series.is_some_and(|series| !series.has_ended)
    }

    /// It is the last beat of a series.
    pub fn is_last_beat(&self) -> bool {
        self.series.is_some_and(|series| series.has_ended)
    }
}

/// The terms of a queue's jobs.
#[derive(Debug, Default)]
pub(super) struct AllTerms {
    /// All but the plain ones; the first has the number 1.
    all: Vec<Terms>,
    free: Vec<TermsNumber>,
}

impl AllTerms {
    /// Makes room for those of one job more.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing was changed.
    pub fn reserve(&mut self) -> Result<(), OutOfMemory> {
        self.all.try_reserve(1)?;
        Ok(self.free.try_reserve(self.all.len() + 1 - self.free.len())?)
    }

    /// Stores terms, for which there is room.
    pub fn add(&mut self, terms: Terms) -> TermsNumber {
        if let Some(number) = self.free.pop() {
            self.all[number as usize - 1] = terms;
            return number;
        }
        self.all.push(terms);
        TermsNumber::try_from(self.all.len()).unwrap_or(0)
    }

    /// The job that had them has gone.
    #[inline]
    pub fn release(&mut self, number: TermsNumber) {
        if number != 0 {
            self.free.push(number);
        }
    }

    #[inline]
    pub fn of(&self, number: TermsNumber) -> &Terms {
        if number == 0 { &Terms::PLAIN } else { &self.all[number as usize - 1] }
    }

    fn own(&mut self, number: TermsNumber) -> Option<&mut Terms> {
        if number == 0 { None } else { self.all.get_mut(number as usize - 1) }
    }

    fn series(&mut self, number: TermsNumber) -> Option<&mut Series> {
        self.own(number)?.series.as_mut()
    }

    /// No beat is to follow, where this is a series. True: one would have.
    pub fn end_series(&mut self, number: TermsNumber) -> bool {
        let Some(series) = self.series(number) else { return false };
        !std::mem::replace(&mut series.has_ended, true)
    }

    /// The job is no beat any longer.
    pub fn leave_series(&mut self, number: TermsNumber) {
        if let Some(terms) = self.own(number) {
            terms.series = None;
        }
    }

    /// The beat has ended for good at `now`: when the next one may start, if there is one.
    pub fn next_beat(&mut self, number: TermsNumber, now: Moment) -> Option<Moment> {
        let series = self.series(number)?;
        if series.has_ended {
            return None;
        }
        series.beat = series.beat.following_beat(series.interval, now);
        Some(series.beat.max(now))
    }

    /// No job has terms of its own.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.len() == self.free.len()
    }

    /// Gives memory back; no job has terms of its own.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
