//! How an attempt went.

use evenkeel_core::Span;
use evenkeel_core::chain::Again;
use evenkeel_core::run::Outcome;

use crate::cancel::CancelReason;
use crate::tail;

/// How an attempt went, ready to be stored: its texts are bounded and hold no NUL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong, if anything did.
    pub error: Option<String>,
    /// Its result as text: an answer, or standard output. If the body printed to its
    /// [`Wire`](crate::Wire), the log there is stored instead, which has both streams.
    pub output: Option<String>,
    /// How many items it looked at.
    pub items_crawled: Option<i64>,
    /// How many of them it kept.
    pub items_indexed: Option<i64>,
    /// Processor time of all its processes.
    pub cpu_time: Option<Span>,
    /// Resident memory of its largest process at its largest.
    pub memory_peak_kb: Option<i64>,
    /// What it says about trying again, if it failed.
    pub again: Again,
}

impl Report {
    /// It ended well.
    pub const fn completed() -> Self {
        Self::new(Outcome::Completed, None)
    }

    /// It ended badly.
    pub fn failed(error: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, Some(tail::clean(error.into())))
    }

    /// It was silent, or went on, for too long.
    pub fn timed_out(error: impl Into<String>) -> Self {
        Self::new(Outcome::TimedOut, Some(tail::clean(error.into())))
    }

    /// It was ended for `reason`.
    pub fn cancelled(reason: CancelReason) -> Self {
        let (outcome, error) = match reason {
            CancelReason::Requested => (Outcome::Cancelled, "cancelled on request"),
            CancelReason::LeaseLost => (Outcome::Cancelled, "the node lost its lease"),
            CancelReason::ShuttingDown => (Outcome::Cancelled, "the node is shutting down"),
            CancelReason::Settled => (Outcome::Cancelled, "its end was reported from afar"),
            CancelReason::TooLong => (Outcome::TimedOut, "it ran longer than the job allows"),
            CancelReason::Blackout => (Outcome::Failed, "it was ended by a blackout of its job"),
            CancelReason::Superseded => {
                (Outcome::Superseded, "a newer time of its job took its place")
            }
        };
        Self::new(outcome, Some(error.into()))
    }

    const fn new(outcome: Outcome, error: Option<String>) -> Self {
        Self {
            outcome,
            error,
            output: None,
            items_crawled: None,
            items_indexed: None,
            cpu_time: None,
            memory_peak_kb: None,
            again: Again::AsUsual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_too_long_or_into_a_blackout_is_retried_after_a_cancel() {
        let outcome = |reason| Report::cancelled(reason).outcome;
        assert_eq!(outcome(CancelReason::Requested), Outcome::Cancelled);
        assert_eq!(outcome(CancelReason::LeaseLost), Outcome::Cancelled);
        assert_eq!(outcome(CancelReason::ShuttingDown), Outcome::Cancelled);
        assert_eq!(outcome(CancelReason::TooLong), Outcome::TimedOut);
        assert_eq!(outcome(CancelReason::Blackout), Outcome::Failed);
        assert_eq!(outcome(CancelReason::Superseded), Outcome::Superseded);
        let told = Report::cancelled(CancelReason::Blackout).error.unwrap();
        assert!(told.contains("blackout"));
    }

    #[test]
    fn an_error_is_fit_for_the_store() {
        let report = Report::failed("a\0b");
        assert_eq!(report.error.as_deref(), Some("a\u{fffd}b"));
    }
}
