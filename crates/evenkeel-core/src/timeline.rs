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

/// Returns true if a period surely has more than `limit` marks, so that its marks need not be read.
///
/// `fired` is the number of runs that were fired in the period. `expected` is a forecast, which
/// does not know the bounds and blackouts of jobs, so only twice the limit is certain enough.
pub fn is_dense(fired: u64, expected: f64, limit: u32) -> bool {
    fired > u64::from(limit) || expected > 2.0 * f64::from(limit)
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
    fn period_is_dense_beyond_the_limit_of_fired_runs_or_twice_the_limit_of_expected_runs() {
        assert!(!is_dense(2_000, 4_000.0, 2_000));
        assert!(is_dense(2_001, 0.0, 2_000));
        assert!(is_dense(0, 4_000.5, 2_000));
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
