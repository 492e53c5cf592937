//! Fires delayed attempts, which are retries and triggers.

use std::cmp::Reverse;
use std::sync::Arc;

use evenkeel_core::aging::Aging;
use evenkeel_core::order::{DispatchKey, Priority};
use evenkeel_core::{AttemptNo, Definition, Past, Sequence, Timestamp};
use evenkeel_store::{
    DelayedAttempt, Finish, FireDelayed, FireResult, Fired, Postpone, QueueEntry, QueueWait,
    Signal, Start, StoreError,
};

use super::Scheduler;
use super::delayed_queue::DelayedDestination;
use super::start_capacity::StartCapacity;
use crate::cluster::node_context::NodeContext;
use crate::insight::activity::BatchActivity;
use crate::scheduler::due_by_destination::Destination;
use crate::scheduler::due_jobs::LaneRanks;
use crate::worker::open_attempt::{self, deadline_without_history};

type ReadDefinition = Result<Arc<Definition>, StoreError>;

struct Decided {
    fire: FireDelayed,
    definition: ReadDefinition,
    /// Set if the run has a different priority than its job.
    priority: Option<Priority>,
}

impl Decided {
    /// True if a worker slot was taken for this attempt.
    fn has_slot(&self) -> bool {
        self.fire.start == Start::Claimed && self.definition.is_ok()
    }
}

impl Scheduler {
    /// Fires one batch of due retries and triggers. Returns how many attempts were fired, and
    /// whether further due attempts wait for capacity.
    pub(super) async fn fire_delayed(&mut self) -> Result<(usize, bool), StoreError> {
        let (ctx, now) = (Arc::clone(&self.ctx), self.ctx.db_now());
        let destination = |delayed: &DelayedAttempt| destination_of(&ctx, delayed);
        let due = self.delayed.move_due(now, destination);
        if due == 0 {
            return Ok((0, false));
        }
        let batch_max = ctx.store.batch_sizing().batch;
        let wanted = due.min(batch_max);
        // If some due attempts are not loaded, or worker slots are scarce, all due attempts are
        // queued, so that the queue sorts them. Queueing a retry or trigger blocks no other run,
        // because its run already exists in the store.
        let capacity = if self.delayed.has_more_due() || self.must_queue_delayed(due) {
            StartCapacity::Queue
        } else {
            self.start_capacity(wanted)
        };
        let (mut slots, here) = match capacity {
            StartCapacity::Slots(slots) => (slots, slots),
            StartCapacity::Queue => (0, wanted),
        };
        let taken = self.delayed.take(here, batch_max, ctx.settings.shares, destination);
        if taken.is_empty() {
            ctx.worker.slots.give(slots);
            return Ok((0, true));
        }
        let (mut batch, mut put_off) = (Vec::new(), Vec::new());
        for delayed in taken {
            let key = delayed.key;
            let read = ctx.definitions.read(key.job_no, &delayed.job.definition);
            if let Some(until) = read.as_ref().ok().and_then(|read| opens_at(read, &delayed, now)) {
                put_off.push(Postpone { due: delayed.due, key, until });
                continue;
            }
            batch.push(self.decide_delayed(delayed, read, now, &mut slots));
        }
        ctx.worker.slots.give(slots);
        if !put_off.is_empty() {
            // The store postpones due attempts whose job is in blackout, so that it next returns
            // due attempts that may start. If the store call fails, all attempts of this batch are
            // loaded again.
            ctx.store.postpone(&put_off).await.inspect_err(|_| {
                ctx.worker.slots.give(batch.iter().filter(|delayed| delayed.has_slot()).count());
            })?;
        }
        let woken = self.fire_delayed_batch(batch, now).await;
        let done = woken + put_off.len();
        // Load the due attempts that did not fit into the last answer of the store.
        self.look_ahead_now |=
            done > 0 && self.delayed.is_none_due() && self.delayed.has_more_due();
        Ok((woken, due > done))
    }

    async fn fire_delayed_batch(&mut self, batch: Vec<Decided>, now: Timestamp) -> usize {
        if batch.is_empty() {
            return 0;
        }
        let ctx = Arc::clone(&self.ctx);
        ctx.due.lock().begin_queueing(self.index, highest_queued(&batch, &ctx.settings.aging, now));
        let oldest = batch.iter().map(|delayed| delayed.fire.key.scheduled_at).min().unwrap_or(now);
        let in_flight = ctx.low_watermark.begin_batch(oldest).await;
        let fires = batch.iter().map(|delayed| delayed.fire.clone()).collect();
        let fired = match ctx.store.fire_delayed(ctx.node, fires, NodeContext::NOW).await {
            Ok(fired) => fired,
            Err(error) => {
                self.look_ahead_now = true;
                let keys = batch.iter().map(|delayed| Some(delayed.fire.key)).collect();
                self.read_back(keys, error).await
            }
        };
        let count = self.apply_delayed(batch, fired);
        ctx.due.lock().end_queueing(self.index);
        drop(in_flight);
        count
    }

    /// True if worker slots are so scarce that delayed attempts must be queued. The queue sorts
    /// delayed attempts of all schedulers together with regular runs.
    fn must_queue_delayed(&self, due: usize) -> bool {
        let regular: usize =
            self.ctx.due.lock().upcoming.waiting_in(Destination::ThisNode).iter().sum();
        (regular > 0 || self.count > 1) && self.ctx.worker.has_fewer_slots_than(due + regular)
    }

    /// An attempt whose job definition cannot be parsed is fired and fails at once. If an attempt
    /// with an unparsable definition were not fired, its run would never end.
    fn decide_delayed(
        &self,
        delayed: DelayedAttempt,
        read: ReadDefinition,
        now: Timestamp,
        slots: &mut usize,
    ) -> Decided {
        let priority = delayed.priority;
        let start = match &read {
            Err(_) => Start::Claimed,
            Ok(definition) if *slots > 0 && is_direct(&self.ctx, definition, &delayed) => {
                *slots -= 1;
                Start::Claimed
            }
            Ok(definition) => {
                let past = definition.past(&delayed.job.history, delayed.job.since);
                let deadline = deadline(definition, &delayed, &past);
                let aging = &self.ctx.settings.aging;
                let waited = QueueWait { since: delayed.due, priority, aging };
                Start::Queued(QueueEntry::new(definition, deadline, past.average, now, waited))
            }
        };
        let (due, key, tenant) = (delayed.due, delayed.key, delayed.job.tenant);
        let fire = FireDelayed { due, key, tenant, start };
        Decided { fire, definition: read, priority }
    }

    fn apply_delayed(&mut self, batch: Vec<Decided>, fired: Fired) -> usize {
        self.ctx.db_clock.observe(fired.now);
        let (mut count, mut queued, mut unused) = (0, false, 0);
        let mut activity = BatchActivity::at(fired.now);
        for (decided, result) in batch.into_iter().zip(fired.results) {
            let Decided { fire: delayed, definition, priority } = decided;
            let (tenant, attempt) = (delayed.tenant, delayed.key.attempt);
            if matches!(result, FireResult::Fired(_)) {
                activity.fired_delayed(tenant, attempt);
            }
            match (result, &delayed.start) {
                (FireResult::Fired(fence), Start::Claimed) => {
                    count += 1;
                    let definition = match definition {
                        Ok(definition) => definition,
                        Err(fault) => {
                            let attempt = (delayed.key, fence, delayed.tenant);
                            let error = Some(fault.to_string());
                            let end = Finish::without_report(attempt, error, fired.now);
                            self.ctx.worker.refuse(end);
                            continue;
                        }
                    };
                    self.ctx.run_metrics.waited(definition.lane, delayed.due, fired.now);
                    activity.started(tenant, attempt, fired.now.since(delayed.due));
                    self.ctx.start(open_attempt::AttemptToStart {
                        key: delayed.key,
                        fence,
                        tenant: delayed.tenant,
                        definition,
                        started_at: fired.now,
                        waited: fired.now.since(delayed.due),
                        checkpoint: None,
                        priority,
                    });
                }
                (FireResult::Fired(_), Start::Queued(entry)) => {
                    self.note_queued(entry);
                    (count, queued) = (count + 1, true);
                }
                (FireResult::Stale | FireResult::Busy { .. } | FireResult::Early, start) => {
                    // The attempt was withdrawn, or the store will return it as due again.
                    self.look_ahead_now |= result == FireResult::Early;
                    unused += usize::from(*start == Start::Claimed && definition.is_ok());
                }
            }
            if attempt == AttemptNo::FIRST {
                // The triggered run is now the newest run of its job, so the job's copy in memory
                // is outdated.
                self.ctx.due.lock().reload.push(delayed.key.job_no);
            }
        }
        self.ctx.worker.stats.active(&activity);
        self.ctx.worker.slots.give(unused);
        metrics::counter!("evenkeel_wakes_total").increment(count as u64);
        if queued {
            self.ctx.announce(Signal::Ready);
        }
        count
    }
}

/// Returns the highest rank per lane among the attempts of a batch that will be queued.
fn highest_queued(batch: &[Decided], aging: &Aging, now: Timestamp) -> LaneRanks {
    let mut highest = LaneRanks::default();
    for delayed in batch {
        if let Start::Queued(entry) = &delayed.fire.start {
            let rank = Some(aging.rank(entry.priority, entry.rise, now));
            let highest = &mut highest[entry.lane as usize];
            *highest = (*highest).max(rank);
        }
    }
    highest
}

/// True if the attempt may start on this node without being queued. An attempt with a checkpoint
/// must be queued, because only a claim from the queue returns the checkpoint.
fn is_direct(ctx: &NodeContext, definition: &Definition, delayed: &DelayedAttempt) -> bool {
    let settings = &ctx.settings;
    !delayed.has_checkpoint && ctx.worker.takes_directly(definition, delayed.job.tenant, settings)
}

fn destination_of(ctx: &NodeContext, delayed: &DelayedAttempt) -> DelayedDestination {
    // An attempt whose job definition cannot be parsed fails at once, so it needs no worker slot.
    let Ok(definition) = ctx.definitions.read(delayed.key.job_no, &delayed.job.definition) else {
        return DelayedDestination::Queue;
    };
    if !is_direct(ctx, &definition, delayed) {
        return DelayedDestination::Queue;
    }
    let past = definition.past(&delayed.job.history, delayed.job.since);
    DelayedDestination::ThisNode(DispatchKey {
        lane: definition.lane,
        priority: Reverse(delayed.priority.unwrap_or(definition.priority)),
        should_start_by: deadline(&definition, delayed, &past),
        ready_at: delayed.due,
    })
}

/// Returns the end of the blackout that forbids starting the attempt at `now`, if there is one.
fn opens_at(
    definition: &Definition,
    delayed: &DelayedAttempt,
    now: Timestamp,
) -> Option<Timestamp> {
    let average = definition.average(delayed.job.history.average_good_duration);
    Some(definition.may_start_from(now, average)).filter(|open| *open > now)
}

/// Returns the latest start with which a delayed attempt meets its deadline. A retry keeps the
/// deadline of its run, and the deadline of a trigger counts from the time of the trigger.
fn deadline(definition: &Definition, delayed: &DelayedAttempt, past: &Past) -> Timestamp {
    if delayed.key.sequence != Sequence::REGULAR {
        return deadline_without_history(definition, delayed.key.scheduled_at);
    }
    definition
        .must_be_over_by(delayed.key.scheduled_at, past.reference)
        .saturating_sub(past.average)
}
