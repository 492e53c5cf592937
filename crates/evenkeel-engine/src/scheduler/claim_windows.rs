//! A queued attempt can be claimed only within its claim window, which ends before a blackout of
//! its job. After a claim window has ended, this module sets the next one. This module also cancels
//! active runs of jobs with the overlap policy `replace` when their next run is due.

use std::time::Duration;

use evenkeel_core::{AttemptKey, JobNo, Shard, Span, Timestamp};
use evenkeel_store::{ClaimWindow, ClosedAttempt, Signal, StoreError, Supersede};

use super::Scheduler;
use crate::cluster::node_context::NodeContext;

/// Interval at which the scheduler checks for claim windows that have ended.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Number of poll intervals between two checks for claim windows of attempts that other nodes
/// queued.
const POLLS_PER_CHECK: u32 = 60;
/// Attempts per query.
const PAGE: u32 = 1000;
/// Queries per check.
const PAGES_PER_CHECK: usize = 10;

impl Scheduler {
    /// Records that a queued attempt may not be claimed after `closing`, because of a blackout of
    /// its job.
    pub(super) fn note_window_end(&mut self, closing: Timestamp) {
        const SECOND: i64 = 1_000_000;
        let whole = closing.as_micros().div_euclid(SECOND) + 1;
        self.window_ends.insert(Timestamp::from_micros(whole * SECOND));
    }

    /// Returns the delay until the next claim window ends, or until the next check is allowed if
    /// that is later.
    pub(super) fn until_window_end(&self) -> Duration {
        let Some(closing) = self.window_ends.first() else { return Duration::MAX };
        let own_now = self.ctx.clock.monotonic();
        let looked = self.windows_checked_at.map_or(Duration::ZERO, |seen| seen + CHECK_EVERY);
        self.ctx.db_clock.until(*closing).max(looked.saturating_sub(own_now))
    }

    /// Sets the next claim window of queued attempts whose claim window has ended.
    pub(super) async fn reopen_closed_windows(&mut self) -> Result<(), StoreError> {
        let (now, own_now) = (self.ctx.db_now(), self.ctx.clock.monotonic());
        let since = self.windows_checked_at.map(|seen| own_now.saturating_sub(seen));
        let known = self.window_ends.first().is_some_and(|closing| *closing <= now);
        let poll = self.ctx.settings.poll;
        let is_time = since
            .is_none_or(|since| (known && since >= CHECK_EVERY) || since >= poll * POLLS_PER_CHECK);
        if !is_time {
            return Ok(());
        }
        self.windows_checked_at = Some(own_now);
        let shards: Vec<Shard> = self.shards.iter().copied().collect();
        for _ in 0..PAGES_PER_CHECK {
            let closed =
                self.ctx.store.find_closed_windows(&shards, PAGE, NodeContext::NOW).await?;
            let count = closed.len();
            let batch: Vec<_> = closed.iter().map(|closed| self.reopening(closed, now)).collect();
            if !batch.is_empty() {
                self.ctx.store.set_claim_windows(&batch).await?;
            }
            for until in batch.iter().filter_map(|(_, opening)| opening.until) {
                self.note_window_end(until);
            }
            if count < PAGE as usize {
                // Ends of claim windows are removed only after a successful check, so a failed
                // check is repeated.
                self.window_ends =
                    self.window_ends.split_off(&now.saturating_add(Span::from_micros(1)));
                break;
            }
        }
        Ok(())
    }

    fn reopening(&self, closed: &ClosedAttempt, now: Timestamp) -> (AttemptKey, ClaimWindow) {
        // An attempt whose job definition cannot be parsed must stay claimable. The worker that
        // claims an attempt with an unparsable definition marks it as failed, and the run ends.
        let opening = match self.ctx.definitions.read(closed.key.job_no, &closed.definition) {
            Ok(definition) => {
                let average = definition.average(closed.average_good_duration);
                ClaimWindow::of(&definition, average, now)
            }
            Err(_) => ClaimWindow::default(),
        };
        (closed.key, opening)
    }

    /// Cancels active runs of jobs with the overlap policy `replace` whose next run is still
    /// waiting.
    pub(super) async fn end_replaced(&mut self) -> Result<(), StoreError> {
        if self.replacing.is_empty() {
            return Ok(());
        }
        let still_waits = |(job, due): &(JobNo, Timestamp)| {
            let due_jobs = self.ctx.due.lock();
            let entry =
                due_jobs.upcoming.get(*job).filter(|it| it.replaces && it.next_at == *due)?;
            Some(Supersede { job: *job, generation: entry.generation, due: *due })
        };
        let batch: Vec<Supersede> = self.replacing.iter().filter_map(still_waits).collect();
        if batch.is_empty() {
            self.replacing.clear();
            return Ok(());
        }
        self.ctx.store.supersede(&batch, NodeContext::NOW).await?;
        self.replacing.clear();
        self.ctx.announce(Signal::Cancel);
        Ok(())
    }

    /// Passes jobs that miss their deadline to the `Judge` loop, which sets their condition.
    pub(super) fn report_late_jobs(&mut self) {
        let upcoming = &mut self.ctx.due.lock().upcoming;
        if upcoming.waiting().iter().any(|count| *count > 0) {
            upcoming.find_late(self.ctx.db_now());
        }
        self.ctx.at_risk.add(upcoming.late());
    }
}
