//! Groups due jobs by destination, which is this node or the queue of a pool. Due jobs for one
//! destination (this node or a pool) never wait for due jobs for another destination.

use std::collections::BTreeMap;

use evenkeel_core::Timestamp;
use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::{DispatchKey, Lane};

use crate::scheduler::dispatch_order::DispatchOrder;

const LANES: usize = Lane::ALL.len();

/// Where a due job may start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Destination<'a> {
    /// This node may start the job itself, without the queue.
    ThisNode,
    /// The job must be queued, and a worker of the named pool starts it.
    PoolQueue(&'a str),
}

#[derive(Debug)]
pub struct DueByDestination<Id> {
    aging: Aging,
    now: Timestamp,
    this_node: DispatchOrder<Id>,
    /// Pools with at least one due job.
    pools: BTreeMap<String, DispatchOrder<Id>>,
}

impl<Id: Ord + Copy> DueByDestination<Id> {
    pub fn new(aging: Aging) -> Self {
        let this_node = DispatchOrder::new(aging);
        Self { aging, now: Timestamp::MIN, this_node, pools: BTreeMap::new() }
    }

    pub fn advance(&mut self, now: Timestamp) {
        self.now = now;
        self.this_node.advance(now);
        self.pools.values_mut().for_each(|order| order.advance(now));
    }

    pub fn insert(&mut self, destination: Destination<'_>, key: DispatchKey, id: Id) {
        let pool = match destination {
            Destination::ThisNode => return self.this_node.insert(key, id),
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

    pub fn remove(&mut self, destination: Destination<'_>, key: DispatchKey, id: Id) {
        match destination {
            Destination::ThisNode => self.this_node.remove(key, id),
            Destination::PoolQueue(pool) => {
                if let Some(order) = self.pools.get_mut(pool) {
                    order.remove(key, id);
                    self.close_if_empty(pool);
                }
            }
        }
    }

    pub fn pop_first(&mut self, destination: Destination<'_>, lane: Lane) -> Option<Id> {
        match destination {
            Destination::ThisNode => self.this_node.pop_first(lane),
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

    pub fn first_rank(&self, destination: Destination<'_>, lane: Lane) -> Option<Rank> {
        self.order(destination)?.first_rank(lane)
    }

    pub fn count(&self, destination: Destination<'_>) -> [usize; LANES] {
        self.order(destination).map_or([0; LANES], DispatchOrder::count)
    }

    fn order(&self, destination: Destination<'_>) -> Option<&DispatchOrder<Id>> {
        match destination {
            Destination::ThisNode => Some(&self.this_node),
            Destination::PoolQueue(pool) => self.pools.get(pool),
        }
    }

    pub fn pools(&self) -> &BTreeMap<String, DispatchOrder<Id>> {
        &self.pools
    }

    pub fn orders(&self) -> impl Iterator<Item = &DispatchOrder<Id>> {
        std::iter::once(&self.this_node).chain(self.pools.values())
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
    fn each_destination_has_its_own_order() {
        let mut due = DueByDestination::new(Aging::default());
        due.insert(Destination::ThisNode, key(100, 10), 1);
        due.insert(Destination::PoolQueue("chrome"), key(0, 10), 2);
        due.insert(Destination::PoolQueue("chrome"), key(50, 10), 3);
        due.insert(Destination::PoolQueue("mail"), key(0, 10), 4);
        assert_eq!(due.count(Destination::PoolQueue("chrome")), [0, 2, 0]);
        assert_eq!(
            due.first_rank(Destination::PoolQueue("chrome"), Lane::Standard),
            Some(Rank(50))
        );
        assert_eq!(due.pop_first(Destination::PoolQueue("mail"), Lane::Standard), Some(4));
        assert_eq!(due.pop_first(Destination::PoolQueue("mail"), Lane::Standard), None);
        assert_eq!(due.pop_first(Destination::PoolQueue("chrome"), Lane::Standard), Some(3));
        assert_eq!(due.pop_first(Destination::ThisNode, Lane::Standard), Some(1));
        assert_eq!(due.orders().map(|order| order.count()[1]).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn empty_pool_is_removed() {
        let mut due = DueByDestination::new(Aging::default());
        due.insert(Destination::PoolQueue("chrome"), key(0, 10), 1);
        due.insert(Destination::PoolQueue("mail"), key(0, 10), 2);
        due.remove(Destination::PoolQueue("chrome"), key(0, 10), 1);
        due.remove(Destination::PoolQueue("chrome"), key(0, 10), 1);
        assert_eq!(due.pools().keys().collect::<Vec<_>>(), ["mail"]);
        due.pop_first(Destination::PoolQueue("mail"), Lane::Standard);
        assert!(due.pools().is_empty());
    }

    #[test]
    fn new_pool_starts_with_the_current_time() {
        let mut due = DueByDestination::new(Aging::default());
        due.advance(Timestamp::from_micros(90_000 * 1_000_000));
        due.insert(Destination::PoolQueue("chrome"), key(0, 10), 1);
        let rank = due.first_rank(Destination::PoolQueue("chrome"), Lane::Standard);
        assert!(rank > Some(Rank(100)), "{rank:?}");
    }
}
