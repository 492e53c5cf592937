//! What is measured at every start. Looked up once: a start must not pay for it.

use std::time::Duration;

use evenkeel_core::advance::{SkipReason, SkippedTimes};
use evenkeel_core::after_attempt::Then;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::on_failure::Hook;
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptNo, Definition, Span, Timestamp};
use evenkeel_store::{Finish, JobCounts};
use metrics::{Counter, Histogram};

/// The instruments of one life of a node.
pub struct RunMetrics {
    lateness: Histogram,
    slack: Histogram,
    missed: Counter,
    retries: Counter,
    /// Good ends of attempts that were not the first.
    mended: Counter,
    /// By the numbers of lanes.
    waited: [Histogram; Lane::ALL.len()],
    /// By the numbers of outcomes.
    ended: [(Counter, Histogram); Outcome::ALL.len()],
}

impl Default for RunMetrics {
    fn default() -> Self {
        register_counters();
        Self {
            lateness: metrics::histogram!("evenkeel_lateness_seconds"),
            slack: metrics::histogram!("evenkeel_slack_seconds"),
            missed: metrics::counter!("evenkeel_deadlines_missed_total"),
            retries: metrics::counter!("evenkeel_retries_total"),
            mended: metrics::counter!("evenkeel_runs_succeeded_after_retry_total"),
            waited: Lane::ALL.map(
                |lane| metrics::histogram!("evenkeel_queue_wait_seconds", "lane" => lane.as_str()),
            ),
            ended: Outcome::ALL.map(|outcome| {
                let name = AttemptStatus::from(outcome).as_str();
                (
                    metrics::counter!("evenkeel_runs_ended_total", "outcome" => name),
                    metrics::histogram!("evenkeel_run_duration_seconds", "outcome" => name),
                )
            }),
        }
    }
}

impl RunMetrics {
    /// A run of a job began at `now` that could from `can_start_by` on. What a blackout held beyond
    /// its promise missed nothing that a worker could have kept: the job's condition says so.
    pub fn started(&self, can_start_by: Timestamp, should_start_by: Timestamp, now: Timestamp) {
        self.lateness.record(Duration::from(now.since(can_start_by)));
        self.slack.record(Duration::from(should_start_by.since(now)));
        if now > should_start_by && can_start_by <= should_start_by {
            self.missed.increment(1);
        }
    }

    /// A run of this lane began at `now` that could be claimed from `since` on.
    pub fn waited(&self, lane: Lane, since: Timestamp, now: Timestamp) {
        self.waited[lane as usize].record(Duration::from(now.since(since)));
    }

    /// Runs have ended.
    pub fn ended(&self, ends: &[Finish]) {
        for (outcome, (count, duration)) in Outcome::ALL.into_iter().zip(&self.ended) {
            let mut of = 0;
            for end in ends.iter().filter(|end| end.outcome == outcome) {
                of += 1;
                duration.record(Duration::from(end.finished_at.since(end.started_at)));
            }
            if of > 0 {
                count.increment(of);
            }
        }
        let retried = ends.iter().filter(|end| matches!(end.then, Then::Retry { .. })).count();
        if retried > 0 {
            self.retries.increment(retried as u64);
        }
        let is_mended =
            |end: &&Finish| end.outcome.is_success() && end.key.attempt > AttemptNo::FIRST;
        let mended = ends.iter().filter(is_mended).count();
        if mended > 0 {
            self.mended.increment(mended as u64);
        }
        ends.iter().for_each(count_dead);
    }
}

/// Counts a run that was put on the dead-letter list. Few are, so this is looked up each time.
fn count_dead(end: &Finish) {
    if let Hook::DeadLetter(reason) = end.hook {
        metrics::counter!("evenkeel_dead_letters_total", "reason" => reason.as_str()).increment(1);
    }
}

/// Counts from zero what alerts look at: of a count that begins with its first event nobody sees
/// that event.
fn register_counters() {
    for reason in SkipReason::ALL {
        metrics::counter!("evenkeel_skipped_times_total", "reason" => reason.as_str()).increment(0);
    }
    for name in ["evenkeel_nodes_lost_total", "evenkeel_runs_taken_over_total"] {
        metrics::counter!(name).increment(0);
    }
}

/// Shows how many jobs are in which state.
pub fn show_jobs_by_state(counts: &JobCounts) {
    let JobCounts { pending, scheduled, running, paused, completed, failed, cancelled, .. } =
        *counts;
    for (state, count) in [
        ("pending", pending),
        ("scheduled", scheduled),
        ("running", running),
        ("paused", paused),
        ("completed", completed),
        ("failed", failed),
        ("cancelled", cancelled),
    ] {
        metrics::gauge!("evenkeel_jobs_by_state", "state" => state).set(count as f64);
    }
}

/// When the run for `scheduled` of a job could start.
pub fn earliest_start(definition: &Definition, scheduled: Timestamp, average: Span) -> Timestamp {
    if definition.blackout_periods.is_empty() {
        return scheduled;
    }
    definition.may_start_from(scheduled, average)
}

/// Times of a job were recorded as skipped.
pub fn count_skipped(skip: &SkippedTimes) {
    metrics::counter!("evenkeel_skipped_times_total", "reason" => skip.reason.as_str())
        .increment(skip.count);
}
