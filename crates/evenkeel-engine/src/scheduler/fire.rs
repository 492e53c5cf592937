//! Turns due jobs into runs.

use std::sync::Arc;

use evenkeel_core::advance::{DueTime, SkipReason, WhenBusy, advance, skip_due, when_busy};
use evenkeel_core::lease::Fence;
use evenkeel_core::order::Lane;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, JobNo, Schedule, Shard, Slot, Span, Timestamp};
use evenkeel_store::{Fire, FireResult, Fired, QueueEntry, QueueWait, Signal, Start, StoreError};
use tracing::debug;

use super::Scheduler;
use super::start_capacity::{LaneQuota, StartCapacity};
use crate::cluster::node_context::NodeContext;
use crate::insight::activity::BatchActivity;
use crate::insight::run_metrics::count_skipped;
use crate::scheduler::due_by_destination::Destination;
use crate::scheduler::due_jobs::DueJobs;
use crate::scheduler::job_entry::JobEntry;
use crate::scheduler::upcoming_jobs::TakenDue;
use crate::worker::open_attempt::AttemptToStart;

/// First delay before the scheduler tries again to fire a job that still has an active run.
const BUSY_WAIT: Span = Span::from_millis(100);
/// The delay between tries to fire the same scheduled time doubles up to five times, to 3.2 s.
const BUSY_DOUBLINGS: u8 = 5;

/// Due jobs that a scheduler has taken to fire them.
#[derive(Debug, Default)]
pub(super) struct Picked {
    batch: Vec<Fire>,
    taken: Vec<TakenDue>,
    /// Number of due jobs that wait for the end of a blackout.
    deferred: usize,
}

impl Scheduler {
    /// Fires one batch of due jobs that this node may start itself. Returns how many jobs were
    /// fired, and whether further due jobs wait for capacity.
    pub(super) async fn fire_local(&mut self, now: Timestamp) -> Result<(usize, bool), StoreError> {
        let waiting = self.ctx.due.lock().upcoming.waiting_in(Destination::ThisNode);
        let total = waiting.iter().sum::<usize>();
        if total == 0 {
            return Ok((0, false));
        }
        let wanted = total.min(self.ctx.store.batch_sizing().batch);
        if self.ctx.worker.has_fewer_slots_than(wanted) && self.hold_back(Destination::ThisNode) {
            return Ok((0, true));
        }
        if self.waits_for_empty_queue() {
            self.is_held_back = true;
            return Ok((0, true));
        }
        let (mut slots, quota) = match self.start_capacity(wanted) {
            StartCapacity::Slots(slots) => (slots, self.slot_quota(slots, wanted, waiting)),
            StartCapacity::Queue => (0, self.queue_quota(Destination::ThisNode, wanted).await?),
        };
        let mut picked = Picked::default();
        self.pick(Destination::ThisNode, quota, now, &mut slots, &mut picked);
        self.ctx.worker.slots.give(slots);
        let deferred = picked.deferred;
        let count = self.fire_picked(picked, now).await;
        Ok((count, total > count + deferred))
    }

    /// Takes due jobs within `quota`. Uses one of the worker slots in `slots` for each job that
    /// will start on this node.
    pub(super) fn pick(
        &mut self,
        destination: Destination<'_>,
        quota: LaneQuota,
        now: Timestamp,
        slots: &mut usize,
        picked: &mut Picked,
    ) {
        let count = quota.max.iter().sum();
        picked.batch.reserve(count);
        picked.taken.reserve(count);
        let ctx = Arc::clone(&self.ctx);
        let due_jobs = &mut *ctx.due.lock();
        let others =
            if quota.in_order { due_jobs.min_rank_for(self.index) } else { Default::default() };
        if *slots == 0 {
            due_jobs.begin_queueing(self.index, due_jobs.first_ranks(destination));
        }
        for (lane, most) in Lane::ALL.into_iter().zip(quota.max) {
            let (least, others) = (quota.min_rank[lane as usize], others[lane as usize]);
            for _ in 0..most {
                let first = due_jobs.upcoming.first_rank(destination, lane);
                self.is_held_back |= first.is_some() && first < others;
                if first < least.max(others) {
                    break;
                }
                let Some(taken) = due_jobs.upcoming.take_due(destination, lane) else { break };
                // A scheduled time that is only recorded as skipped does not wait for the end of a
                // blackout.
                let opening = taken.entry.opens_at(now).filter(|_| taken.entry.skip.is_none());
                if let Some(opening) = opening {
                    let TakenDue { ticket, mut entry } = taken;
                    entry.try_at = opening;
                    due_jobs.put_back(ticket, Some(entry));
                    picked.deferred += 1;
                    continue;
                }
                picked.batch.push(self.decide(taken.ticket.job, &taken.entry, now, slots));
                picked.taken.push(taken);
            }
        }
    }

    /// True if all due jobs for a destination must wait until another scheduler of this node has
    /// queued its batch.
    fn hold_back(&mut self, destination: Destination<'_>) -> bool {
        let due_jobs = self.ctx.due.lock();
        let held_back = due_jobs.is_held_back(destination, due_jobs.min_rank_for(self.index));
        self.is_held_back |= held_back;
        held_back
    }

    /// Fires the picked jobs. Returns how many were fired.
    pub(super) async fn fire_picked(&mut self, picked: Picked, now: Timestamp) -> usize {
        let count = self.store_picked(picked, now).await;
        self.ctx.due.lock().end_queueing(self.index);
        count
    }

    async fn store_picked(&mut self, picked: Picked, now: Timestamp) -> usize {
        let Picked { batch, taken, .. } = picked;
        if batch.is_empty() {
            return 0;
        }
        let oldest = batch.iter().map(|fire| fire.due).min().unwrap_or(now);
        let ctx = Arc::clone(&self.ctx);
        let in_flight = ctx.low_watermark.begin_batch(oldest).await;
        let fired = match ctx.store.fire(ctx.node, batch.clone(), NodeContext::NOW).await {
            Ok(fired) => fired,
            Err(error) => self.read_back(batch.iter().map(claimed_attempt).collect(), error).await,
        };
        let count = self.apply(batch, taken, fired);
        drop(in_flight);
        count
    }

    /// Builds the store request that fires a due job. Uses one of the worker slots in `slots` if
    /// the job will start on this node.
    fn decide(&self, job: JobNo, entry: &JobEntry, now: Timestamp, slots: &mut usize) -> Fire {
        let definition = &entry.definition;
        let plain = Fire {
            job,
            tenant: entry.tenant,
            generation: entry.generation,
            due: entry.next_at,
            head: entry.head,
            skip: None,
            start: None,
            idle_only: false,
            next_at: None,
        };
        if let Some(reason) = entry.skip {
            let (skip, next_at) = skip_due(definition, entry.next_at, now, reason);
            return Fire { skip: Some(skip), next_at, ..plain };
        }
        let average = entry.past().average;
        let (due, waited, fired) = (entry.next_at, entry.waits > 0, entry.fired);
        let advanced = advance(definition, DueTime { due, now, waited, average, fired });
        let exclusive =
            definition.overlap != OverlapPolicy::Allow || definition.schedule.follows_its_end();
        let start = advanced.fire.map(|scheduled| {
            if *slots > 0 && entry.is_direct {
                *slots -= 1;
                return (scheduled, Start::Claimed);
            }
            let deadline = entry.deadline_of(scheduled);
            let aging = &self.ctx.settings.aging;
            // If a run makes up for several missed scheduled times, its waiting time counts from
            // the first missed time.
            let waited = QueueWait { since: entry.since(), priority: None, aging };
            (scheduled, Start::Queued(QueueEntry::new(definition, deadline, average, now, waited)))
        });
        Fire {
            skip: advanced.skip,
            next_at: advanced.next,
            idle_only: start.is_some() && exclusive,
            start,
            ..plain
        }
    }

    /// Starts the fired runs of a batch and returns the jobs of the batch to the upcoming jobs.
    /// Returns how many jobs were fired.
    fn apply(&mut self, batch: Vec<Fire>, taken: Vec<TakenDue>, fired: Fired) -> usize {
        self.ctx.db_clock.observe(fired.now);
        let (mut count, mut queued, mut unused) = (0, false, 0);
        let mut activity = BatchActivity::at(fired.now);
        for ((fire, taken), result) in batch.iter().zip(&taken).zip(&fired.results) {
            if let FireResult::Fired(fence) = result {
                count += 1;
                activity.fired(fire);
                if let Some((_, Start::Queued(entry))) = &fire.start {
                    self.note_queued(entry);
                    queued = true;
                }
                self.start(fire, &taken.entry, *fence, fired.now, &mut activity);
                log_next_slot(fire, &taken.entry);
            } else if matches!(fire.start, Some((_, Start::Claimed))) {
                unused += 1;
            }
        }
        self.ctx.worker.stats.active(&activity);
        for (taken, retry_pending) in self.put_back_all(&batch, taken, &fired) {
            self.put_back_busy(taken, fired.now, retry_pending);
        }
        self.ctx.worker.slots.give(unused);
        metrics::counter!("evenkeel_firings_total").increment(count as u64);
        if queued {
            self.ctx.announce(Signal::Ready);
        }
        count
    }

    fn start(
        &self,
        fire: &Fire,
        entry: &JobEntry,
        fence: Fence,
        now: Timestamp,
        activity: &mut BatchActivity,
    ) {
        if let Some((scheduled, Start::Claimed)) = fire.start {
            let earliest_start = entry.definition.may_start_from(scheduled, entry.past().average);
            self.ctx.run_metrics.started(earliest_start, entry.deadline_of(scheduled), now);
            self.ctx.run_metrics.waited(entry.definition.lane, earliest_start, now);
            let key = AttemptKey::regular(fire.job, scheduled);
            activity.started(fire.tenant, key.attempt, now.since(earliest_start));
            self.ctx.start(AttemptToStart {
                key,
                fence,
                tenant: fire.tenant,
                definition: Arc::clone(&entry.definition),
                started_at: now,
                waited: now.since(entry.since()),
                checkpoint: None,
                priority: None,
            });
        }
    }

    /// Returns the jobs of a batch to the upcoming jobs, all under one lock. Returns the jobs that
    /// did not fire because they still have an active run, and whether a retry is pending.
    fn put_back_all(
        &self,
        batch: &[Fire],
        taken: Vec<TakenDue>,
        fired: &Fired,
    ) -> Vec<(TakenDue, bool)> {
        let mut busy = Vec::new();
        let due_jobs = &mut *self.ctx.due.lock();
        for ((fire, taken), result) in batch.iter().zip(taken).zip(&fired.results) {
            match result {
                FireResult::Fired(_) => self.put_back_fired(due_jobs, taken, fire, fired.now),
                FireResult::Stale => due_jobs.reload_taken(taken.ticket),
                FireResult::Busy { retry_pending } => busy.push((taken, *retry_pending)),
                FireResult::Early => {
                    self.ctx.db_clock.restart_at(fired.now);
                    due_jobs.put_back(taken.ticket, Some(taken.entry));
                }
            }
        }
        busy
    }

    fn put_back_fired(&self, due_jobs: &mut DueJobs, taken: TakenDue, fire: &Fire, now: Timestamp) {
        let TakenDue { ticket, entry } = taken;
        if let Some(skip) = &fire.skip {
            count_skipped(skip);
            // If the job still has an active run, the `Judge` loop already watches this run.
            let busy = matches!(skip.reason, SkipReason::Overlap | SkipReason::RetryPending);
            if fire.start.is_none() && !busy {
                due_jobs.upcoming.note_late(ticket.job);
            }
        }
        if entry.waits > 0 {
            self.ctx.overlap_waits.forget(ticket.job);
        }
        let loaded = due_jobs.loaded_until(ticket.job);
        let next_at = fire.next_at.filter(|next| Some(Slot::of(*next)) <= loaded);
        due_jobs.put_back(ticket, next_at.map(|next_at| entry.after(fire, next_at, now)));
    }

    /// Tries again at once to fire jobs that waited for an active run which has now ended.
    pub(super) fn retry_ended_overlaps(&mut self) {
        let now = self.ctx.db_now();
        let due_jobs = &mut *self.ctx.due.lock();
        let loaded = &due_jobs.loaded;
        let ended = self.ctx.overlap_waits.take_ended(|job| loaded.contains_key(&Shard::of(job)));
        for job in ended {
            if let Some(entry) = due_jobs.upcoming.get(job).filter(|entry| entry.waits > 0) {
                let mut entry = entry.clone();
                entry.try_at = now;
                due_jobs.upcoming.insert(job, entry);
            }
        }
    }

    fn put_back_busy(&mut self, taken: TakenDue, now: Timestamp, retry_pending: bool) {
        let TakenDue { ticket, mut entry } = taken;
        let job = ticket.job;
        entry.try_at = now;
        match when_busy(&entry.definition, entry.next_at, now, retry_pending) {
            // The active run has finished on this node, but its result is not stored yet. The next
            // run can start once the result is stored, so the scheduler tries again instead of
            // skipping the scheduled time.
            WhenBusy::Skip(_) | WhenBusy::Replace if self.ctx.worker.has_unstored_end(job) => {
                entry.try_at = now.saturating_add(BUSY_WAIT);
                return self.ctx.due.lock().put_back(ticket, Some(entry));
            }
            WhenBusy::Skip(reason) => {
                entry.skip = Some(reason);
                return self.ctx.due.lock().put_back(ticket, Some(entry));
            }
            WhenBusy::Wait => {}
            WhenBusy::Replace if entry.replaces => {}
            WhenBusy::Replace => {
                entry.replaces = true;
                self.replacing.push((job, entry.next_at));
            }
        }
        let wait = BUSY_WAIT.saturating_mul(1 << entry.waits.min(BUSY_DOUBLINGS));
        entry.try_at = now.saturating_add(wait);
        entry.waits = entry.waits.saturating_add(1);
        self.ctx.overlap_waits.await_end(job);
        self.ctx.due.lock().put_back(ticket, Some(entry));
    }
}

/// Returns the attempt that a fire request claims for this node.
fn claimed_attempt(fire: &Fire) -> Option<AttemptKey> {
    match fire.start {
        Some((scheduled, Start::Claimed)) => Some(AttemptKey::regular(fire.job, scheduled)),
        Some((_, Start::Queued(_))) | None => None,
    }
}

fn log_next_slot(fire: &Fire, entry: &JobEntry) {
    if let (Some(next), Schedule::Interval(_)) = (fire.next_at, &entry.definition.schedule) {
        debug!(
            job.no = fire.job.0,
            old_slot = %Slot::of(fire.due).start(),
            new_slot = %Slot::of(next).start(),
            "rescheduled job (rhythm preserved)"
        );
    }
}
