//! Stored codes of the enums, as named constants for SQL statements.
//!
//! A statement contains `status = {attempt.running}` and never `status = 1`. A plural name is a
//! list for SQL `IN`: `status IN ({attempts.failed})`.

use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::order::Lane;
use evenkeel_core::status::{JobState, JobStatus};

use crate::{MessageKind, NodeState, RebalanceState, StoreError};

/// Value of `stopped_at` for a cancelled or deleted job, whose runs are never retried.
pub const STOPPED_FOR_GOOD: i64 = i64::MAX;

/// Returns the constants that SQL statements may use, for
/// [`Statements::read`](crate::statements::Statements::read).
pub fn codes() -> Vec<(String, String)> {
    let one = [
        of("attempt", AttemptStatus::ALL.map(|it| (it.as_str(), it as i16))),
        of("job", JobState::ALL.map(|it| (it.as_str(), it as i16))),
        of("job_status", JobStatus::ALL.map(|it| (it.as_str(), it as i16))),
        of("node", NodeState::ALL.map(|it| (it.as_str(), it as i16))),
        of("condition", Level::ALL.map(|it| (it.as_str(), it as i16))),
        of("reason", Reason::ALL.map(|it| (it.as_str(), it as i16))),
        of("skip", SkipReason::ALL.map(|it| (it.as_str(), it as i16))),
        of("rebalance", RebalanceState::ALL.map(|it| (it.as_str(), it as i16))),
        of("message", MessageKind::ALL.map(|it| (it.as_str(), it as i16))),
        of("lane", Lane::ALL.map(|it| (it.as_str(), it as i16))),
    ];
    let attempts = |fits: fn(Outcome) -> bool| {
        let fits = |status: &AttemptStatus| status.outcome().is_some_and(fits);
        list(AttemptStatus::ALL.into_iter().filter(fits).map(AttemptStatus::code))
    };
    let unfinished = [AttemptStatus::Pending, AttemptStatus::Running];
    let several = [
        ("attempts.unfinished", list(unfinished.map(AttemptStatus::code))),
        ("attempts.succeeded", attempts(Outcome::is_success)),
        ("attempts.failed", attempts(Outcome::is_failure)),
        ("jobs.stopped", list([JobState::Paused as i16, JobState::Cancelled as i16])),
        ("nodes.in_cluster", list([NodeState::Live as i16, NodeState::Draining as i16])),
        ("lanes.all", list(Lane::ALL.map(|lane| lane as i16))),
        ("stopped.for_good", STOPPED_FOR_GOOD.to_string()),
    ];
    let several = several.into_iter().map(|(name, codes)| (name.to_owned(), codes));
    one.into_iter().flatten().chain(several).collect()
}

/// Returns the constants of one enum, such as `attempt.running`, from the names and codes of its
/// values.
fn of<const N: usize>(prefix: &str, values: [(&str, i16); N]) -> Vec<(String, String)> {
    let constant =
        |(name, code): (&str, i16)| (format!("{prefix}.{}", name.to_lowercase()), code.to_string());
    values.map(constant).into()
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
