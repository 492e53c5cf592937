//! How many of what is due may start now, and where.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::aging::Rank;
use evenkeel_core::order::Lane;
use evenkeel_store::{QueuePlace, Signal, StoreError, Ticket};

use super::Scheduler;
use crate::incarnation::Incarnation;

/// The queue holds so many batches of regular times.
const QUEUED_BATCHES: usize = 4;
/// Full and untouched for this long, nobody takes from it.
const QUEUE_STUCK: Duration = Duration::from_secs(2);
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
    pub least: [Option<Rank>; Lane::ALL.len()],
}

/// What was seen of the queue when it last changed.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct QueueSeen {
    waiting: usize,
    /// So many had been claimed by this node.
    claimed: u64,
    at: Duration,
    /// In which lanes there was no room for what ranked at that, and when.
    full: [Option<(Rank, Duration)>; Lane::ALL.len()],
}

impl Scheduler {
    /// Takes places for up to `wanted` bodies. Without any, and with none coming free for a while,
    /// what is due goes into the queue.
    pub(super) fn room_for(&mut self, wanted: usize) -> Room {
        let life = Arc::clone(&self.life);
        if !life.settings.roles.worker || life.worker.has_backlog() {
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
    pub(super) fn room_here(&self, places: usize, due: [usize; Lane::ALL.len()]) -> LaneRoom {
        let most = self.life.settings.shares.split(places, due);
        LaneRoom { most, least: [None; Lane::ALL.len()] }
    }

    /// How many regular times may go into the queue. It holds what workers take in a moment and no
    /// more: what is due beyond that waits in memory, where it is not yet anybody's and cannot be in
    /// the way of its own next time. What would be claimed before most of what is there goes in
    /// all the same. A queue that nobody takes from does not hold up what others would.
    pub(super) async fn queue_room(
        &mut self,
        due: [usize; Lane::ALL.len()],
        wanted: usize,
    ) -> Result<LaneRoom, StoreError> {
        let life = Arc::clone(&self.life);
        let most = QUEUED_BATCHES * life.store.appetite().batch;
        let waiting = life.store.waiting(&life.settings.pools, most as u32).await? as usize;
        let (now, claimed) = (life.clock.monotonic(), life.worker.claimed());
        let seen = &mut self.queue_seen;
        if waiting < most || (waiting, claimed) != (seen.waiting, seen.claimed) {
            (seen.waiting, seen.claimed, seen.at) = (waiting, claimed, now);
        }
        let stuck = now.saturating_sub(seen.at) >= QUEUE_STUCK;
        if waiting < most || stuck {
            let room = if stuck { wanted } else { wanted.min(most - waiting) };
            let most = life.settings.shares.split(room, due);
            return Ok(LaneRoom { most, least: [None; Lane::ALL.len()] });
        }
        self.queue_is_full = true;
        self.room_ahead(most, wanted).await
    }

    /// How many of each lane go before what is in the queue: of those that rank as high as its
    /// first, so that one is asked for all of them.
    async fn room_ahead(&mut self, most: usize, wanted: usize) -> Result<LaneRoom, StoreError> {
        let life = Arc::clone(&self.life);
        let (now, aging) = (life.clock.monotonic(), life.settings.aging);
        let (mut room, mut least) = ([0; Lane::ALL.len()], [None; Lane::ALL.len()]);
        for lane in Lane::ALL {
            let Some(rank) = self.future.first_rank(lane) else { continue };
            let full = &mut self.queue_seen.full[lane as usize];
            if full.is_some_and(|(than, at)| rank <= than && now.saturating_sub(at) < LANE_FULL) {
                continue;
            }
            let (pools, place) = (&life.settings.pools, QueuePlace { lane, rank, aging });
            let ahead = life.store.waiting_ahead(pools, place, most as u32, Incarnation::NOW);
            room[lane as usize] = most.saturating_sub(ahead.await? as usize);
            least[lane as usize] = Some(rank);
            *full = (room[lane as usize] == 0).then_some((rank, now));
        }
        Ok(LaneRoom { most: life.settings.shares.split(wanted, room), least })
    }

    /// What this node could take itself it will not overtake.
    pub(super) fn note_queued(&mut self, ticket: &Ticket) {
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
