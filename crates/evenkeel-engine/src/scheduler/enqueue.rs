//! Brings what this node may not start itself into the queue, where others find it.
//!
//! It does not wait for this node's own room, and what is for the workers of one pool does not wait
//! for those of another: each pool has a line of its own, and room as long as its queue has.

use std::time::Duration;

use evenkeel_core::order::Lane;
use evenkeel_core::{Definition, TenantNo, Timestamp};
use evenkeel_store::StoreError;

use super::Scheduler;
use super::fire::Picked;
use crate::scheduler::due_by_destination::Destination;

/// Queues that are asked for room in one pass.
const POOLS_A_PASS: usize = 4;
/// A queue of other nodes that had no room is not asked again before.
const POOL_FULL: Duration = Duration::from_millis(100);
/// Until the next pools are asked.
const NEXT_POOLS: Duration = Duration::from_millis(20);

impl Scheduler {
    /// May runs of such a job start on this node without waiting in the queue?
    pub(super) fn is_direct(&self, definition: &Definition, tenant: TenantNo) -> bool {
        let settings = &self.ctx.settings;
        settings.roles.worker && self.ctx.worker.takes_directly(definition, tenant, settings)
    }

    /// Fires one batch of the due jobs that go into the queue in any case. Says how many, and when to
    /// come again if more are due.
    pub(super) async fn fire_to_pools(
        &mut self,
        now: Timestamp,
    ) -> Result<(usize, Option<Duration>), StoreError> {
        let Some((asked, has_others)) = self.pools_to_ask() else {
            self.pool_observations.clear();
            return Ok((0, None));
        };
        // All rooms are known before anything is taken: what is taken must be fired.
        let mut left = self.ctx.store.batch_sizing().batch;
        let mut rooms = Vec::with_capacity(asked.len());
        for pool in asked {
            if left == 0 {
                break;
            }
            let room = self.queue_quota(Destination::PoolQueue(&pool), left).await?;
            left -= room.most.iter().sum::<usize>().min(left);
            rooms.push((pool, room));
        }
        let mut picked = Picked::default();
        for (pool, room) in rooms {
            self.pick(Destination::PoolQueue(&pool), room, now, &mut 0, &mut picked);
            self.last_pool = pool;
        }
        let count = self.fire_picked(picked, now).await;
        let again = match (count, left) {
            (1.., 0) => Duration::ZERO,
            _ if has_others => NEXT_POOLS,
            _ => POOL_FULL,
        };
        let more = self.ctx.due.lock().upcoming.count_pools() > 0;
        Ok((count, more.then_some(again)))
    }

    /// The pools whose queues are asked for room in this pass, and whether there are others; none if
    /// nothing waits for any.
    fn pools_to_ask(&mut self) -> Option<(Vec<String>, bool)> {
        let (due_jobs, own_now) = (self.ctx.due.lock(), self.ctx.clock.monotonic());
        let upcoming = &due_jobs.upcoming;
        if upcoming.count_pools() == 0 {
            return None;
        }
        self.pool_observations.retain(|pool, _| {
            upcoming.waiting_in(Destination::PoolQueue(pool)) != [0; Lane::ALL.len()]
        });
        let was_full = |pool: &&str| {
            let full_at = self.pool_observations.get(*pool).and_then(|seen| seen.full_at);
            let is_own = self.ctx.settings.pools.iter().any(|own| own == pool);
            !is_own && full_at.is_some_and(|at| own_now.saturating_sub(at) < POOL_FULL)
        };
        let mut pools = upcoming.pools_after(&self.last_pool).filter(|pool| !was_full(pool));
        let asked = pools.by_ref().take(POOLS_A_PASS).map(str::to_owned).collect();
        Some((asked, pools.next().is_some()))
    }
}
