//! Counts of runs per 15-minute time slot, for charts of the past.
//!
//! The store keeps one row of counts per tenant and time slot. [`ActivityPeriod`] says which time
//! slots a query reads, and merges them into steps.

mod lateness;
mod period;

pub use lateness::{LATENESS_BOUNDS, LATENESS_BUCKETS, Lateness};
pub use period::{ActivityPeriod, ActivityStep, InvalidPeriod, STEPS_MAX, StepActivity, total_of};

use crate::advance::SkipReason;
use crate::attempt::Outcome;
use crate::time::Span;

/// What happened to the runs of a tenant in a time slot, or in several time slots together.
///
/// Each event counts in the time slot in which it happened: a start when the attempt starts, an end
/// and the whole duration when the attempt ends, and a skip when the scheduler records it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ActivityCounts {
    /// Number of runs that were fired: scheduled times, triggers, backfills and redrives.
    pub fired: u64,
    /// Number of ended attempts that succeeded.
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    /// Number of cancelled and superseded attempts.
    pub cancelled: u64,
    /// Total duration of the ended attempts.
    pub busy: Span,
    pub skipped: SkipCounts,
    /// Lateness of the starts of first attempts. A retry starts late on purpose.
    pub lateness: Lateness,
}

impl ActivityCounts {
    pub fn add_ended(&mut self, outcome: Outcome, took: Span) {
        let count = match outcome {
            Outcome::Completed | Outcome::PartlyFailed => &mut self.completed,
            Outcome::Failed => &mut self.failed,
            Outcome::TimedOut => &mut self.timed_out,
            Outcome::Cancelled | Outcome::Superseded => &mut self.cancelled,
        };
        *count += 1;
        self.busy = self.busy.saturating_add(took);
    }

    pub fn merge(&mut self, other: &Self) {
        self.fired += other.fired;
        self.completed += other.completed;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.cancelled += other.cancelled;
        self.busy = self.busy.saturating_add(other.busy);
        for reason in SkipReason::ALL {
            self.skipped.add(reason, other.skipped.of(reason));
        }
        self.lateness.merge(&other.lateness);
    }
}

/// Number of skipped scheduled times by reason.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct SkipCounts([u64; SKIP_CODES]);

/// The highest code of a skip reason, plus 1.
const SKIP_CODES: usize = {
    let (mut highest, mut at) = (0, 0);
    while at < SkipReason::ALL.len() {
        let code = SkipReason::ALL[at] as usize;
        highest = if code > highest { code } else { highest };
        at += 1;
    }
    highest + 1
};

impl SkipCounts {
    /// Reads counts that a store has saved, by the code of the reason. Counts of unknown reasons
    /// are left out, and missing counts are 0.
    pub fn from_codes(counts: &[u64]) -> Self {
        let mut all = Self::default();
        for reason in SkipReason::ALL {
            all.add(reason, counts.get(reason as usize).copied().unwrap_or(0));
        }
        all
    }

    /// Returns the counts by the code of the reason, as a store saves them.
    pub fn by_code(&self) -> &[u64] {
        &self.0
    }

    pub fn of(&self, reason: SkipReason) -> u64 {
        self.0[reason as usize]
    }

    pub fn add(&mut self, reason: SkipReason, count: u64) {
        self.0[reason as usize] += count;
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_attempts_count_by_outcome_with_their_duration() {
        let mut counts = ActivityCounts::default();
        for outcome in Outcome::ALL {
            counts.add_ended(outcome, Span::from_secs(2));
        }
        let ActivityCounts { completed, failed, timed_out, cancelled, busy, .. } = counts;
        assert_eq!((completed, failed, timed_out, cancelled), (2, 1, 1, 2));
        assert_eq!(busy, Span::from_secs(12));
    }

    #[test]
    fn merged_counts_add_up_and_keep_the_largest_lateness() {
        let mut one = ActivityCounts { fired: 1, ..ActivityCounts::default() };
        one.add_ended(Outcome::Failed, Span::from_secs(3));
        one.skipped.add(SkipReason::Overlap, 4);
        one.lateness.record(Span::from_secs(2));
        let mut sum = one;
        sum.lateness.record(Span::from_millis(1));
        sum.merge(&one);
        assert_eq!((sum.fired, sum.failed, sum.busy), (2, 2, Span::from_secs(6)));
        assert_eq!((sum.skipped.of(SkipReason::Overlap), sum.skipped.total()), (8, 8));
        assert_eq!((sum.lateness.count(), sum.lateness.max()), (3, Some(Span::from_secs(2))));
    }

    #[test]
    fn skip_counts_survive_storage_by_code() {
        let mut counts = SkipCounts::default();
        for (n, reason) in (1..).zip(SkipReason::ALL) {
            counts.add(reason, n);
        }
        assert_eq!(SkipCounts::from_codes(counts.by_code()), counts);
        // A row of an older version has fewer counts, and a row of a newer version has more.
        let short = SkipCounts::from_codes(&counts.by_code()[..2]);
        assert_eq!((short.of(SkipReason::Overlap), short.of(SkipReason::Blackout)), (2, 0));
        let long: Vec<u64> = counts.by_code().iter().copied().chain([9, 9]).collect();
        assert_eq!(SkipCounts::from_codes(&long), counts);
    }
}
