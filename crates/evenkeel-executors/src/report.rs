//! The result of an attempt.

use std::fmt;

use evenkeel_core::Span;
use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::attempt::Outcome;

use crate::cancel::CancelReason;
use crate::tail;

/// The result of an attempt. Texts in a report are bounded and hold no NUL, so both stores accept
/// them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub outcome: Outcome,
    /// The error message, or `None` if the outcome is `Completed`.
    pub error: Option<String>,
    /// The output of the attempt as text: the response of an HTTP call, or standard output of a
    /// program. If the [`LiveReport`](crate::LiveReport) of the attempt has a log, the log is
    /// stored instead of this output.
    pub output: Option<String>,
    pub items_processed: Option<i64>,
    /// Number of processed items that the attempt has saved.
    pub items_saved: Option<i64>,
    /// CPU time of all processes of the attempt.
    pub cpu_time: Option<Span>,
    /// Peak memory of the program's control group, or of its largest process, in kilobytes.
    pub memory_peak_kb: Option<i64>,
    /// Whether a failed attempt may be retried, and when.
    pub retry: RetryHint,
}

impl Report {
    pub const fn completed() -> Self {
        Self::new(Outcome::Completed, None)
    }

    pub fn failed(error: impl fmt::Display) -> Self {
        Self::new(Outcome::Failed, Some(tail::clean(error.to_string())))
    }

    /// Returns the result of an attempt that was silent for the job's `timeout_sec` or ran longer
    /// than allowed.
    pub fn timed_out(error: impl fmt::Display) -> Self {
        Self::new(Outcome::TimedOut, Some(tail::clean(error.to_string())))
    }

    /// Returns the result of an attempt that failed and is not retried, because retries would fail
    /// as well.
    pub fn failed_for_good(error: impl fmt::Display) -> Self {
        Self { retry: RetryHint::Never, ..Self::failed(error) }
    }

    pub fn cancelled(reason: CancelReason) -> Self {
        let (outcome, error) = match reason {
            CancelReason::Requested => (Outcome::Cancelled, "cancelled on request"),
            CancelReason::LeaseLost => (Outcome::Cancelled, "the node lost its lease"),
            CancelReason::ShuttingDown => (Outcome::Cancelled, "the node is shutting down"),
            CancelReason::EndReported => {
                (Outcome::Cancelled, "the receiver reported the end of the attempt")
            }
            CancelReason::TooLong => (Outcome::TimedOut, "ran longer than max_allowed_duration"),
            CancelReason::Blackout => (Outcome::Failed, "ended by a blackout of the job"),
            CancelReason::Superseded => (Outcome::Superseded, "replaced by a newer run of the job"),
        };
        Self::new(outcome, Some(error.into()))
    }

    const fn new(outcome: Outcome, error: Option<String>) -> Self {
        Self {
            outcome,
            error,
            output: None,
            items_processed: None,
            items_saved: None,
            cpu_time: None,
            memory_peak_kb: None,
            retry: RetryHint::ByPolicy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_attempts_are_retried_only_after_a_blackout_or_a_timeout() {
        let outcome = |reason| Report::cancelled(reason).outcome;
        assert_eq!(outcome(CancelReason::Requested), Outcome::Cancelled);
        assert_eq!(outcome(CancelReason::LeaseLost), Outcome::Cancelled);
        assert_eq!(outcome(CancelReason::ShuttingDown), Outcome::Cancelled);
        assert_eq!(outcome(CancelReason::TooLong), Outcome::TimedOut);
        assert_eq!(outcome(CancelReason::Blackout), Outcome::Failed);
        assert_eq!(outcome(CancelReason::Superseded), Outcome::Superseded);
        let error = Report::cancelled(CancelReason::Blackout).error.unwrap();
        assert!(error.contains("blackout"));
    }

    #[test]
    fn error_of_a_report_holds_no_nul() {
        let report = Report::failed("a\0b");
        assert_eq!(report.error.as_deref(), Some("a\u{fffd}b"));
    }
}
