//! Stored codes of the enums, as named constants for SQL statements.
//!
//! A statement contains `status = {attempt.running}` and never `status = 1`. A plural name is a
//! list for SQL `IN`: `status IN ({attempts.failed})`.

use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::order::Lane;
use evenkeel_core::status::{JobState, JobStatus};

use crate::{
    MessageKind, NodeState, RebalanceState, StoreError, outcome_from_code, skip_reason_code,
};

/// Value of `stopped_at` for a cancelled or deleted job, whose runs are never retried.
pub const STOPPED_FOR_GOOD: i64 = i64::MAX;

/// Returns the constants that SQL statements may use, for
/// [`Statements::read`](crate::statements::Statements::read).
pub fn codes() -> Vec<(&'static str, String)> {
    let one = [
        ("attempt.pending", AttemptStatus::Pending.code()),
        ("attempt.running", AttemptStatus::Running.code()),
        ("attempt.completed", AttemptStatus::Completed.code()),
        ("attempt.failed", AttemptStatus::Failed.code()),
        ("attempt.cancelled", AttemptStatus::Cancelled.code()),
        ("attempt.timed_out", AttemptStatus::TimedOut.code()),
        ("attempt.skipped", AttemptStatus::Skipped.code()),
        ("attempt.partly_failed", AttemptStatus::PartlyFailed.code()),
        ("attempt.superseded", AttemptStatus::Superseded.code()),
        ("job.active", JobState::Active as i16),
        ("job.paused", JobState::Paused as i16),
        ("job.cancelled", JobState::Cancelled as i16),
        ("job.deleted", JobState::Deleted as i16),
        ("job_status.pending", JobStatus::Pending as i16),
        ("job_status.scheduled", JobStatus::Scheduled as i16),
        ("job_status.running", JobStatus::Running as i16),
        ("job_status.paused", JobStatus::Paused as i16),
        ("job_status.completed", JobStatus::Completed as i16),
        ("job_status.failed", JobStatus::Failed as i16),
        ("job_status.cancelled", JobStatus::Cancelled as i16),
        ("node.live", NodeState::Live as i16),
        ("node.draining", NodeState::Draining as i16),
        ("node.dead", NodeState::Dead as i16),
        ("node.gone", NodeState::Gone as i16),
        ("condition.ok", Level::Ok as i16),
        ("condition.warning", Level::Warning as i16),
        ("condition.error", Level::Error as i16),
        ("reason.given_up", Reason::GivenUp as i16),
        ("reason.held_by_blackout", Reason::HeldByBlackout as i16),
        ("skip.misfire", skip_reason_code(SkipReason::Misfire)),
        ("skip.overlap", skip_reason_code(SkipReason::Overlap)),
        ("skip.retry_pending", skip_reason_code(SkipReason::RetryPending)),
        ("skip.blackout", skip_reason_code(SkipReason::Blackout)),
        ("skip.end_not_stored", skip_reason_code(SkipReason::EndNotStored)),
        ("rebalance.planned", RebalanceState::Planned as i16),
        ("rebalance.running", RebalanceState::Running as i16),
        ("rebalance.done", RebalanceState::Done as i16),
        ("rebalance.stopped", RebalanceState::Stopped as i16),
        ("message.heartbeat", MessageKind::Heartbeat as i16),
        ("message.ended", MessageKind::Ended as i16),
        ("lane.critical", Lane::Critical as i16),
        ("lane.standard", Lane::Standard as i16),
        ("lane.batch", Lane::Batch as i16),
    ];
    let outcome = |status: AttemptStatus| outcome_from_code(status.code());
    let attempts = |fits: &dyn Fn(AttemptStatus) -> bool| {
        list(AttemptStatus::ALL.into_iter().filter(|status| fits(*status)).map(AttemptStatus::code))
    };
    let several = [
        ("attempts.unfinished", {
            list([AttemptStatus::Pending, AttemptStatus::Running].map(AttemptStatus::code))
        }),
        (
            "attempts.succeeded",
            attempts(&|status| outcome(status).is_some_and(Outcome::is_success)),
        ),
        ("attempts.failed", attempts(&|status| outcome(status).is_some_and(Outcome::is_failure))),
        ("jobs.stopped", list([JobState::Paused as i16, JobState::Cancelled as i16])),
        ("nodes.in_cluster", list([NodeState::Live as i16, NodeState::Draining as i16])),
        ("lanes.all", list(Lane::ALL.map(|lane| lane as i16))),
        ("stopped.for_good", STOPPED_FOR_GOOD.to_string()),
    ];
    one.into_iter().map(|(name, code)| (name, code.to_string())).chain(several).collect()
}

fn list(codes: impl IntoIterator<Item = i16>) -> String {
    codes.into_iter().map(|code| code.to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the enum value with this stored code, which is its index in `all`. `row` and `column`
/// name the stored value in the error message.
pub fn from_code<T: Copy>(
    all: &[T],
    code: i16,
    row: impl std::fmt::Display,
    column: &'static str,
) -> Result<T, StoreError> {
    let known = usize::try_from(code).ok().and_then(|code| all.get(code)).copied();
    known.ok_or_else(|| StoreError::corrupt(row, column, format!("unknown code {code}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Existing databases contain the codes of enum values, so a code must never change its
    /// meaning.
    #[test]
    fn stored_codes_keep_their_numbers() {
        let codes: std::collections::HashMap<_, _> = codes().into_iter().collect();
        for (name, stored) in [
            ("attempt.running", "1"),
            ("attempt.superseded", "8"),
            ("attempts.succeeded", "2, 7"),
            ("attempts.failed", "3, 5"),
            ("attempts.unfinished", "0, 1"),
            ("job.deleted", "3"),
            ("node.gone", "3"),
            ("nodes.in_cluster", "0, 1"),
            ("condition.error", "2"),
            ("reason.held_by_blackout", "9"),
            ("skip.end_not_stored", "5"),
            ("rebalance.stopped", "3"),
            ("message.ended", "1"),
            ("lanes.all", "0, 1, 2"),
        ] {
            assert_eq!(codes[name], stored, "{name}");
        }
    }

    #[test]
    fn an_unknown_code_is_reported_with_its_row_and_column() {
        assert_eq!(from_code(&Level::ALL, 2, "job 7", "level").ok(), Some(Level::Error));
        let error = from_code(&Level::ALL, 3, "job 7", "level").unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { column: "level", .. }), "{error}");
    }
}
