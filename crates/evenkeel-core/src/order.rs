//! The dispatch order: lanes, priorities, and the share of workers per lane.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::named_enum;
use crate::time::Timestamp;

named_enum! {
    /// A lane of the dispatch queue; the order of lanes is critical, standard, batch.
    #[derive(
        Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Lane {
        Critical => "critical",
        #[default]
        Standard => "standard",
        /// Attempts in the lane `batch` start on the workers that other lanes leave free, and on a
        /// guaranteed share of workers.
        Batch => "batch",
    }
}

/// The priority of a job within its lane, 0 to 100.
#[derive(
    Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(try_from = "u8")]
pub struct Priority(u8);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a priority: write a number from 0 to 100")]
pub struct PriorityError(u8);

impl Priority {
    pub const MAX: Self = Self(100);

    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Priority {
    type Error = PriorityError;

    fn try_from(number: u8) -> Result<Self, PriorityError> {
        if number <= Self::MAX.0 { Ok(Self(number)) } else { Err(PriorityError(number)) }
    }
}

/// The sort key of the dispatch queue: the attempt with the smallest key starts first.
///
/// Among attempts with equal priority, the attempt nearest to its deadline starts first. Attempts
/// without deadlines start in the order of priority, highest first, then oldest first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DispatchKey {
    pub lane: Lane,
    pub priority: Reverse<Priority>,
    pub should_start_by: Timestamp,
    pub ready_at: Timestamp,
}

/// The guaranteed share of each lane, in percent of the free worker capacity.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shares([u8; 3]);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shares {0:?} sum to more than 100 percent")]
pub struct SharesError([u8; 3]);

impl Default for Shares {
    fn default() -> Self {
        Self([50, 30, 10])
    }
}

impl TryFrom<[u8; 3]> for Shares {
    type Error = SharesError;

    fn try_from(percent: [u8; 3]) -> Result<Self, SharesError> {
        let sum: u32 = percent.iter().copied().map(u32::from).sum();
        if sum <= 100 { Ok(Self(percent)) } else { Err(SharesError(percent)) }
    }
}

impl Shares {
    /// Returns how many of `free` worker slots each lane is guaranteed.
    pub fn of(self, free: usize) -> [usize; 3] {
        self.0.map(|percent| free * usize::from(percent) / 100)
    }

    /// Divides `free` worker slots among the lanes; `waiting` is the number of waiting attempts per
    /// lane.
    ///
    /// Every lane first gets its guaranteed share, which is at least one worker slot as long as
    /// slots are left. The remaining worker slots go to the lanes in the order critical, standard,
    /// batch. Batch jobs run slowly under high load, but they always make progress.
    pub fn split(self, free: usize, waiting: [usize; 3]) -> [usize; 3] {
        let mut shares = [0; 3];
        let mut left = free;
        for (lane, guaranteed) in self.of(free).into_iter().enumerate() {
            let guaranteed = guaranteed.max(1);
            shares[lane] = guaranteed.min(waiting[lane]).min(left);
            left -= shares[lane];
        }
        for lane in 0..3 {
            let more = (waiting[lane] - shares[lane]).min(left);
            shares[lane] += more;
            left -= more;
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(lane: Lane, priority: u8, deadline: i64, age: i64) -> DispatchKey {
        DispatchKey {
            lane,
            priority: Reverse(Priority(priority)),
            should_start_by: Timestamp::from_micros(deadline),
            ready_at: Timestamp::from_micros(age),
        }
    }

    #[test]
    fn lane_goes_before_priority_before_deadline_before_age() {
        let in_order = [
            key(Lane::Critical, 0, 9, 9),
            key(Lane::Standard, 90, 9, 9),
            key(Lane::Standard, 10, 1, 9),
            key(Lane::Standard, 10, 2, 1),
            key(Lane::Standard, 10, 2, 2),
        ];
        assert!(in_order.is_sorted());
    }

    #[test]
    fn batch_lane_keeps_a_slot_under_critical_load() {
        assert_eq!(Shares::default().split(100, [1000, 1000, 1000]), [60, 30, 10]);
        assert_eq!(Shares::default().split(100, [0, 0, 1000]), [0, 0, 100]);
    }

    proptest! {
        #[test]
        fn no_slot_is_wasted_or_given_twice(free in 0_usize..3000, waiting in any::<[u16; 3]>()) {
            let waiting = waiting.map(usize::from);
            let shares = Shares::default().split(free, waiting);
            prop_assert_eq!(shares.iter().sum::<usize>(), free.min(waiting.iter().sum()));
            prop_assert!((0..3).all(|lane| shares[lane] <= waiting[lane]));
        }
    }
}
