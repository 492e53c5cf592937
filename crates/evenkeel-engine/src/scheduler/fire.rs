//! Turns due jobs into runs.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::advance::{WhenBusy, advance, skip_due, when_busy};
use evenkeel_core::lease::Fence;
use evenkeel_core::order::{Lane, share_room};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{JobNo, RunKey, Sequence, Slot, Span, Timestamp};
use evenkeel_store::{Fire, FireResult, Fired, RunLink, Signal, Start, StoreError, Ticket};
use tracing::warn;

use super::Scheduler;
use crate::attempt::Attempt;
use crate::incarnation::{Backoff, Incarnation};
use crate::near_future::Entry;

/// The queue holds so many batches.
const QUEUED_BATCHES: usize = 4;
/// Full and untouched for this long, nobody takes from it.
const QUEUE_STUCK: Duration = Duration::from_secs(2);

/// A busy job that must wait is looked at again after this time, then after twice as long…
const BUSY_WAIT: Span = Span::from_millis(100);
/// …up to 3.2 s.
const BUSY_DOUBLINGS: u8 = 5;

/// How many of what is due may be fired now, and into what.
pub(super) struct Room {
    /// Places for bodies that were taken for it.
    pub places: usize,
    /// How many may be queued.
    pub queue: usize,
}

impl Scheduler {
    /// Fires one batch of due jobs. Says how many, and whether more are due than there is room for.
    pub(super) async fn fire_due(&mut self) -> Result<(usize, bool), StoreError> {
        let now = self.life.db_now();
        self.future.ripen(now);
        let waiting = self.future.waiting();
        let total = waiting.iter().sum::<usize>();
        if total == 0 {
            return Ok((0, false));
        }
        let room = self.room_for(total.min(self.life.store.appetite().batch)).await?;
        let count = room.places.max(room.queue);
        let mut places = room.places;
        let (mut batch, mut taken) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (lane, share) in Lane::ALL.into_iter().zip(share_room(count, waiting)) {
            for _ in 0..share {
                let Some((job, entry)) = self.future.take_due(lane) else { break };
                let fire = self.decide(job, &entry, now, &mut places);
                batch.push(fire);
                taken.push((job, entry));
            }
        }
        self.life.worker.slots.give(places);
        if batch.is_empty() {
            return Ok((0, true));
        }
        let oldest = batch.iter().map(|fire| fire.due).min().unwrap_or(now);
        let life = Arc::clone(&self.life);
        let under_way = life.bound.set_out(oldest).await;
        let fired = match life.store.fire(life.node, batch.clone(), Incarnation::NOW).await {
            Ok(fired) => fired,
            Err(error) => self.read_back(&batch, error).await,
        };
        let count = self.apply(batch, taken, fired);
        drop(under_way);
        Ok((count, total > count))
    }

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

    /// What to ask of the store for a due job. Takes one of `places` if a body will start here.
    fn decide(&self, job: JobNo, entry: &Entry, now: Timestamp, places: &mut usize) -> Fire {
        let definition = &entry.definition;
        let mut fire = Fire {
            job,
            tenant: entry.tenant,
            generation: entry.generation,
            due: entry.next_at,
            head: entry.head,
            skip: None,
            start: None,
            idle_only: false,
            next_at: definition.schedule.next_after(entry.next_at),
        };
        if let Some(reason) = entry.skip {
            let (skip, next) = skip_due(definition, entry.next_at, now, reason);
            return Fire { skip: Some(skip), next_at: next, ..fire };
        }
        let advanced = advance(definition, entry.next_at, now, entry.waits > 0);
        fire.skip = advanced.skip;
        fire.next_at = advanced.next;
        fire.idle_only = advanced.fire.is_some() && definition.overlap != OverlapPolicy::Allow;
        fire.start = advanced.fire.map(|scheduled| {
            let pools = &self.life.settings.pools;
            if *places > 0 && self.life.worker.takes_directly(definition, pools) {
                *places -= 1;
                return (scheduled, Start::Claimed);
            }
            let deadline = entry.should_start_by(scheduled);
            (scheduled, Start::Queued(Ticket::new(definition, deadline)))
        });
        fire
    }

    /// Starts what was fired and puts every job back where it belongs. Says how many were fired.
    fn apply(&mut self, batch: Vec<Fire>, taken: Vec<(JobNo, Entry)>, fired: Fired) -> usize {
        self.life.db_clock.observe(fired.now);
        let (mut count, mut queued, mut unused) = (0, false, 0);
        for ((fire, (job, entry)), result) in batch.into_iter().zip(taken).zip(fired.results) {
            let claimed = matches!(fire.start, Some((_, Start::Claimed)));
            match result {
                FireResult::Fired(fence) => {
                    count += 1;
                    if let Some((_, Start::Queued(ticket))) = &fire.start {
                        self.note_queued(ticket);
                        queued = true;
                    }
                    self.start(&fire, &entry, fence, fired.now);
                    self.put_back_fired(job, entry, &fire);
                }
                FireResult::Stale => self.reload.push(job),
                FireResult::Busy { retry_pending } => {
                    self.put_back_busy(job, entry, fired.now, retry_pending);
                }
                FireResult::Early => {
                    self.life.db_clock.restart_at(fired.now);
                    self.future.insert(job, entry);
                }
            }
            if claimed && !matches!(result, FireResult::Fired(_)) {
                unused += 1;
            }
        }
        self.life.worker.slots.give(unused);
        metrics::counter!("evenkeel_firings_total").increment(count as u64);
        if queued {
            self.announce_ready();
        }
        count
    }

    fn start(&self, fire: &Fire, entry: &Entry, fence: Fence, now: Timestamp) {
        if let Some((scheduled, Start::Claimed)) = fire.start {
            metrics::histogram!("evenkeel_lateness_seconds")
                .record(Duration::from(now.since(scheduled)));
            self.life.worker.start(Attempt {
                key: RunKey::regular(fire.job, scheduled),
                fence,
                tenant: fire.tenant,
                definition: Arc::clone(&entry.definition),
                started_at: now,
                checkpoint: None,
            });
        }
    }

    fn put_back_fired(&mut self, job: JobNo, entry: Entry, fire: &Fire) {
        let newest = fire.start.as_ref().map(|(scheduled, _)| *scheduled);
        let head = newest
            .or(fire.skip.map(|skip| skip.from))
            .map(|scheduled_at| RunLink { scheduled_at, sequence: Sequence::REGULAR });
        let loaded = self.loaded_until(job);
        match fire.next_at.filter(|next| Some(Slot::of(*next)) <= loaded) {
            Some(next_at) => {
                let entry =
                    Entry { next_at, look_at: next_at, head, skip: None, waits: 0, ..entry };
                self.future.insert(job, entry);
            }
            None => self.future.remove(job),
        }
    }

    fn put_back_busy(&mut self, job: JobNo, entry: Entry, now: Timestamp, retry_pending: bool) {
        let entry = match when_busy(&entry.definition, entry.next_at, now, retry_pending) {
            WhenBusy::Skip(reason) => Entry { skip: Some(reason), look_at: now, ..entry },
            WhenBusy::Wait => {
                let wait = BUSY_WAIT.saturating_mul(1 << entry.waits.min(BUSY_DOUBLINGS));
                let waits = entry.waits.saturating_add(1);
                Entry { look_at: now.saturating_add(wait), waits, ..entry }
            }
        };
        self.future.insert(job, entry);
    }

    /// What this node could take itself it will not overtake.
    pub(super) fn note_queued(&self, ticket: &Ticket) {
        let settings = &self.life.settings;
        if settings.roles.worker && settings.pools.contains(&ticket.pool) {
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

    /// Whether the batch took effect is unknown: asks the store until it says so. What it has
    /// claimed for this node is started, everything else is loaded anew.
    async fn read_back(&mut self, batch: &[Fire], error: StoreError) -> Fired {
        warn!(error = &error as &dyn std::error::Error, "reading back what was fired");
        self.life.raise_doubt();
        let keys: Vec<RunKey> = batch
            .iter()
            .filter_map(|fire| match fire.start {
                Some((scheduled, Start::Claimed)) => Some(RunKey::regular(fire.job, scheduled)),
                Some((_, Start::Queued(_))) | None => None,
            })
            .collect();
        let owned = self.owned_of(&keys).await;
        let mut results = Vec::with_capacity(batch.len());
        let mut now = self.life.db_now();
        for fire in batch {
            let key = fire.start.as_ref().map(|(at, _)| RunKey::regular(fire.job, *at));
            let found = owned.iter().find(|owned| Some(owned.key) == key);
            now = found.map_or(now, |owned| owned.started_at);
            results.push(match found {
                // The claim was committed; the job's copy is right as if the answer had come.
                Some(owned) if !self.life.worker.has(owned.key) => FireResult::Fired(owned.fence),
                Some(_) | None => FireResult::Stale,
            });
        }
        Fired { now, results }
    }

    /// Those of `keys` that the store says this node has, however long it takes to hear that.
    pub(super) async fn owned_of(&self, keys: &[RunKey]) -> Vec<evenkeel_store::Owned> {
        let mut backoff = Backoff::default();
        loop {
            match self.life.store.find_owned(self.life.node, keys).await {
                Ok(owned) => return owned,
                Err(_) => tokio::time::sleep(backoff.next()).await,
            }
        }
    }
}
