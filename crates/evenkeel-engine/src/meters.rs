//! What is measured at every start. Looked up once: a start must not pay for it.

use std::time::Duration;

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::{Definition, Timestamp};
use metrics::{Counter, Histogram};

/// The instruments of one life of a node.
pub struct Meters {
    lateness: Histogram,
    slack: Histogram,
    missed: Counter,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            lateness: metrics::histogram!("evenkeel_lateness_seconds"),
            slack: metrics::histogram!("evenkeel_slack_seconds"),
            missed: metrics::counter!("evenkeel_deadlines_missed_total"),
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
