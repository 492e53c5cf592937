//! Counts of waiting attempts.

use std::cmp::Reverse;

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::LimitKey;
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::{
    DepthWalk, QueueDepth, QueueDepths, QueueFront, QueueGroup, QueueStore, QueuedAttempt,
    Reprioritized, StoreError,
};

use super::ModelStore;
use super::data::{Data, Place, Waiting};

impl Data {
    fn queue_depths(&self, limit: u32) -> QueueDepths {
        let pools = self.queue.iter().filter(|(pool, _)| LimitKey::of_queue_pool(pool).is_none());
        let pools = pools.flat_map(|(pool, lanes)| {
            let full = Lane::ALL.into_iter().filter(|lane| !lanes[*lane as usize].is_empty());
            full.map(|lane| (pool.clone(), lane))
        });
        let mut groups: Vec<QueueGroup> = pools.collect();
        groups.sort_unstable();
        let mut walk = DepthWalk::new(limit, groups);
        walk.take(self.count_first(walk.first()));
        if let Some(more) = walk.second() {
            walk.take(self.count_first(more));
        }
        if let Some((last, most)) = walk.rest() {
            let found: Vec<_> = self.after(&last).take(most as usize).collect();
            let walked = found.len() as u64;
            walk.take_rest(found, walked);
        }
        QueueDepths { parked: self.parked(limit), ..walk.end() }
    }

    /// Returns the lane, priority, count and queue time of all attempts in the groups after the
    /// group `last`.
    fn after(&self, last: &QueueGroup) -> impl Iterator<Item = (Lane, u8, u64, Timestamp)> {
        let lanes = self.queue.iter().filter(|(pool, _)| LimitKey::of_queue_pool(pool).is_none());
        let lanes = lanes.flat_map(|(pool, lanes)| Lane::ALL.map(|lane| (pool, lane, lanes)));
        let others = lanes.filter(|(pool, lane, _)| (*pool, *lane) > (&last.0, last.1));
        others.flat_map(|(_, lane, lanes)| {
            let count =
                move |(order, _, _): &Place| (lane, order.priority.0.get(), 1, order.ready_at);
            lanes[lane as usize].iter().map(count)
        })
    }

    fn count_first(&self, (groups, most): (Vec<QueueGroup>, u32)) -> Vec<QueueDepth> {
        let count = |(pool, lane): QueueGroup| {
            let mut depth = QueueDepth::none(pool, lane);
            let waiting = self.queue.get(&depth.pool).into_iter();
            let waiting = waiting.flat_map(|lanes| &lanes[lane as usize]);
            for (order, _, _) in waiting.take(most as usize) {
                depth.add(order.priority.0.get(), 1, order.ready_at);
            }
            depth
        };
        groups.into_iter().map(count).collect()
    }

    fn queue_front(&self, pools: &[String], rows: usize) -> QueueFront {
        let lanes = pools.iter().filter_map(|pool| self.queue.get(pool)).flatten();
        let fronts = lanes.flat_map(|lane| {
            let open = |place: &&Place| match self.waiting.get(&(place.1, place.2)) {
                Some(Waiting::Ready(ready)) => ready.window.from.is_none().then_some(ready.rise),
                Some(Waiting::Delayed { .. }) | None => None,
            };
            let first: Vec<_> =
                lane.iter().filter_map(|place| Some((open(&place)?, *place))).collect();
            let mut risen = first.clone();
            risen.sort_unstable_by_key(|(rise, place)| {
                (*rise, place.0.should_start_by, place.0.ready_at, place.1)
            });
            let first = first.into_iter().take(rows);
            first.chain(risen.into_iter().take(rows)).map(|(_, place)| place.2)
        });
        fronts.collect()
    }

    fn reprioritize(
        &mut self,
        aging: Aging,
        after: Option<AttemptKey>,
        limit: u32,
    ) -> Reprioritized {
        let ready = self.waiting.iter_mut().filter_map(|((_, key), waiting)| match waiting {
            Waiting::Ready(ready) if Some(*key) > after => Some((*key, ready)),
            Waiting::Ready(_) | Waiting::Delayed { .. } => None,
        });
        let mut ready: Vec<_> = ready.collect();
        ready.sort_unstable_by_key(|(key, _)| *key);
        ready.truncate(limit as usize);
        let is_full = ready.len() == limit as usize;
        let next = ready.last().map(|(key, _)| *key).filter(|_| is_full);
        let mut changed = 0;
        for (key, ready) in ready {
            let (Reverse(priority), since) = (ready.order.priority, ready.order.ready_at);
            let waiter = QueuedAttempt { key, priority, since, rise: ready.rise };
            if let Some(rise) = waiter.other_rise(&aging) {
                ready.rise = rise;
                changed += 1;
            }
        }
        Reprioritized { changed, missed: 0, next }
    }
}

#[async_trait]
impl QueueStore for ModelStore {
    async fn queue_depths(&self, limit: u32) -> Result<QueueDepths, StoreError> {
        Ok(self.lock().queue_depths(limit))
    }

    async fn queue_front(&self, pools: &[String], rows: u32) -> Result<QueueFront, StoreError> {
        Ok(self.lock().queue_front(pools, rows as usize))
    }

    async fn reprioritize(
        &self,
        aging: Aging,
        after: Option<AttemptKey>,
        limit: u32,
    ) -> Result<Reprioritized, StoreError> {
        Ok(self.lock().reprioritize(aging, after, limit))
    }
}
