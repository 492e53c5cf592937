//! Sorts due jobs or attempts (entries) in dispatch order, first by rank and then by deadline.
//!
//! The rank of a due entry is the higher of two numbers: its priority, and a number that grows with
//! its waiting time (aging). Ranks change over time, but the order of entries by priority and their
//! order by waiting time do not change. Due entries are kept in two sets, one sorted by priority
//! and one sorted by waiting time. The entry with the highest rank is the first entry of one of the
//! two sets. An entry that has not waited long enough for aging is only in the set by priority, so
//! it costs only one insertion.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use evenkeel_core::Timestamp;
use evenkeel_core::aging::{Aging, Rank, Rise};
use evenkeel_core::order::{DispatchKey, Lane};

const LANES: usize = Lane::ALL.len();

/// Sort key of entries whose rank has risen by aging. The entry with the lowest sort key starts
/// first.
type AgedKey<Id> = (Rise, Timestamp, Timestamp, Id, DispatchKey);

/// Due jobs or attempts in dispatch order. Their waiting time counts from
/// [`DispatchKey::ready_at`].
#[derive(Debug)]
pub struct DispatchOrder<Id> {
    aging: Aging,
    by_priority: [BTreeSet<(DispatchKey, Id)>; LANES],
    /// Due entries whose rank has risen by aging, because they have been waiting since before
    /// `gained_before`.
    aged: [BTreeSet<AgedKey<Id>>; LANES],
    gained_before: Timestamp,
    now: Timestamp,
}

impl<Id: Ord + Copy> DispatchOrder<Id> {
    pub fn new(aging: Aging) -> Self {
        Self {
            aging,
            by_priority: [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()],
            aged: [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()],
            gained_before: Timestamp::MIN,
            now: Timestamp::MIN,
        }
    }

    /// Sets the current time, and finds due entries whose rank begins to rise by aging. All entries
    /// are searched, but only at the few moments at which the rank of an entry can begin to rise.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = now;
        let gained_before = self.aging.gained_before(now);
        if gained_before == self.gained_before {
            return;
        }
        let since = std::mem::replace(&mut self.gained_before, gained_before);
        for (all, aged) in self.by_priority.iter().zip(&mut self.aged) {
            if gained_before < since {
                // The database's clock was set back, so some ranks are no longer raised by aging.
                aged.retain(|(.., key)| key.ready_at < gained_before);
                continue;
            }
            let gained =
                all.iter().filter(|(key, _)| since <= key.ready_at && key.ready_at < gained_before);
            aged.extend(gained.map(|(key, id)| aged_key(&self.aging, *key, *id)));
        }
    }

    pub fn insert(&mut self, key: DispatchKey, id: Id) {
        self.by_priority[key.lane as usize].insert((key, id));
        if key.ready_at < self.gained_before {
            self.aged[key.lane as usize].insert(aged_key(&self.aging, key, id));
        }
    }

    pub fn remove(&mut self, key: DispatchKey, id: Id) {
        self.by_priority[key.lane as usize].remove(&(key, id));
        if key.ready_at < self.gained_before {
            self.aged[key.lane as usize].remove(&aged_key(&self.aging, key, id));
        }
    }

    pub fn clear(&mut self) {
        self.by_priority.iter_mut().for_each(BTreeSet::clear);
        self.aged.iter_mut().for_each(BTreeSet::clear);
    }

    /// Number of entries by lane.
    pub fn count(&self) -> [usize; LANES] {
        [self.by_priority[0].len(), self.by_priority[1].len(), self.by_priority[2].len()]
    }

    /// Returns the due entries of a lane, sorted by priority and deadline without aging.
    pub fn by_priority(&self, lane: Lane) -> &BTreeSet<(DispatchKey, Id)> {
        &self.by_priority[lane as usize]
    }

    pub fn first_rank(&self, lane: Lane) -> Option<Rank> {
        self.first(lane).map(|(key, _)| self.rank(&key))
    }

    pub fn pop_first(&mut self, lane: Lane) -> Option<Id> {
        let (key, id) = self.first(lane)?;
        self.remove(key, id);
        Some(id)
    }

    /// Returns the due entry with the highest rank, which is the first by priority or the first by
    /// waiting time.
    fn first(&self, lane: Lane) -> Option<(DispatchKey, Id)> {
        let first = self.by_priority[lane as usize].first().copied()?;
        let Some((.., id, key)) = self.aged[lane as usize].first().copied() else {
            return Some(first);
        };
        let aged = (key, id);
        let sort_key = |(key, id): (DispatchKey, Id)| {
            (Reverse(self.rank(&key)), key.should_start_by, key.ready_at, id)
        };
        Some(if sort_key(aged) < sort_key(first) { aged } else { first })
    }

    fn rank(&self, key: &DispatchKey) -> Rank {
        let priority = key.priority.0;
        if key.ready_at >= self.gained_before {
            return Rank(i64::from(priority.get()));
        }
        self.aging.rank(priority, self.aging.rise(priority, key.ready_at), self.now)
    }
}

fn aged_key<Id>(aging: &Aging, key: DispatchKey, id: Id) -> AgedKey<Id> {
    let rise = aging.rise(key.priority.0, key.ready_at);
    (rise, key.should_start_by, key.ready_at, id, key)
}

#[cfg(test)]
mod tests {
    use evenkeel_core::Span;
    use evenkeel_core::order::Priority;
    use proptest::prelude::*;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn key(lane: Lane, priority: u8, should_start_by: i64, since: i64) -> DispatchKey {
        DispatchKey {
            lane,
            priority: Reverse(Priority::try_from(priority).unwrap()),
            should_start_by: at(should_start_by),
            ready_at: at(since),
        }
    }

    #[test]
    fn lowest_priority_is_taken_after_waiting_in_a_stream_of_higher_ones() {
        let mut due = DispatchOrder::new(Aging::default());
        due.insert(key(Lane::Standard, 0, 900_000, 10), 0);
        for n in 1.. {
            // Each new entry has an earlier deadline than the waiting entry.
            let now = n * 60;
            due.advance(at(now));
            due.insert(key(Lane::Standard, 100, now, now), n);
            due.insert(key(Lane::Standard, 100, now, now), -n);
            if due.pop_first(Lane::Standard) == Some(0) {
                // Aging raises the rank of the waiting entry by 10 at 3,900 s and then every 300 s.
                // When this rank reaches 100, all ranks are equal, and the entry with the earlier
                // deadline starts first.
                assert_eq!(now, 3_900 + 10 * 300);
                break;
            }
            assert!(now < 90_000, "the lowest priority starves");
        }
    }

    #[test]
    fn entry_inserted_after_a_long_wait_has_its_gain_at_once() {
        let mut due = DispatchOrder::new(Aging::default());
        due.advance(at(90_000));
        due.insert(key(Lane::Standard, 90, 1, 89_999), 1);
        due.insert(key(Lane::Standard, 0, 2, 10), 2);
        assert_eq!(due.first_rank(Lane::Standard), Some(Rank(10 * 288)));
        due.remove(key(Lane::Standard, 0, 2, 10), 2);
        assert_eq!(due.first_rank(Lane::Standard), Some(Rank(90)));
        assert_eq!(due.count(), [0, 1, 0]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u8, i64, i64),
        Remove(usize),
        Pop(u8),
        Advance(i64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u8..3, 0_u8..=100, 0_i64..4, 0_i64..9_000)
                .prop_map(|(lane, priority, by, since)| Step::Insert(lane, priority, by, since)),
            1 => (0_usize..50).prop_map(Step::Remove),
            3 => (0_u8..3).prop_map(Step::Pop),
            // Negative steps simulate a database clock that is set back.
            2 => (-500_i64..3_000).prop_map(Step::Advance),
        ]
    }

    proptest! {
        /// Compares the first entry of a `DispatchOrder` with the result of sorting all entries.
        #[test]
        fn first_entry_has_the_highest_rank(
            steps in prop::collection::vec(any_step(), 1..120),
            every in 1_u64..700, after in 0_u64..4_000, step in 0_u8..40,
        ) {
            let (every, after) = (Span::from_secs(every), Span::from_secs(after));
            let aging = Aging { every, after, step, ..Aging::default() };
            let (mut due, mut all, mut now) = (DispatchOrder::new(aging), Vec::new(), 9_000);
            due.advance(at(now));
            for (id, happens) in steps.into_iter().enumerate() {
                match happens {
                    Step::Insert(lane, priority, by, since) => {
                        let key = key(Lane::ALL[usize::from(lane)], priority, by, since);
                        due.insert(key, id);
                        all.push((key, id));
                    }
                    Step::Remove(nth) if nth < all.len() => {
                        let (key, id) = all.swap_remove(nth);
                        due.remove(key, id);
                    }
                    Step::Remove(_) => {}
                    Step::Advance(secs) => {
                        now += secs;
                        due.advance(at(now));
                    }
                    Step::Pop(lane) => {
                        let lane = Lane::ALL[usize::from(lane)];
                        let rank = |key: &DispatchKey| {
                            let rise = aging.rise(key.priority.0, key.ready_at);
                            aging.rank(key.priority.0, rise, at(now))
                        };
                        let sort_key = |(key, id): &(DispatchKey, usize)| {
                            (Reverse(rank(key)), key.should_start_by, key.ready_at, *id)
                        };
                        let of_lane = all.iter().filter(|(key, _)| key.lane == lane);
                        let first = of_lane.min_by_key(|one| sort_key(one)).copied();
                        prop_assert_eq!(due.first_rank(lane), first.map(|(key, _)| rank(&key)));
                        prop_assert_eq!(due.pop_first(lane), first.map(|(_, id)| id));
                        all.retain(|one| Some(*one) != first);
                    }
                }
                prop_assert_eq!(due.count().iter().sum::<usize>(), all.len());
            }
        }
    }
}
