//! What is measured at every start. Looked up once: a start must not pay for it.

use std::time::Duration;

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::chain::Then;
use evenkeel_core::on_failure::Hook;
use evenkeel_core::run::{Outcome, RunStatus};
use evenkeel_core::{Definition, Timestamp};
use evenkeel_store::{Finish, JobCounts};
use metrics::{Counter, Histogram};

/// The instruments of one life of a node.
pub struct Meters {
    lateness: Histogram,
    slack: Histogram,
    missed: Counter,
    retries: Counter,
    /// By the numbers of outcomes.
    ended: [(Counter, Histogram); Outcome::ALL.len()],
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            lateness: metrics::histogram!("evenkeel_lateness_seconds"),
            slack: metrics::histogram!("evenkeel_slack_seconds"),
            missed: metrics::counter!("evenkeel_deadlines_missed_total"),
            retries: metrics::counter!("evenkeel_retries_total"),
            ended: Outcome::ALL.map(|outcome| {
                let name = RunStatus::from(outcome).as_str();
                (
                    metrics::counter!("evenkeel_runs_ended_total", "outcome" => name),
                    metrics::histogram!("evenkeel_run_duration_seconds", "outcome" => name),
                )
            }),
        }
    }
}

impl Meters {
    /// A run of a job began at `now` that could from `can_start_by` on.
    pub fn started(&self, can_start_by: Timestamp, should_start_by: Timestamp, now: Timestamp) {
        self.lateness.record(Duration::from(now.since(can_start_by)));
        self.slack.record(Duration::from(should_start_by.since(now)));
        if now > should_start_by {
            self.missed.increment(1);
        }
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
        ends.iter().for_each(count_dead);
    }
}

/// Counts a run that was put on the dead-letter list. Few are, so this is looked up each time.
fn count_dead(end: &Finish) {
    if let Hook::DeadLetter(reason) = end.hook {
        metrics::counter!("evenkeel_dead_letters_total", "reason" => reason.as_str()).increment(1);
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
pub fn could_start(
    definition: &Definition,
    scheduled: Timestamp,
    average: evenkeel_core::Span,
) -> Timestamp {
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
