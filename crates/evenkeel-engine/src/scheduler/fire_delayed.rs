//! Fires retries and triggers.

use std::cmp::Reverse;
use std::sync::Arc;

use evenkeel_core::aging::Aging;
use evenkeel_core::lease::Fence;
use evenkeel_core::order::{DispatchKey, Priority};
use evenkeel_core::{AttemptNo, Definition, Past, Sequence, Timestamp};
use evenkeel_store::{
    DelayedAttempt, FireDelayed, FireResult, Fired, Owned, Postpone, QueueEntry, Start, StoreError,
    Waited,
};

use super::Scheduler;
use super::delayed_queue::DelayedPlace;
use super::start_capacity::Room;
use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;
use crate::scheduler::due_lines::Line;
use crate::scheduler::node_due::LaneRanks;
use crate::worker::open_attempt::{self, deadline_by_itself};

/// A definition, or why it is none.
type Readable = Result<Arc<Definition>, StoreError>;

/// A wake that is about to be fired.
struct Decided {
    fire: FireDelayed,
    definition: Readable,
    /// The priority that its run was given.
    priority: Option<Priority>,
}

impl Decided {
    /// Was a place for its body taken?
    fn has_place(&self) -> bool {
        self.fire.start == Start::Claimed && self.definition.is_ok()
    }
}

impl Scheduler {
    /// Fires one batch of due wakes. Says how many, and whether more are due than there is room for.
    pub(super) async fn fire_delayed(&mut self) -> Result<(usize, bool), StoreError> {
        let (life, now) = (Arc::clone(&self.life), self.life.db_now());
        let place = |wake: &DelayedAttempt| place_of(&life, wake);
        let due = self.wakes.ripen(now, place);
        if due == 0 {
            return Ok((0, false));
        }
        let batch_max = life.store.appetite().batch;
        let wanted = due.min(batch_max);
        // Their chains are live already, so that they are in nobody's way in the queue, and there the
        // first of them all is found, however many they are.
        let room = if self.wakes.has_more_due() || self.must_queue_wakes(due) {
            Room::InQueue
        } else {
            self.room_for(wanted)
        };
        let (mut places, here) = match room {
            Room::Here(places) => (places, places),
            Room::InQueue => (0, wanted),
        };
        let taken = self.wakes.take(here, batch_max, life.settings.shares, place);
        if taken.is_empty() {
            life.worker.slots.give(places);
            return Ok((0, true));
        }
        let (mut batch, mut put_off) = (Vec::new(), Vec::new());
        for wake in taken {
            let key = wake.key;
            let read = life.definitions.read(key.job_no, &wake.job.definition);
            if let Some(until) = read.as_ref().ok().and_then(|read| opens_at(read, &wake, now)) {
                put_off.push(Postpone { due: wake.due, key, until });
                continue;
            }
            batch.push(self.decide_wake(wake, read, now, &mut places));
        }
        life.worker.slots.give(places);
        if !put_off.is_empty() {
            // In the store, or they would be told again and again in the place of others. What is
            // lost of the batch by an outage is told again, too.
            if let Err(error) = life.store.postpone(&put_off).await {
                life.worker.slots.give(batch.iter().filter(|wake| wake.has_place()).count());
                return Err(error);
            }
        }
        let woken = self.wake_batch(batch, now).await;
        let done = woken + put_off.len();
        // Those that the store did not tell are next.
        self.look |= done > 0 && self.wakes.is_none_due() && self.wakes.has_more_due();
        Ok((woken, due > done))
    }

    async fn wake_batch(&mut self, batch: Vec<Decided>, now: Timestamp) -> usize {
        if batch.is_empty() {
            return 0;
        }
        let life = Arc::clone(&self.life);
        life.due.lock().is_queueing(self.index, highest_queued(&batch, &life.settings.aging, now));
        let oldest = batch.iter().map(|wake| wake.fire.key.scheduled_at).min().unwrap_or(now);
        let under_way = life.bound.set_out(oldest).await;
        let fires = batch.iter().map(|wake| wake.fire.clone()).collect();
        let fired = match life.store.fire_delayed(life.node, fires, NodeContext::NOW).await {
            Ok(fired) => fired,
            Err(error) => self.read_back_wakes(&batch, error).await,
        };
        let count = self.apply_wakes(batch, fired);
        life.due.lock().has_queued(self.index);
        drop(under_way);
        count
    }

    /// Are workers so short that retries and triggers must go into the queue? There they have one order
    /// with regular times, and with the retries and triggers of other schedulers.
    fn must_queue_wakes(&self, due: usize) -> bool {
        let regular: usize = self.life.due.lock().future.waiting_in(Line::Here).iter().sum();
        (regular > 0 || self.count > 1) && self.life.worker.is_short_of(due + regular)
    }

    /// Without a readable definition it is fired all the same, and fails at once: else its chain
    /// would never end.
    fn decide_wake(
        &self,
        wake: DelayedAttempt,
        read: Readable,
        now: Timestamp,
        places: &mut usize,
    ) -> Decided {
        let priority = wake.priority;
        let definition = match read {
            Ok(definition) => definition,
            Err(fault) => {
                let (due, key, tenant) = (wake.due, wake.key, wake.job.tenant);
                let fire = FireDelayed { due, key, tenant, start: Start::Claimed };
                return Decided { fire, definition: Err(fault), priority };
            }
        };
        let start = if *places > 0 && is_direct(&self.life, &definition, &wake) {
            *places -= 1;
            Start::Claimed
        } else {
            let past = definition.past(&wake.job.history, wake.job.since);
            let deadline = deadline(&definition, &wake, &past);
            let aging = &self.life.settings.aging;
            let waited = Waited { since: wake.due, priority, aging };
            Start::Queued(QueueEntry::new(&definition, deadline, past.average, now, waited))
        };
        let (due, key, tenant) = (wake.due, wake.key, wake.job.tenant);
        let fire = FireDelayed { due, key, tenant, start };
        Decided { fire, definition: Ok(definition), priority }
    }

    fn apply_wakes(&mut self, batch: Vec<Decided>, fired: Fired) -> usize {
        self.life.db_clock.observe(fired.now);
        let (mut count, mut queued, mut unused) = (0, false, 0);
        for (decided, result) in batch.into_iter().zip(fired.results) {
            let Decided { fire: wake, definition, priority } = decided;
            match (result, &wake.start) {
                (FireResult::Fired(fence), Start::Claimed) => {
                    count += 1;
                    let definition = match definition {
                        Ok(definition) => definition,
                        Err(fault) => {
                            self.refuse_wake(&wake, fence, fired.now, &fault);
                            continue;
                        }
                    };
                    self.life.meters.waited(definition.lane, wake.due, fired.now);
                    self.life.start(open_attempt::OpenAttempt {
                        key: wake.key,
                        fence,
                        tenant: wake.tenant,
                        definition,
                        started_at: fired.now,
                        waited: fired.now.since(wake.due),
                        checkpoint: None,
                        priority,
                    });
                }
                (FireResult::Fired(_), Start::Queued(ticket)) => {
                    self.note_queued(ticket);
                    (count, queued) = (count + 1, true);
                }
                (FireResult::Stale | FireResult::Busy { .. } | FireResult::Early, start) => {
                    // It was withdrawn, or is told again at the next look.
                    self.look |= result == FireResult::Early;
                    unused += usize::from(*start == Start::Claimed && definition.is_ok());
                }
            }
            if wake.key.attempt == AttemptNo::FIRST {
                // A trigger is the job's newest chain now.
                self.life.due.lock().reload.push(wake.key.job_no);
            }
        }
        self.life.worker.slots.give(unused);
        metrics::counter!("evenkeel_wakes_total").increment(count as u64);
        if queued {
            self.announce_ready();
        }
        count
    }

    fn refuse_wake(&self, wake: &FireDelayed, fence: Fence, now: Timestamp, fault: &StoreError) {
        let owned = Owned {
            key: wake.key,
            fence,
            tenant: wake.tenant,
            started_at: now,
            crashes: 0,
            definition: String::new(),
            priority: None,
        };
        self.life.worker.refuse(&owned, &fault.to_string());
    }

    async fn read_back_wakes(&mut self, batch: &[Decided], error: StoreError) -> Fired {
        log_trouble(&error, "firing delayed attempts failed; reading back what was stored");
        self.could_not_fire = true;
        self.look = true;
        if error.unwritable().is_some() {
            let results = vec![FireResult::Stale; batch.len()];
            return Fired { now: self.life.db_now(), results };
        }
        self.life.raise_doubt();
        let keys: Vec<_> = batch.iter().map(|wake| wake.fire.key).collect();
        let owned = self.owned_of(&keys).await;
        let mut now = self.life.db_now();
        let results = keys
            .iter()
            .map(|key| match owned.iter().find(|owned| owned.key == *key) {
                Some(owned) if !self.life.worker.has(*key) => {
                    now = owned.started_at;
                    FireResult::Fired(owned.fence)
                }
                Some(_) | None => FireResult::Stale,
            })
            .collect();
        Fired { now, results }
    }
}

/// What the first that go into the queue rank at, by lane.
fn highest_queued(batch: &[Decided], aging: &Aging, now: Timestamp) -> LaneRanks {
    let mut highest = LaneRanks::default();
    for wake in batch {
        if let Start::Queued(ticket) = &wake.fire.start {
            let rank = Some(aging.rank(ticket.priority, ticket.rise, now));
            let highest = &mut highest[ticket.lane as usize];
            *highest = (*highest).max(rank);
        }
    }
    highest
}

/// May a retry or trigger start on this node without waiting in the queue? A checkpoint is handed over
/// by a claim alone.
fn is_direct(life: &NodeContext, definition: &Definition, wake: &DelayedAttempt) -> bool {
    let settings = &life.settings;
    !wake.has_checkpoint && life.worker.takes_directly(definition, wake.job.tenant, settings)
}

/// What a retry or trigger waits for, and where it stands in the order of dispatch.
fn place_of(life: &NodeContext, wake: &DelayedAttempt) -> DelayedPlace {
    // One that cannot be read takes nobody's place: it fails at once.
    let Ok(definition) = life.definitions.read(wake.key.job_no, &wake.job.definition) else {
        return DelayedPlace::Elsewhere;
    };
    if !is_direct(life, &definition, wake) {
        return DelayedPlace::Elsewhere;
    }
    let past = definition.past(&wake.job.history, wake.job.since);
    DelayedPlace::Here(DispatchKey {
        lane: definition.lane,
        priority: Reverse(wake.priority.unwrap_or(definition.priority)),
        should_start_by: deadline(&definition, wake, &past),
        ready_at: wake.due,
    })
}

/// When a retry or trigger may start, if that is not now.
fn opens_at(definition: &Definition, wake: &DelayedAttempt, now: Timestamp) -> Option<Timestamp> {
    if definition.blackout_periods.is_empty() {
        return None;
    }
    let average = definition.average(wake.job.history.average_good_duration);
    Some(definition.may_start_from(now, average)).filter(|open| *open > now)
}

/// A retry keeps the promise of its run, a trigger is promised for now.
fn deadline(definition: &Definition, wake: &DelayedAttempt, past: &Past) -> Timestamp {
    if wake.key.sequence != Sequence::REGULAR {
        return deadline_by_itself(definition, wake.key.scheduled_at);
    }
    definition.must_be_over_by(wake.key.scheduled_at, past.reference).saturating_sub(past.average)
}
