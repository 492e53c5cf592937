//! What is due, in lines that do not wait for each other: what this node may start itself, and for
//! each pool what gets to its workers by way of the queue alone.

use std::collections::BTreeMap;

use evenkeel_core::Timestamp;
use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::{DispatchKey, Lane};

use crate::scheduler::dispatch_order::DispatchOrder;

const LANES: usize = Lane::ALL.len();

/// Where what is due waits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Destination<'a> {
    /// For this node's own room: it may start it itself.
    ThisNode,
    /// For room in the queue of this pool: this node may not start it, or not without a claim.
    PoolQueue(&'a str),
}

/// The lines of what is due.
#[derive(Debug)]
pub struct DueByDestination<Id> {
    aging: Aging,
    now: Timestamp,
    here: DispatchOrder<Id>,
    /// Those in which something waits.
    pools: BTreeMap<String, DispatchOrder<Id>>,
}

impl<Id: Ord + Copy> DueByDestination<Id> {
    /// Nothing is due. Waiting counts as `aging` says.
    pub fn new(aging: Aging) -> Self {
        let here = DispatchOrder::new(aging);
        Self { aging, now: Timestamp::MIN, here, pools: BTreeMap::new() }
    }

    /// Time has passed.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = now;
        self.here.advance(now);
        self.pools.values_mut().for_each(|order| order.advance(now));
    }

    /// Something is due.
    pub fn insert(&mut self, destination: Destination<'_>, key: DispatchKey, id: Id) {
        let pool = match destination {
            Destination::ThisNode => return self.here.insert(key, id),
            Destination::PoolQueue(pool) => pool,
        };
        if let Some(order) = self.pools.get_mut(pool) {
            return order.insert(key, id);
        }
        let mut order = DispatchOrder::new(self.aging);
        order.advance(self.now);
        order.insert(key, id);
        self.pools.insert(pool.to_owned(), order);
    }

    /// It is due no more.
    pub fn remove(&mut self, destination: Destination<'_>, key: DispatchKey, id: Id) {
        match destination {
            Destination::ThisNode => self.here.remove(key, id),
            Destination::PoolQueue(pool) => {
                if let Some(order) = self.pools.get_mut(pool) {
                    order.remove(key, id);
                    self.close_if_empty(pool);
                }
            }
        }
    }

    /// Takes the first of a lane.
    pub fn pop_first(&mut self, destination: Destination<'_>, lane: Lane) -> Option<Id> {
        match destination {
            Destination::ThisNode => self.here.pop_first(lane),
            Destination::PoolQueue(pool) => {
                let first = self.pools.get_mut(pool)?.pop_first(lane);
                self.close_if_empty(pool);
                first
            }
        }
    }

    fn close_if_empty(&mut self, pool: &str) {
        if self.pools.get(pool).is_some_and(|order| order.count() == [0; LANES]) {
            self.pools.remove(pool);
        }
    }

    /// What the first of a lane ranks at.
    pub fn first_rank(&self, destination: Destination<'_>, lane: Lane) -> Option<Rank> {
        self.order(destination)?.first_rank(lane)
    }

    /// How many are due in a line, by lane.
    pub fn count(&self, destination: Destination<'_>) -> [usize; LANES] {
        self.order(destination).map_or([0; LANES], DispatchOrder::count)
    }

    fn order(&self, destination: Destination<'_>) -> Option<&DispatchOrder<Id>> {
        match destination {
            Destination::ThisNode => Some(&self.here),
            Destination::PoolQueue(pool) => self.pools.get(pool),
        }
    }

    /// The pools for whose queues something waits.
    pub fn pools(&self) -> &BTreeMap<String, DispatchOrder<Id>> {
        &self.pools
    }

    /// The order of each line.
    pub fn orders(&self) -> impl Iterator<Item = &DispatchOrder<Id>> {
        std::iter::once(&self.here).chain(self.pools.values())
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use evenkeel_core::order::Priority;

    use super::*;

    fn key(priority: u8, since: i64) -> DispatchKey {
        let since = Timestamp::from_micros(since * 1_000_000);
        DispatchKey {
            lane: Lane::Standard,
            priority: Reverse(Priority::try_from(priority).unwrap()),
            should_start_by: since,
            ready_at: since,
        }
    }

    #[test]
    fn each_line_has_its_own_first() {
        let mut lines = DueByDestination::new(Aging::default());
        lines.insert(Destination::ThisNode, key(100, 10), 1);
        lines.insert(Destination::PoolQueue("chrome"), key(0, 10), 2);
        lines.insert(Destination::PoolQueue("chrome"), key(50, 10), 3);
        lines.insert(Destination::PoolQueue("mail"), key(0, 10), 4);
        assert_eq!(lines.count(Destination::PoolQueue("chrome")), [0, 2, 0]);
        assert_eq!(
            lines.first_rank(Destination::PoolQueue("chrome"), Lane::Standard),
            Some(Rank(50))
        );
        assert_eq!(lines.pop_first(Destination::PoolQueue("mail"), Lane::Standard), Some(4));
        assert_eq!(lines.pop_first(Destination::PoolQueue("mail"), Lane::Standard), None);
        assert_eq!(lines.pop_first(Destination::PoolQueue("chrome"), Lane::Standard), Some(3));
        assert_eq!(lines.pop_first(Destination::ThisNode, Lane::Standard), Some(1));
        assert_eq!(lines.orders().map(|order| order.count()[1]).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_line_goes_when_its_last_does() {
        let mut lines = DueByDestination::new(Aging::default());
        lines.insert(Destination::PoolQueue("chrome"), key(0, 10), 1);
        lines.insert(Destination::PoolQueue("mail"), key(0, 10), 2);
        lines.remove(Destination::PoolQueue("chrome"), key(0, 10), 1);
        lines.remove(Destination::PoolQueue("chrome"), key(0, 10), 1);
        assert_eq!(lines.pools().keys().collect::<Vec<_>>(), ["mail"]);
        lines.pop_first(Destination::PoolQueue("mail"), Lane::Standard);
        assert!(lines.pools().is_empty());
    }

    #[test]
    fn a_line_that_comes_late_knows_the_time() {
        let mut lines = DueByDestination::new(Aging::default());
        lines.advance(Timestamp::from_micros(90_000 * 1_000_000));
        lines.insert(Destination::PoolQueue("chrome"), key(0, 10), 1);
        let rank = lines.first_rank(Destination::PoolQueue("chrome"), Lane::Standard);
        assert!(rank > Some(Rank(100)), "{rank:?}");
    }
}
