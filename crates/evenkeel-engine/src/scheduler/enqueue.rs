//! Puts due jobs that this node may not start itself into the queue.
//!
//! Jobs that this node may not start itself do not wait for its worker slots. Each pool has its own
//! dispatch order and its own queue capacity, so jobs for one pool do not wait for jobs of another
//! pool.

use std::time::Duration;

use evenkeel_core::order::Lane;
use evenkeel_core::{Definition, TenantNo, Timestamp};
use evenkeel_store::StoreError;

use super::Scheduler;
use super::fire::Picked;
use crate::scheduler::due_by_destination::Destination;

/// Number of pools whose queues one pass of a scheduler checks.
const POOLS_A_PASS: usize = 4;
/// Delay before the full queue of a pool is checked again, for jobs that this node may not start
/// itself.
const POOL_FULL: Duration = Duration::from_millis(100);
/// Delay before a scheduler checks the queues of further pools.
const NEXT_POOLS: Duration = Duration::from_millis(20);

impl Scheduler {
    /// True if runs of the job may start on this node without being queued.
    pub(super) fn is_direct(&self, definition: &Definition, tenant: TenantNo) -> bool {
        let settings = &self.ctx.settings;
        settings.roles.worker && self.ctx.worker.takes_directly(definition, tenant, settings)
    }

    /// Queues one batch of due jobs that this node may not start itself. Returns how many jobs were
    /// queued, and the delay until the next batch if further jobs are due.
    pub(super) async fn fire_to_pools(
        &mut self,
        now: Timestamp,
    ) -> Result<(usize, Option<Duration>), StoreError> {
        let Some((pools, has_others)) = self.pools_to_check() else {
            self.pool_observations.clear();
            return Ok((0, None));
        };
        // Read the capacities of all queues before taking jobs, because a job that was taken must
        // be fired.
        let mut left = self.ctx.store.batch_sizing().batch;
        let mut quotas = Vec::with_capacity(pools.len());
        for pool in pools {
            if left == 0 {
                break;
            }
            let quota = self.queue_quota(Destination::PoolQueue(&pool), left).await?;
            left -= quota.max.iter().sum::<usize>().min(left);
            quotas.push((pool, quota));
        }
        let mut picked = Picked::default();
        for (pool, quota) in quotas {
            self.pick(Destination::PoolQueue(&pool), quota, now, &mut 0, &mut picked);
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

    /// Returns the pools whose queues are checked in this pass, and whether further pools have due
    /// jobs. Returns `None` if no pool has due jobs.
    fn pools_to_check(&mut self) -> Option<(Vec<String>, bool)> {
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
        let mut candidates = upcoming.pools_after(&self.last_pool).filter(|pool| !was_full(pool));
        let pools = candidates.by_ref().take(POOLS_A_PASS).map(str::to_owned).collect();
        Some((pools, candidates.next().is_some()))
    }
}
