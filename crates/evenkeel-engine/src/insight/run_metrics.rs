//! Metrics of starts and ends of runs. The metric handles are looked up only once, because counting
//! a start must be cheap.

use std::time::Duration;

use evenkeel_core::advance::{SkipReason, SkippedTimes};
use evenkeel_core::after_attempt::Then;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::on_failure::Hook;
use evenkeel_core::order::Lane;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{AttemptNo, Timestamp};
use evenkeel_store::{Finish, JobCounts};
use metrics::{Counter, Histogram};

pub struct RunMetrics {
    lateness: Histogram,
    slack: Histogram,
    missed: Counter,
    retries: Counter,
    /// Number of successful attempts that were retries.
    recovered: Counter,
    /// By lane.
    waited: [Histogram; Lane::ALL.len()],
    /// By outcome.
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
            recovered: metrics::counter!("evenkeel_runs_succeeded_after_retry_total"),
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
    /// Records that a run starts at `now`. The counter of missed deadlines does not count a
    /// deadline missed because of a blackout, because no worker could have met this deadline. Only
    /// the condition of the job shows a deadline missed because of a blackout.
    pub fn started(&self, can_start_by: Timestamp, should_start_by: Timestamp, now: Timestamp) {
        self.lateness.record(Duration::from(now.since(can_start_by)));
        self.slack.record(Duration::from(should_start_by.since(now)));
        if now > should_start_by && can_start_by <= should_start_by {
            self.missed.increment(1);
        }
    }

    /// Records how long a run waited from its earliest possible start until `now`.
    pub fn waited(&self, lane: Lane, since: Timestamp, now: Timestamp) {
        self.waited[lane as usize].record(Duration::from(now.since(since)));
    }

    pub fn ended(&self, ends: &[Finish]) {
        for (outcome, (count, duration)) in Outcome::ALL.into_iter().zip(&self.ended) {
            for end in ends.iter().filter(|end| end.outcome == outcome) {
                count.increment(1);
                duration.record(Duration::from(end.finished_at.since(end.started_at)));
            }
        }
        let retried = ends.iter().filter(|end| matches!(end.then, Then::Retry { .. })).count();
        self.retries.increment(retried as u64);
        let has_recovered =
            |end: &&Finish| end.outcome.is_success() && end.key.attempt > AttemptNo::FIRST;
        self.recovered.increment(ends.iter().filter(has_recovered).count() as u64);
        ends.iter().for_each(count_dead);
    }
}

/// Counts a dead letter. Dead letters are rare, so the metric handle is looked up each time.
fn count_dead(end: &Finish) {
    if let Hook::DeadLetter(reason) = end.hook {
        metrics::counter!("evenkeel_dead_letters_total", "reason" => reason.as_str()).increment(1);
    }
}

/// Registers counters with the value 0. If a counter appeared only with its first event, an alert
/// on an increase would miss this event.
fn register_counters() {
    for reason in SkipReason::ALL {
        metrics::counter!("evenkeel_skipped_times_total", "reason" => reason.as_str()).increment(0);
    }
    for name in ["evenkeel_nodes_lost_total", "evenkeel_runs_taken_over_total"] {
        metrics::counter!(name).increment(0);
    }
}

pub fn show_jobs_by_state(counts: &JobCounts) {
    let mut counts = *counts;
    for status in JobStatus::ALL {
        let count = *counts.of_mut(status) as f64;
        metrics::gauge!("evenkeel_jobs_by_state", "state" => status.as_str()).set(count);
    }
}

pub fn count_skipped(skip: &SkippedTimes) {
    metrics::counter!("evenkeel_skipped_times_total", "reason" => skip.reason.as_str())
        .increment(skip.count);
}
