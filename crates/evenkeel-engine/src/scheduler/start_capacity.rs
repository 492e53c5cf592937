//! How many of what is due may start now, and where.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::aging::Rank;
use evenkeel_core::order::Lane;
use evenkeel_store::{QueueEntry, QueueFront, QueuePosition, Signal, StoreError};

use super::Scheduler;
use crate::cluster::node_context::NodeContext;
use crate::scheduler::due_by_destination::Destination;
use crate::scheduler::due_jobs::LaneRanks;

/// The queue holds so many batches of regular times.
const QUEUED_BATCHES: usize = 4;
/// Full and untouched for this long, nobody takes from it.
const QUEUE_STUCK: Duration = Duration::from_secs(2);
/// The front of a full queue is looked at so often…
const FRONT_EVERY: Duration = Duration::from_millis(500);
/// …and so far, in each lane: some of those that stand there may be for nobody.
const FRONT_ROWS: u32 = 500;
/// A lane that was full stays so for this long, for all that would stand behind.
const LANE_FULL: Duration = Duration::from_millis(100);

/// What may start here.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum StartCapacity {
    /// In so many places for bodies, which were taken for it.
    Slots(usize),
    /// Nothing: it goes into the queue, where other nodes find it too.
    Queue,
}

/// What of each lane may start, or go into the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LaneQuota {
    /// So many of each lane at most.
    pub most: [usize; Lane::ALL.len()],
    /// Of each lane only those that rank as high.
    pub least: LaneRanks,
    /// More is due than there is room for: nothing may go before what another scheduler of the node is
    /// storing in the queue.
    pub in_order: bool,
}

/// What was seen of a queue.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct QueueObservation {
    /// When it was last seen to change, or had room.
    at: Duration,
    /// So many had been claimed by this node then.
    claimed: u64,
    /// What stood at its front when that was last looked at.
    front: Option<(QueueFront, Duration)>,
    /// When it was last found without room for anything.
    pub full_at: Option<Duration>,
    /// In which lanes there was no room for what ranked at that, and when.
    full: [Option<(Rank, Duration)>; Lane::ALL.len()],
}

impl Scheduler {
    /// Takes places for up to `wanted` bodies. Without any, and with none coming free for a while,
    /// what is due goes into the queue. So it does as soon as places are short, if there are other
    /// nodes: they have due runs of their own, and only the queue has an order for all of them.
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
        // A claim takes all places for a moment: only none coming free for a while is a stall.
        let stalled = match self.no_slot_since {
            _ if slots > 0 => {
                self.no_slot_since = None;
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

    /// The first of each lane's share of the places.
    pub(super) fn slot_quota(
        &self,
        slots: usize,
        wanted: usize,
        due: [usize; Lane::ALL.len()],
    ) -> LaneQuota {
        let most = self.ctx.settings.shares.split(slots, due);
        LaneQuota { most, least: [None; Lane::ALL.len()], in_order: slots < wanted }
    }

    /// How many regular times of a line may go into the queue, `wanted` at most. It holds what workers
    /// take in a moment and no more: what is due beyond that waits in memory, where it is not yet
    /// anybody's and cannot be in the way of its own next time. What would be claimed before most of
    /// what is there goes in all the same. A queue that nobody takes from does not hold up what others
    /// would.
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
        let has_room = waiting < most;
        let stuck = self.is_stuck(destination, &pools, has_room).await?;
        if has_room || stuck {
            let due = ctx.due.lock().upcoming.waiting_in(destination);
            let wanted = wanted.min(due.iter().sum());
            let room = if stuck { wanted } else { wanted.min(most - waiting) };
            let most = ctx.settings.shares.split(room, due);
            return Ok(LaneQuota { most, least: [None; Lane::ALL.len()], in_order: true });
        }
        let room = self.quota_ahead_of_queue(destination, &pools, most, wanted).await?;
        match destination {
            Destination::ThisNode => self.queue_is_full = true,
            Destination::PoolQueue(_) => {
                let full = room.most == [0; Lane::ALL.len()];
                self.seen(destination).full_at = full.then(|| ctx.clock.monotonic());
            }
        }
        Ok(room)
    }

    /// Is a queue full, and has nobody taken from it for a while? Who else takes from it is seen by
    /// its front alone, which is looked at now and then.
    async fn is_stuck(
        &mut self,
        destination: Destination<'_>,
        pools: &[String],
        has_room: bool,
    ) -> Result<bool, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let now = ctx.clock.monotonic();
        // Of other pools this node claims nothing.
        let claimed = if destination == Destination::ThisNode { ctx.worker.claimed() } else { 0 };
        let seen = self.seen(destination);
        if has_room || claimed != seen.claimed {
            (seen.at, seen.claimed, seen.front) = (now, claimed, None);
            return Ok(false);
        }
        let before = seen.front;
        if before.is_none_or(|(_, at)| now.saturating_sub(at) >= FRONT_EVERY) {
            let front = ctx.store.queue_front(pools, FRONT_ROWS).await?;
            let seen = self.seen(destination);
            if before.is_none_or(|(before, _)| before != front) {
                seen.at = now;
            }
            seen.front = Some((front, now));
        }
        Ok(now.saturating_sub(self.seen(destination).at) >= QUEUE_STUCK)
    }

    /// What was seen of the queue that a line goes into.
    fn seen(&mut self, destination: Destination<'_>) -> &mut QueueObservation {
        match destination {
            Destination::ThisNode => &mut self.own_queue,
            Destination::PoolQueue(pool) => {
                self.pool_observations.entry(pool.to_owned()).or_default()
            }
        }
    }

    /// How many of each lane go before what is in the queue: of those that rank as high as its
    /// first, so that one is asked for all of them.
    async fn quota_ahead_of_queue(
        &mut self,
        destination: Destination<'_>,
        pools: &[String],
        most: usize,
        wanted: usize,
    ) -> Result<LaneQuota, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        let (now, aging) = (ctx.clock.monotonic(), ctx.settings.aging);
        let (mut room, mut least) = ([0; Lane::ALL.len()], [None; Lane::ALL.len()]);
        for lane in Lane::ALL {
            let first_rank = ctx.due.lock().upcoming.first_rank(destination, lane);
            let Some(rank) = first_rank else { continue };
            let full = self.seen(destination).full[lane as usize];
            if full.is_some_and(|(than, at)| rank <= than && now.saturating_sub(at) < LANE_FULL) {
                continue;
            }
            let place = QueuePosition { lane, rank, aging };
            let ahead = ctx.store.count_queued_ahead(pools, place, most as u32, NodeContext::NOW);
            let free = most.saturating_sub(ahead.await? as usize);
            let due = ctx.due.lock().upcoming.waiting_in(destination)[lane as usize];
            (room[lane as usize], least[lane as usize]) = (free.min(due), Some(rank));
            self.seen(destination).full[lane as usize] = (free == 0).then_some((rank, now));
        }
        let most = ctx.settings.shares.split(wanted, room);
        Ok(LaneQuota { most, least, in_order: true })
    }

    /// What this node could take itself it will not overtake.
    pub(super) fn note_queued(&mut self, ticket: &QueueEntry) {
        if let Some(closing) = ticket.open_until {
            self.note_window_end(closing);
        }
        let settings = &self.ctx.settings;
        let allowed = !ticket.forbidden_nodes.contains(&settings.node_name);
        if settings.roles.worker && allowed && settings.pools.contains(&ticket.pool) {
            self.ctx.worker.note_queued();
        }
    }

    /// Tells workers that attempts wait, without making firing wait for it.
    pub(super) fn announce_ready(&self) {
        let store = Arc::clone(&self.ctx.store);
        tokio::spawn(async move {
            // A lost wake-up costs one poll.
            let _ = store.announce(Signal::Ready).await;
        });
    }
}
