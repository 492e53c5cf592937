//! How many of what is due may start now, and where.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::aging::Rank;
use evenkeel_core::order::Lane;
use evenkeel_store::{QueueEntry, QueueFront, QueuePlace, Signal, StoreError};

use super::Scheduler;
use crate::cluster::node_context::NodeContext;
use crate::scheduler::due_lines::Line;
use crate::scheduler::node_due::LaneRanks;

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
pub(super) enum Room {
    /// In so many places for bodies, which were taken for it.
    Here(usize),
    /// Nothing: it goes into the queue, where other nodes find it too.
    InQueue,
}

/// What of each lane may start, or go into the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LaneRoom {
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
pub(super) struct QueueSeen {
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
    pub(super) fn room_for(&mut self, wanted: usize) -> Room {
        let life = Arc::clone(&self.life);
        if !life.settings.roles.worker || life.worker.has_backlog() {
            return Room::InQueue;
        }
        if life.worker.is_short_of(wanted) && life.shares_queue() {
            return Room::InQueue;
        }
        let places = life.worker.take_places(wanted);
        let (returned, now) = (life.worker.slots.returned(), life.clock.monotonic());
        // A claim takes all places for a moment: only none coming free for a while is a stall.
        let stalled = match self.no_place_since {
            _ if places > 0 => {
                self.no_place_since = None;
                false
            }
            Some((seen, since)) if seen == returned => {
                now.saturating_sub(since) >= life.settings.stall
            }
            Some(_) | None => {
                self.no_place_since = Some((returned, now));
                false
            }
        };
        if stalled { Room::InQueue } else { Room::Here(places) }
    }

    /// The first of each lane's share of the places.
    pub(super) fn room_here(
        &self,
        places: usize,
        wanted: usize,
        due: [usize; Lane::ALL.len()],
    ) -> LaneRoom {
        let most = self.life.settings.shares.split(places, due);
        LaneRoom { most, least: [None; Lane::ALL.len()], in_order: places < wanted }
    }

    /// How many regular times of a line may go into the queue, `wanted` at most. It holds what workers
    /// take in a moment and no more: what is due beyond that waits in memory, where it is not yet
    /// anybody's and cannot be in the way of its own next time. What would be claimed before most of
    /// what is there goes in all the same. A queue that nobody takes from does not hold up what others
    /// would.
    pub(super) async fn queue_room(
        &mut self,
        line: Line<'_>,
        wanted: usize,
    ) -> Result<LaneRoom, StoreError> {
        let life = Arc::clone(&self.life);
        let pools = match line {
            Line::Here => life.settings.pools.clone(),
            Line::Pool(pool) => vec![pool.to_owned()],
        };
        let most = QUEUED_BATCHES * life.store.appetite().batch;
        let waiting = life.store.waiting(&pools, most as u32).await? as usize;
        let has_room = waiting < most;
        let stuck = self.is_stuck(line, &pools, has_room).await?;
        if has_room || stuck {
            let due = life.due.lock().future.waiting_in(line);
            let wanted = wanted.min(due.iter().sum());
            let room = if stuck { wanted } else { wanted.min(most - waiting) };
            let most = life.settings.shares.split(room, due);
            return Ok(LaneRoom { most, least: [None; Lane::ALL.len()], in_order: true });
        }
        let room = self.room_ahead(line, &pools, most, wanted).await?;
        match line {
            Line::Here => self.queue_is_full = true,
            Line::Pool(_) => {
                let full = room.most == [0; Lane::ALL.len()];
                self.seen(line).full_at = full.then(|| life.clock.monotonic());
            }
        }
        Ok(room)
    }

    /// Is a queue full, and has nobody taken from it for a while? Who else takes from it is seen by
    /// its front alone, which is looked at now and then.
    async fn is_stuck(
        &mut self,
        line: Line<'_>,
        pools: &[String],
        has_room: bool,
    ) -> Result<bool, StoreError> {
        let life = Arc::clone(&self.life);
        let now = life.clock.monotonic();
        // Of other pools this node claims nothing.
        let claimed = if line == Line::Here { life.worker.claimed() } else { 0 };
        let seen = self.seen(line);
        if has_room || claimed != seen.claimed {
            (seen.at, seen.claimed, seen.front) = (now, claimed, None);
            return Ok(false);
        }
        let before = seen.front;
        if before.is_none_or(|(_, at)| now.saturating_sub(at) >= FRONT_EVERY) {
            let front = life.store.queue_front(pools, FRONT_ROWS).await?;
            let seen = self.seen(line);
            if before.is_none_or(|(before, _)| before != front) {
                seen.at = now;
            }
            seen.front = Some((front, now));
        }
        Ok(now.saturating_sub(self.seen(line).at) >= QUEUE_STUCK)
    }

    /// What was seen of the queue that a line goes into.
    fn seen(&mut self, line: Line<'_>) -> &mut QueueSeen {
        match line {
            Line::Here => &mut self.queue_seen,
            Line::Pool(pool) => self.pools_seen.entry(pool.to_owned()).or_default(),
        }
    }

    /// How many of each lane go before what is in the queue: of those that rank as high as its
    /// first, so that one is asked for all of them.
    async fn room_ahead(
        &mut self,
        line: Line<'_>,
        pools: &[String],
        most: usize,
        wanted: usize,
    ) -> Result<LaneRoom, StoreError> {
        let life = Arc::clone(&self.life);
        let (now, aging) = (life.clock.monotonic(), life.settings.aging);
        let (mut room, mut least) = ([0; Lane::ALL.len()], [None; Lane::ALL.len()]);
        for lane in Lane::ALL {
            let first_rank = life.due.lock().future.first_rank(line, lane);
            let Some(rank) = first_rank else { continue };
            let full = self.seen(line).full[lane as usize];
            if full.is_some_and(|(than, at)| rank <= than && now.saturating_sub(at) < LANE_FULL) {
                continue;
            }
            let place = QueuePlace { lane, rank, aging };
            let ahead = life.store.waiting_ahead(pools, place, most as u32, NodeContext::NOW);
            let free = most.saturating_sub(ahead.await? as usize);
            let due = life.due.lock().future.waiting_in(line)[lane as usize];
            (room[lane as usize], least[lane as usize]) = (free.min(due), Some(rank));
            self.seen(line).full[lane as usize] = (free == 0).then_some((rank, now));
        }
        let most = life.settings.shares.split(wanted, room);
        Ok(LaneRoom { most, least, in_order: true })
    }

    /// What this node could take itself it will not overtake.
    pub(super) fn note_queued(&mut self, ticket: &QueueEntry) {
        if let Some(closing) = ticket.open_until {
            self.note_closing(closing);
        }
        let settings = &self.life.settings;
        let allowed = !ticket.forbidden_nodes.contains(&settings.node_name);
        if settings.roles.worker && allowed && settings.pools.contains(&ticket.pool) {
            self.life.worker.note_queued();
        }
    }

    /// Tells workers that attempts wait, without making firing wait for it.
    pub(super) fn announce_ready(&self) {
        let store = Arc::clone(&self.life.store);
        tokio::spawn(async move {
            // A lost wake-up costs one poll.
            let _ = store.announce(Signal::Ready).await;
        });
    }
}
