//! How much waits in the queue.

use async_trait::async_trait;
use evenkeel_core::limit::LimitKey;
use evenkeel_core::order::Lane;
use evenkeel_store::{DepthWalk, QueueDepth, QueueDepths, QueueGroup, QueueStore, StoreError};

use super::ModelStore;
use super::data::Data;

impl Data {
    fn queue_depths(&self, limit: u32) -> QueueDepths {
        let pools = self.queue.iter().filter(|(pool, _)| LimitKey::of_room(pool).is_none());
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
        QueueDepths { parked: self.parked(limit), ..walk.end() }
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
}

#[async_trait]
impl QueueStore for ModelStore {
    async fn queue_depths(&self, limit: u32) -> Result<QueueDepths, StoreError> {
        Ok(self.lock().queue_depths(limit))
    }
}
