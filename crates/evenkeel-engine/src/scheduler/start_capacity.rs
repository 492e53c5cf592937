//! Decides how many due jobs may start on this node now, and how many may be queued.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::aging::Rank;
use evenkeel_core::order::Lane;
use evenkeel_store::{QueueEntry, QueueFront, QueuePosition, StoreError};

use super::Scheduler;
use crate::cluster::node_context::NodeContext;
use crate::scheduler::due_by_destination::Destination;
use crate::scheduler::due_jobs::LaneRanks;
use crate::scheduler::empty_queue::QueueState;

/// Number of batches of regular runs that the queue holds before it counts as full.
const QUEUED_BATCHES: usize = 4;
/// Time without a claim after which a full queue counts as stuck.
const QUEUE_STUCK: Duration = Duration::from_secs(2);
/// Interval at which the first entries of a full queue are read.
const FRONT_EVERY: Duration = Duration::from_millis(500);
/// Maximum number of queue entries read per lane. Many entries are read, because the first queue
/// entries may be attempts that no worker can claim.
const FRONT_ROWS: u32 = 500;
/// After a full queue had no capacity for a job, jobs of the same lane with the same or a lower
/// rank wait for this time.
const LANE_FULL: Duration = Duration::from_millis(100);

/// Where due jobs may start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum StartCapacity {
    /// Due jobs start on this node, in the worker slots that were taken for them.
    Slots(usize),
    /// Due jobs are queued, and each node that serves their pool may claim them.
    Queue,
}

/// Maximum number of due jobs that a scheduler may fire now, per lane.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LaneQuota {
    pub max: [usize; Lane::ALL.len()],
    /// Per lane, the minimum rank of jobs that may be fired.
    pub min_rank: LaneRanks,
    /// True if more jobs are due than may be fired. If `in_order` is true, no job may overtake a
    /// batch that another scheduler of this node is queueing.
    pub in_order: bool,
}

/// What a scheduler knows about the queue of a pool.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct QueueObservation {
    /// Last time at which a claim was observed or the queue was not full.
    claimed_at: Duration,
    /// Number of attempts that this node had claimed at `claimed_at`.
    claimed: u64,
    /// The first entries of the queue, with the time at which they were read.
    front: Option<(QueueFront, Duration)>,
    /// Last time at which the queue had no capacity in any lane.
    pub full_at: Option<Duration>,
    /// Per lane, the highest rank for which the queue had no capacity, with the time of this
    /// observation.
    full: [Option<(Rank, Duration)>; Lane::ALL.len()],
}

impl Scheduler {
    /// Takes up to `wanted` worker slots. Due jobs are queued instead if no worker slot becomes
    /// free for the `stall` time. Due jobs are also queued if worker slots are scarce and other
    /// nodes use the same queue, because only the queue can order the due jobs of all nodes.
    pub(super) fn start_capacity(&mut self, wanted: usize) -> StartCapacity {
        let ctx = Arc::clone(&self.ctx);
        if !ctx.settings.roles.worker || ctx.worker.has_backlog() {
            return StartCapacity::Queue;
        }
        if ctx.worker.has_fewer_slots_than(wanted) && ctx.shares_queue() {
            return StartCapacity::Queue;
        }
        let slots = ctx.worker.take_slots(wanted);
        let (returned, now) = (ctx.worker.slots.returned(), ctx.clock.monotonic());
        // A claim holds all free worker slots for a moment, so only a longer time without free
        // slots counts as a stall.
        let stalled = match self.no_slot_since {
            _ if slots > 0 => {
                self.no_slot_since = None;
                false
            }
            // Slots are free, but too many results are not stored yet. The queue would only cost the
            // store more work, because no other node claims from it.
            _ if ctx.worker.has_free_slot() && !ctx.shares_queue() => {
                self.no_slot_since = None;
                self.is_held_back = true;
                false
            }
            Some((seen, since)) if seen == returned => {
                now.saturating_sub(since) >= ctx.settings.stall
            }
            Some(_) | None => {
                self.no_slot_since = Some((returned, now));
                false
            }
        };
        if stalled { StartCapacity::Queue } else { StartCapacity::Slots(slots) }
    }

    /// True if due jobs wait in memory until the workers of this node have emptied the queue.
    pub(super) fn waits_for_empty_queue(&mut self) -> bool {
        let ctx = &self.ctx;
        let can_be_emptied =
            ctx.settings.roles.worker && ctx.worker.has_free_slot() && !ctx.shares_queue();
        let queue = QueueState {
            has_backlog: ctx.worker.has_backlog(),
            can_be_emptied,
            due: ctx.due.lock().first_ranks(Destination::ThisNode),
            queued: ctx.worker.lowest_queued(),
        };
        self.empty_queue_wait.is_needed(queue, ctx.clock.monotonic())
    }

    /// Divides `slots` among the lanes.
    pub(super) fn slot_quota(
        &self,
        slots: usize,
        wanted: usize,
        due: [usize; Lane::ALL.len()],
    ) -> LaneQuota {
        let most = self.ctx.settings.shares.split(slots, due);
        LaneQuota { max: most, min_rank: [None; Lane::ALL.len()], in_order: slots < wanted }
    }

    /// Returns how many due jobs for a destination may be queued, at most `wanted`.
    ///
    /// The queue holds a few batches of due jobs, which is enough for the next claims. Further due
    /// jobs wait in memory, because a queued run counts as active and its job could skip the next
    /// scheduled time. There are two exceptions. A job that ranks higher than most entries of a
    /// full queue is queued at once. If no worker claims from a full queue, further jobs are
    /// queued, because workers may not be able to claim any of the earlier entries.
    pub(super) async fn queue_quota(
        &mut self,
        destination: Destination<'_>,
        wanted: usize,
    ) -> Result<LaneQuota, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let pools = match destination {
            Destination::ThisNode => ctx.settings.pools.clone(),
            Destination::PoolQueue(pool) => vec![pool.to_owned()],
        };
        let most = QUEUED_BATCHES * ctx.store.batch_sizing().batch;
        let waiting = ctx.store.count_queued(&pools, most as u32).await? as usize;
        let has_capacity = waiting < most;
        let stuck = self.is_stuck(destination, &pools, has_capacity).await?;
        if has_capacity || stuck {
            let due = ctx.due.lock().upcoming.waiting_in(destination);
            let wanted = wanted.min(due.iter().sum());
            let count = if stuck { wanted } else { wanted.min(most - waiting) };
            let most = ctx.settings.shares.split(count, due);
            return Ok(LaneQuota { max: most, min_rank: [None; Lane::ALL.len()], in_order: true });
        }
        let quota = self.quota_ahead_of_queue(destination, &pools, most, wanted).await?;
        match destination {
            Destination::ThisNode => self.queue_is_full = true,
            Destination::PoolQueue(_) => {
                let full = quota.max == [0; Lane::ALL.len()];
                self.observation(destination).full_at = full.then(|| ctx.clock.monotonic());
            }
        }
        Ok(quota)
    }

    /// True if the queue of these pools is full and no attempt was claimed from it for 2 s. Claims
    /// of other nodes are detected by comparing the first entries of the queue.
    async fn is_stuck(
        &mut self,
        destination: Destination<'_>,
        pools: &[String],
        has_capacity: bool,
    ) -> Result<bool, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let now = ctx.clock.monotonic();
        // Claims of this node count only for the queue of the pools that this node serves.
        let claimed = if destination == Destination::ThisNode { ctx.worker.claimed() } else { 0 };
        let seen = self.observation(destination);
        if has_capacity || claimed != seen.claimed {
            (seen.claimed_at, seen.claimed, seen.front) = (now, claimed, None);
            return Ok(false);
        }
        let before = seen.front;
        if before.is_none_or(|(_, at)| now.saturating_sub(at) >= FRONT_EVERY) {
            let front = ctx.store.queue_front(pools, FRONT_ROWS).await?;
            let seen = self.observation(destination);
            if before.is_none_or(|(before, _)| before != front) {
                seen.claimed_at = now;
            }
            seen.front = Some((front, now));
        }
        Ok(now.saturating_sub(self.observation(destination).claimed_at) >= QUEUE_STUCK)
    }

    fn observation(&mut self, destination: Destination<'_>) -> &mut QueueObservation {
        match destination {
            Destination::ThisNode => &mut self.own_queue,
            Destination::PoolQueue(pool) => {
                self.pool_observations.entry(pool.to_owned()).or_default()
            }
        }
    }

    /// Returns how many jobs of each lane may be queued although the queue is full, because they
    /// rank higher than most of its entries. The store is asked once per lane, with the rank of the
    /// lane's first due job, and the answer applies to all due jobs of that rank.
    async fn quota_ahead_of_queue(
        &mut self,
        destination: Destination<'_>,
        pools: &[String],
        most: usize,
        wanted: usize,
    ) -> Result<LaneQuota, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let (now, aging) = (ctx.clock.monotonic(), ctx.settings.aging);
        let (mut free_by_lane, mut least) = ([0; Lane::ALL.len()], [None; Lane::ALL.len()]);
        for lane in Lane::ALL {
            let first_rank = ctx.due.lock().upcoming.first_rank(destination, lane);
            let Some(rank) = first_rank else { continue };
            let full = self.observation(destination).full[lane as usize];
            if full.is_some_and(|(than, at)| rank <= than && now.saturating_sub(at) < LANE_FULL) {
                continue;
            }
            let position = QueuePosition { lane, rank, aging };
            let ahead =
                ctx.store.count_queued_ahead(pools, position, most as u32, NodeContext::NOW);
            let free = most.saturating_sub(ahead.await? as usize);
            let due = ctx.due.lock().upcoming.waiting_in(destination)[lane as usize];
            (free_by_lane[lane as usize], least[lane as usize]) = (free.min(due), Some(rank));
            self.observation(destination).full[lane as usize] = (free == 0).then_some((rank, now));
        }
        let most = ctx.settings.shares.split(wanted, free_by_lane);
        Ok(LaneQuota { max: most, min_rank: least, in_order: true })
    }

    /// Records the claim window of a queued attempt. If this node can claim the queued attempt,
    /// also records that later due jobs must not overtake it.
    pub(super) fn note_queued(&mut self, entry: &QueueEntry) {
        if let Some(closing) = entry.open_until {
            self.note_window_end(closing);
        }
        let settings = &self.ctx.settings;
        let allowed = !entry.forbidden_nodes.contains(&settings.node_name);
        if settings.roles.worker && allowed && settings.pools.contains(&entry.pool) {
            let rank = settings.aging.rank(entry.priority, entry.rise, self.ctx.db_now());
            self.ctx.worker.note_queued_in(entry.lane, rank);
        }
    }
}
