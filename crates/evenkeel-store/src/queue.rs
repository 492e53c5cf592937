//! How much waits in the queue, for figures that people look at: nothing is decided by them. Whether
//! somebody takes from it. And what is done with all of it.

use evenkeel_core::aging::Aging;
use evenkeel_core::limit::LimitScope;
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptKey, Timestamp};

use crate::Reprioritized;
use crate::verbs::verbs;

/// Lanes of pools that one look counts each by itself: the first of them, by name. What waits in others
/// is added up.
pub const QUEUE_GROUPS_MAX: u32 = 300;

/// Priorities are counted by tens: 0 to 9, 10 to 19, and so on; the highest is alone.
pub const TENS: usize = 11;

/// What waits in one lane of one pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueDepth {
    /// The pool.
    pub pool: String,
    /// The lane.
    pub lane: Lane,
    /// Attempts that wait for a worker, those included that a blackout holds back.
    pub waiting: u64,
    /// Since when the one that has waited longest does.
    pub oldest: Timestamp,
    /// How many of which priority.
    pub by_tens: [u64; TENS],
}

impl QueueDepth {
    /// A lane in which nothing was seen yet.
    pub const fn none(pool: String, lane: Lane) -> Self {
        Self { pool, lane, waiting: 0, oldest: Timestamp::MAX, by_tens: [0; TENS] }
    }

    /// Which lane of which pool it is.
    pub fn group(&self) -> QueueGroup {
        (self.pool.clone(), self.lane)
    }

    /// So many of this priority were seen, of which the oldest has waited since then.
    pub fn add(&mut self, priority: u8, count: u64, oldest: Timestamp) {
        self.waiting += count;
        self.oldest = self.oldest.min(oldest);
        self.by_tens[usize::from(priority / 10).min(TENS - 1)] += count;
    }
}

/// What waits for workers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueDepths {
    /// By pool, and by lane within it; only where something waits.
    pub depths: Vec<QueueDepth>,
    /// There is more than was looked at: each figure is the least that it can be.
    pub is_lower_bound: bool,
    /// What waits in lanes of other pools than these, by lane; of no pool, since it is of many.
    pub others: Vec<QueueDepth>,
    /// What waits for a place instead of a worker, by the scope of the limit, counted no further than
    /// the limit of the look.
    pub parked: [u64; LimitScope::ALL.len()],
}

/// What stands at the front of queues, told apart from what stood there before. It says nothing else.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueFront(pub i64);

impl FromIterator<AttemptKey> for QueueFront {
    fn from_iter<T: IntoIterator<Item = AttemptKey>>(keys: T) -> Self {
        Self(keys.into_iter().fold(0, |sum, key| sum + key_sign(key)))
    }
}

/// Another number for another attempt, most of the time. Small, so that many can be added up.
fn key_sign(key: AttemptKey) -> i64 {
    let sign = key.job_no.0.wrapping_mul(31).wrapping_add(key.scheduled_at.as_micros());
    sign.wrapping_add(i64::from(key.attempt.0)).rem_euclid(1_000_000_007)
}

/// A lane of a pool.
pub type QueueGroup = (String, Lane);

/// A look at the queue that is under way: how many rows of which lanes of pools are walked next.
///
/// Each has the same share, so that a deep one hides no other; what the shallow ones leave is then
/// shared among those that have more. So about as many rows are walked as allowed, or twice that.
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
    /// Of about `limit` rows of these lanes of pools, in the order of names. Of more than
    /// [`QUEUE_GROUPS_MAX`] the rest is [added up](Self::rest).
    pub fn new(limit: u32, mut groups: Vec<QueueGroup>) -> Self {
        let has_more_groups = groups.len() > QUEUE_GROUPS_MAX as usize;
        groups.truncate(QUEUE_GROUPS_MAX as usize);
        // At least one row of each, which says that something waits there.
        let share = (limit / u32::try_from(groups.len()).unwrap_or(u32::MAX).max(1)).max(1);
        let none = |(pool, lane)| QueueDepth::none(pool, lane);
        let depths = groups.into_iter().map(none).collect();
        Self { limit, share, depths, has_more_groups, others: Vec::new(), others_are_cut: false }
    }

    /// After which lane of a pool the others come, if there are any, and the most rows to walk of
    /// them.
    pub fn rest(&self) -> Option<(QueueGroup, u32)> {
        let last = self.depths.last().filter(|_| self.has_more_groups)?;
        Some((last.group(), self.limit))
    }

    /// Takes what was found of the others: so many of a lane and a priority, of which the oldest has
    /// waited since then; and how many rows were walked for it.
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

    /// What to count first, and the most rows of each: one more than its share, which tells that
    /// there are more.
    pub fn first(&self) -> (Vec<QueueGroup>, u32) {
        (self.depths.iter().map(QueueDepth::group).collect(), self.share.saturating_add(1))
    }

    /// Takes what was counted, in the order in which it was asked for.
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

    /// What to count once more, further.
    pub fn second(&mut self) -> Option<(Vec<QueueGroup>, u32)> {
        let cut: Vec<QueueGroup> = self.cut().map(QueueDepth::group).collect();
        let walked: u64 = self.depths.iter().map(|depth| depth.waiting).sum();
        let left = u64::from(self.limit).saturating_sub(walked);
        let more = u32::try_from(left.checked_div(cut.len() as u64)?).unwrap_or(u32::MAX);
        self.share = self.share.saturating_add(more);
        (more > 0).then(|| (cut, self.share.saturating_add(1)))
    }

    /// What was found.
    pub fn end(mut self) -> QueueDepths {
        let is_lower_bound = self.others_are_cut || self.cut().next().is_some();
        // What was taken meanwhile left nothing.
        self.depths.retain(|depth| depth.waiting > 0);
        let (depths, others) = (self.depths, self.others);
        QueueDepths { depths, is_lower_bound, others, parked: [0; LimitScope::ALL.len()] }
    }

    fn cut(&self) -> impl Iterator<Item = &QueueDepth> {
        self.depths.iter().filter(|depth| depth.waiting > u64::from(self.share))
    }
}

verbs! {
    /// What is asked about the queue as a whole.
    trait QueueStore {}

    /// Counts what waits for workers, of all tenants, by walking about `limit` rows of the queue's
    /// order: [`DepthWalk`] says how many of each lane of each pool, of which the first
    /// [`QUEUE_GROUPS_MAX`] are looked at, waiting rooms of limits not among them. If there are more,
    /// as many rows again are walked to add up what waits in those. With a small limit this says
    /// little more than where something waits.
    read fn queue_depths(limit: u32) -> QueueDepths;

    /// What stands at the front of each lane of these pools, up to `rows` by priority and as many by what
    /// they have waited: as soon as one of them is taken, or another comes there, the answer is
    /// another one. Those that were not open when they came are left out, as in
    /// [`count_queued`](crate::AttemptStore::count_queued).
    read fn queue_front(pools: &[String], rows: u32) -> QueueFront;

    /// Lets what waits in the queue wait as `aging` says, whatever was said when it came: the next
    /// `limit` in the order of their keys, after `after`.
    write fn reprioritize(aging: Aging, after: Option<AttemptKey>, limit: u32) -> Reprioritized;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a walk of a queue as deep as this finds, and how many rows it walks.
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
    fn a_shallow_queue_is_counted_wholly() {
        assert_eq!(walk(100, &[25, 0, 3, 25]), (vec![25, 3, 25], false, 53));
        assert_eq!(walk(100, &[]), (vec![], false, 0));
    }

    #[test]
    fn a_deep_lane_has_what_others_leave() {
        assert_eq!(walk(100, &[80, 5, 5, 5]), (vec![80, 5, 5, 5], false, 41 + 80));
        // 25 and one for each, of which 38 are left for two.
        let (depths, is_lower_bound, walked) = walk(100, &[1000, 5, 1000, 5]);
        assert_eq!((depths, is_lower_bound), (vec![45, 5, 45, 5], true));
        assert!(walked <= 2 * 100 + 4);
    }

    #[test]
    fn with_more_lanes_than_rows_one_of_each_is_looked_at() {
        assert_eq!(walk(2, &[9, 9, 1]), (vec![2, 2, 1], true, 5));
    }

    #[test]
    fn of_too_many_pools_those_beyond_are_added_up() {
        let (depths, is_lower_bound, _) = walk(100_000, &[1; 307]);
        assert_eq!((depths.len(), depths[300], is_lower_bound), (301, 7, false));
        let (depths, is_lower_bound, _) = walk(300, &[1; 900]);
        assert_eq!((depths[300], is_lower_bound), (300, true), "as many as may be walked");
    }

    #[test]
    fn priorities_are_counted_by_tens() {
        let mut depth = QueueDepth::none("default".into(), Lane::Standard);
        for (priority, count) in [(0, 1), (9, 1), (10, 5), (99, 2), (100, 7)] {
            depth.add(priority, count, Timestamp::from_micros(i64::from(priority)));
        }
        assert_eq!(depth.by_tens, [2, 5, 0, 0, 0, 0, 0, 0, 0, 2, 7]);
        assert_eq!((depth.waiting, depth.oldest), (16, Timestamp::from_micros(0)));
    }
}
