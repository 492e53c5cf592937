//! The timeline: past, active and future runs of a period on one axis.
//!
//! A period with few runs is shown as marks, one for each run, in lanes. A period with more runs is
//! shown as [`Density`]: numbers of runs per step.

mod density;
mod period;

pub use density::{Density, DensityStep, Outcomes};
pub use period::{InvalidPeriod, LENGTH_MAX, TimelinePeriod};

use std::collections::BTreeMap;

use crate::named_enum;
use crate::time::{Span, Timestamp};

/// Maximum number of marks in one timeline.
pub const MARKS_MAX: u32 = 2_000;

named_enum! {
    /// What the marks of one lane have in common.
    #[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
    pub enum LaneBy {
        #[default]
        Job => "job",
        Pool => "pool",
        Node => "node",
    }
}

/// Maximum number of jobs whose schedules are read for one timeline.
pub const JOBS_MAX: u32 = 4_000;

/// What is known about a period before its runs and jobs are read.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Outlook {
    /// Number of runs that were fired in the period.
    pub fired: u64,
    /// Forecast of the runs in the period. The forecast does not know the bounds and blackouts of
    /// jobs.
    pub expected: f64,
    /// Forecast of the jobs whose next run is before the end of the period, whose schedules would
    /// have to be read.
    pub jobs: f64,
}

impl Outlook {
    /// Returns true if the period surely has more than `limit` marks or too many jobs, so that its
    /// marks need not be read. Only twice the limit of expected runs is certain enough.
    pub fn is_dense(self, limit: u32) -> bool {
        let Self { fired, expected, jobs } = self;
        fired > u64::from(limit) || expected > 2.0 * f64::from(limit) || jobs > f64::from(JOBS_MAX)
    }
}

/// Returns when a run that started or starts at `start` will probably end; `None` if the average
/// duration is unknown, or if the run already takes longer than that.
pub fn expected_end(start: Timestamp, average: Span, now: Timestamp) -> Option<Timestamp> {
    let end = start.checked_add(average).filter(|_| !average.is_zero())?;
    (end > now).then_some(end)
}

/// Groups marks by lane: returns the lanes in their order, each with its number of marks, and the
/// index of the lane of each mark.
pub fn lanes<K: Ord + Clone>(keys: &[K]) -> (Vec<(K, u64)>, Vec<usize>) {
    let mut counts: BTreeMap<&K, u64> = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    let places: BTreeMap<&K, usize> = counts.keys().copied().zip(0..).collect();
    let of_marks = keys.iter().filter_map(|key| places.get(key).copied()).collect();
    (counts.into_iter().map(|(key, count)| (key.clone(), count)).collect(), of_marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_is_dense_with_too_many_fired_runs_expected_runs_or_jobs() {
        let fits = Outlook { fired: 2_000, expected: 4_000.0, jobs: 4_000.0 };
        assert!(!fits.is_dense(2_000));
        assert!(Outlook { fired: 2_001, ..fits }.is_dense(2_000));
        assert!(Outlook { expected: 4_000.5, ..fits }.is_dense(2_000));
        assert!(Outlook { jobs: 4_000.5, ..fits }.is_dense(2_000));
    }

    #[test]
    fn end_is_expected_only_in_the_future_and_with_a_known_average() {
        let at = Timestamp::from_micros;
        let end = |average, now| expected_end(at(100), Span::from_micros(average), at(now));
        assert_eq!(end(50, 120), Some(at(150)));
        assert_eq!(end(50, 150), None);
        assert_eq!(end(0, 0), None);
        assert_eq!(expected_end(Timestamp::MAX, Span::from_secs(1), at(0)), None);
    }

    #[test]
    fn lanes_are_sorted_and_counted() {
        let (lanes, of_marks) = lanes(&["b", "a", "b", "c"]);
        assert_eq!(lanes, [("a", 1), ("b", 2), ("c", 1)]);
        assert_eq!(of_marks, [1, 0, 1, 2]);
    }
}
