//! How many of what is due may start now, and where.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_store::{Signal, StoreError, Ticket};

use super::Scheduler;

/// The queue holds so many batches.
const QUEUED_BATCHES: usize = 4;
/// Full and untouched for this long, nobody takes from it.
const QUEUE_STUCK: Duration = Duration::from_secs(2);

/// How many of what is due may be fired now, and into what.
pub(super) struct Room {
    /// Places for bodies that were taken for it.
    pub places: usize,
    /// How many may be queued.
    pub queue: usize,
}

impl Scheduler {
    /// Takes places for up to `wanted` bodies. Without any, and with none coming free for a while,
    /// what is due goes into the queue, where other nodes find it too.
    pub(super) async fn room_for(&mut self, wanted: usize) -> Result<Room, StoreError> {
        let life = Arc::clone(&self.life);
        if !life.settings.roles.worker || life.worker.has_backlog() {
            return Ok(Room { places: 0, queue: self.queue_room(wanted).await? });
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
        let queue = if stalled { self.queue_room(wanted).await? } else { 0 };
        Ok(Room { places, queue })
    }

    /// How many may go into the queue. It holds what workers take in a moment and no more: what is
    /// due beyond that waits in memory, where it is not yet anybody's and cannot be in the way of
    /// its own next time. A queue that nobody takes from does not hold up what others would.
    async fn queue_room(&mut self, wanted: usize) -> Result<usize, StoreError> {
        let life = &self.life;
        let most = QUEUED_BATCHES * life.store.appetite().batch;
        let waiting = life.store.waiting(&life.settings.pools, most as u32).await? as usize;
        let now = life.clock.monotonic();
        if waiting < most || waiting != self.queue_seen.0 {
            self.queue_seen = (waiting, now);
        }
        let stuck = now.saturating_sub(self.queue_seen.1) >= QUEUE_STUCK;
        self.queue_is_full = waiting >= most && !stuck;
        Ok(if stuck { wanted } else { wanted.min(most - waiting) })
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
