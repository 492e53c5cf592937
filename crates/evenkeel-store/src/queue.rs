//! Store operations on the whole queue: count waiting attempts for metrics, detect stalls, and
//! recompute priorities.

use evenkeel_core::aging::Aging;
use evenkeel_core::limit::LimitScope;
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptKey, Timestamp};

use crate::Reprioritized;
use crate::verbs::verbs;

/// Maximum number of queue groups that are counted separately; a group is one lane of one pool. All
/// further queue groups are counted together.
pub const QUEUE_GROUPS_MAX: u32 = 300;

/// Number of priority ranges that are counted: 0 to 9, 10 to 19, and so on up to 90 to 99, then
/// 100.
pub const TENS: usize = 11;

/// Number of waiting attempts in one lane of one pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueDepth {
    pub pool: String,
    pub lane: Lane,
    /// Number of attempts that wait for a worker, including attempts that a blackout delays.
    pub waiting: u64,
    /// When the oldest waiting attempt became claimable by workers.
    pub oldest: Timestamp,
    /// Number of waiting attempts by priority, in steps of ten.
    pub by_tens: [u64; TENS],
}

impl QueueDepth {
    pub const fn none(pool: String, lane: Lane) -> Self {
        Self { pool, lane, waiting: 0, oldest: Timestamp::MAX, by_tens: [0; TENS] }
    }

    pub fn group(&self) -> QueueGroup {
        (self.pool.clone(), self.lane)
    }

    /// Adds `count` attempts with this priority, the oldest of which has waited since `oldest`.
    pub fn add(&mut self, priority: u8, count: u64, oldest: Timestamp) {
        self.waiting += count;
        self.oldest = self.oldest.min(oldest);
        self.by_tens[usize::from(priority / 10).min(TENS - 1)] += count;
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueDepths {
    /// Counts of the lanes of pools, ordered by pool and lane, without empty lanes.
    pub depths: Vec<QueueDepth>,
    /// True if more attempts wait than were read, so each count is a lower bound.
    pub is_lower_bound: bool,
    /// Counts of all queue groups beyond [`QUEUE_GROUPS_MAX`] together, by lane, with an empty pool
    /// name.
    pub others: Vec<QueueDepth>,
    /// Number of attempts that wait for a permit, by the scope of their concurrency limit, counted
    /// up to the limit of the scan.
    pub parked: [u64; LimitScope::ALL.len()],
}

/// A checksum that changes when the attempts at the front of the queues change.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueFront(pub i64);

impl FromIterator<AttemptKey> for QueueFront {
    fn from_iter<T: IntoIterator<Item = AttemptKey>>(keys: T) -> Self {
        Self(keys.into_iter().fold(0, |sum, key| sum + key_sign(key)))
    }
}

/// Returns a number that differs between most attempts and is small enough to be summed.
fn key_sign(key: AttemptKey) -> i64 {
    let sign = key.job_no.0.wrapping_mul(31).wrapping_add(key.scheduled_at.as_micros());
    sign.wrapping_add(i64::from(key.attempt.0)).rem_euclid(1_000_000_007)
}

/// A lane of a pool.
pub type QueueGroup = (String, Lane);

/// Decides how many rows of each queue group are read to count the waiting attempts.
///
/// Each queue group is first read up to the same number of rows, so that a long queue does not hide
/// a short one. Long queues are then read again up to more rows, because short queues needed fewer
/// rows. At most about twice `limit` rows are read in total.
#[derive(Debug)]
pub struct DepthWalk {
    limit: u32,
    share: u32,
    depths: Vec<QueueDepth>,
    has_more_groups: bool,
    others: Vec<QueueDepth>,
    others_are_cut: bool,
}

impl DepthWalk {
    /// Starts a count of about `limit` rows. `groups` must be ordered by name. Groups beyond the
    /// first [`QUEUE_GROUPS_MAX`] are counted [together](Self::rest).
    pub fn new(limit: u32, mut groups: Vec<QueueGroup>) -> Self {
        let has_more_groups = groups.len() > QUEUE_GROUPS_MAX as usize;
        groups.truncate(QUEUE_GROUPS_MAX as usize);
        // At least one row of each group is read, to show that attempts wait in the group.
        let share = (limit / u32::try_from(groups.len()).unwrap_or(u32::MAX).max(1)).max(1);
        let none = |(pool, lane)| QueueDepth::none(pool, lane);
        let depths = groups.into_iter().map(none).collect();
        Self { limit, share, depths, has_more_groups, others: Vec::new(), others_are_cut: false }
    }

    /// If there are more than [`QUEUE_GROUPS_MAX`] groups, returns the last group that is counted
    /// separately, and how many rows to read after it.
    pub fn rest(&self) -> Option<(QueueGroup, u32)> {
        let last = self.depths.last().filter(|_| self.has_more_groups)?;
        Some((last.group(), self.limit))
    }

    /// Adds the counts of the groups beyond [`QUEUE_GROUPS_MAX`], each with lane, priority, count
    /// and the time since when its oldest attempt waits. `walked` is the number of rows that were
    /// read.
    pub fn take_rest(
        &mut self,
        found: impl IntoIterator<Item = (Lane, u8, u64, Timestamp)>,
        walked: u64,
    ) {
        for (lane, priority, count, oldest) in found {
            let known = self.others.iter().position(|depth| depth.lane == lane);
            let at = known.unwrap_or_else(|| {
                self.others.push(QueueDepth::none(String::new(), lane));
                self.others.len() - 1
            });
            self.others[at].add(priority, count, oldest);
        }
        self.others.sort_unstable_by_key(|depth| depth.lane as u8);
        self.others_are_cut = walked >= u64::from(self.limit);
    }

    /// Returns the groups to count first and the number of rows to read of each. One row more than
    /// the group's share is read, to find out whether the group has more rows.
    pub fn first(&self) -> (Vec<QueueGroup>, u32) {
        (self.depths.iter().map(QueueDepth::group).collect(), self.share.saturating_add(1))
    }

    /// Stores the counts, which must be in the order of the groups.
    pub fn take(&mut self, counted: Vec<QueueDepth>) {
        let mut at = 0;
        for depth in counted {
            while let Some(known) = self.depths.get_mut(at) {
                at += 1;
                if known.group() == depth.group() {
                    *known = depth;
                    break;
                }
            }
        }
    }

    /// Returns the groups to count again with more rows.
    pub fn second(&mut self) -> Option<(Vec<QueueGroup>, u32)> {
        let cut: Vec<QueueGroup> = self.cut().map(QueueDepth::group).collect();
        let walked: u64 = self.depths.iter().map(|depth| depth.waiting).sum();
        let left = u64::from(self.limit).saturating_sub(walked);
        let more = u32::try_from(left.checked_div(cut.len() as u64)?).unwrap_or(u32::MAX);
        self.share = self.share.saturating_add(more);
        (more > 0).then(|| (cut, self.share.saturating_add(1)))
    }

    pub fn end(mut self) -> QueueDepths {
        let is_lower_bound = self.others_are_cut || self.cut().next().is_some();
        // A group is empty if its attempts were claimed in the meantime.
        self.depths.retain(|depth| depth.waiting > 0);
        let (depths, others) = (self.depths, self.others);
        QueueDepths { depths, is_lower_bound, others, parked: [0; LimitScope::ALL.len()] }
    }

    fn cut(&self) -> impl Iterator<Item = &QueueDepth> {
        self.depths.iter().filter(|depth| depth.waiting > u64::from(self.share))
    }
}

verbs! {
    trait QueueStore {}

    /// Counts the attempts of all tenants that wait for workers. Reads about `limit` rows in queue
    /// order, divided among the queue groups by [`DepthWalk`]. Attempts that wait for a permit are
    /// counted only in [`QueueDepths::parked`]. If there are more than [`QUEUE_GROUPS_MAX`] groups,
    /// up to `limit` further rows are read to count the remaining groups together. With a small
    /// `limit`, the counts only show in which groups attempts wait.
    read fn queue_depths(limit: u32) -> QueueDepths;

    /// Returns a checksum that changes as soon as an attempt at the front of a lane of these pools
    /// is claimed or added. The front of a lane is its first `rows` attempts by priority and its
    /// first `rows` attempts by waiting time. Like
    /// [`count_queued`](crate::AttemptStore::count_queued), the checksum ignores an attempt if its
    /// claim window had not begun when the window was set.
    read fn queue_front(pools: &[String], rows: u32) -> QueueFront;

    /// Recomputes the rank of queued attempts with the priority aging settings `aging`, for the
    /// next `limit` attempts in key order after `after`.
    write fn reprioritize(aging: Aging, after: Option<AttemptKey>, limit: u32) -> Reprioritized;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts a queue whose groups have the lengths `deep`. Returns the counts, whether they are
    /// lower bounds, and the number of rows read.
    fn walk(limit: u32, deep: &[u64]) -> (Vec<u64>, bool, u64) {
        let groups = (0..deep.len()).map(|n| (format!("{n:04}"), Lane::Batch)).collect();
        let mut walk = DepthWalk::new(limit, groups);
        let mut walked = 0;
        let mut count = |(groups, most): (Vec<QueueGroup>, u32)| -> Vec<QueueDepth> {
            let seen = groups.into_iter().map(|(pool, lane)| {
                let waiting = deep[pool.parse::<usize>().unwrap()].min(u64::from(most));
                walked += waiting;
                QueueDepth { waiting, ..QueueDepth::none(pool, lane) }
            });
            seen.collect()
        };
        let first = count(walk.first());
        walk.take(first);
        if let Some(more) = walk.second() {
            let second = count(more);
            walk.take(second);
        }
        if let Some(((last, _), most)) = walk.rest() {
            let beyond = deep[last.parse::<usize>().unwrap() + 1..].iter().sum::<u64>();
            let walked = beyond.min(u64::from(most));
            walk.take_rest([(Lane::Batch, 0, walked, Timestamp::MIN)], walked);
        }
        let QueueDepths { depths, is_lower_bound, others, .. } = walk.end();
        let depths = depths.iter().chain(&others);
        (depths.map(|depth| depth.waiting).collect(), is_lower_bound, walked)
    }

    #[test]
    fn a_shallow_queue_is_counted_completely() {
        assert_eq!(walk(100, &[25, 0, 3, 25]), (vec![25, 3, 25], false, 53));
        assert_eq!(walk(100, &[]), (vec![], false, 0));
    }

    #[test]
    fn a_deep_lane_gets_the_rows_that_others_leave() {
        assert_eq!(walk(100, &[80, 5, 5, 5]), (vec![80, 5, 5, 5], false, 41 + 80));
        // The first pass reads up to 26 rows of each group; 38 rows are left for the two long
        // groups.
        let (depths, is_lower_bound, walked) = walk(100, &[1000, 5, 1000, 5]);
        assert_eq!((depths, is_lower_bound), (vec![45, 5, 45, 5], true));
        assert!(walked <= 2 * 100 + 4);
    }

    #[test]
    fn with_more_lanes_than_rows_one_row_of_each_is_read() {
        assert_eq!(walk(2, &[9, 9, 1]), (vec![2, 2, 1], true, 5));
    }

    #[test]
    fn surplus_pools_are_counted_together() {
        let (depths, is_lower_bound, _) = walk(100_000, &[1; 307]);
        assert_eq!((depths.len(), depths[300], is_lower_bound), (301, 7, false));
        let (depths, is_lower_bound, _) = walk(300, &[1; 900]);
        assert_eq!((depths[300], is_lower_bound), (300, true), "counted up to the limit");
    }

    #[test]
    fn priorities_are_counted_in_steps_of_ten() {
        let mut depth = QueueDepth::none("default".into(), Lane::Standard);
        for (priority, count) in [(0, 1), (9, 1), (10, 5), (99, 2), (100, 7)] {
            depth.add(priority, count, Timestamp::from_micros(i64::from(priority)));
        }
        assert_eq!(depth.by_tens, [2, 5, 0, 0, 0, 0, 0, 0, 0, 2, 7]);
        assert_eq!((depth.waiting, depth.oldest), (16, Timestamp::from_micros(0)));
    }
}
