//! What follows the end of an attempt.

use crate::ids::Attempt;
use crate::job::{Definition, OnExhausted};
use crate::retry::Verdict;
use crate::run::Outcome;
use crate::time::{Span, Timestamp};

/// What follows an attempt's end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Then {
    /// The chain is over.
    EndChain {
        /// The job gets no further regular time.
        stop_job: bool,
    },
    /// The next attempt may start at `due`; the chain stays live.
    Retry {
        /// Then.
        due: Timestamp,
    },
}

/// What the body of a failed attempt says about trying again.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Again {
    /// Nothing: the job's retry policy decides.
    #[default]
    AsUsual,
    /// Not sooner than after this wait.
    NotBefore(Span),
    /// It is of no use.
    Never,
}

/// Nobody may put off a retry for longer than this.
pub const PUT_OFF_MAX: Span = Span::from_secs(24 * 3600);

/// What follows when `attempt` of a job ended with `outcome`. `draw` is the chance in its retry.
pub fn after_end(
    definition: &Definition,
    attempt: Attempt,
    outcome: Outcome,
    again: Again,
    finished_at: Timestamp,
    draw: f64,
) -> Then {
    if !outcome.is_failure() {
        return Then::EndChain { stop_job: false };
    }
    match (definition.retry.after_failure(attempt, draw), again) {
        (Verdict::Exhausted, _) | (_, Again::Never) => end_of_failed(definition),
        (Verdict::RetryAfter(wait), Again::AsUsual) => {
            Then::Retry { due: finished_at.saturating_add(wait) }
        }
        (Verdict::RetryAfter(wait), Again::NotBefore(asked)) => {
            Then::Retry { due: finished_at.saturating_add(wait.max(asked.min(PUT_OFF_MAX))) }
        }
    }
}

/// What follows a failure without further retries.
pub fn end_of_failed(definition: &Definition) -> Then {
    Then::EndChain { stop_job: definition.on_exhausted == OnExhausted::Stop }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry::{Backoff, Jitter, RetryPolicy};
    use crate::schedule::{Once, Schedule};

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn job() -> Definition {
        Definition {
            retry: RetryPolicy {
                max_retries: 2,
                backoff: Backoff::Fixed { delay: Span::from_secs(60) },
                jitter: Jitter::None,
            },
            ..Definition::noop(Schedule::Once(Once { at: None }))
        }
    }

    fn after(outcome: Outcome, attempt: u16, again: Again) -> Then {
        after_end(&job(), Attempt(attempt), outcome, again, NOW, 0.5)
    }

    fn retry_in(secs: u64) -> Then {
        Then::Retry { due: NOW.saturating_add(Span::from_secs(secs)) }
    }

    #[test]
    fn only_failures_are_tried_again() {
        for outcome in Outcome::ALL {
            let expected = if outcome.is_failure() {
                retry_in(60)
            } else {
                Then::EndChain { stop_job: false }
            };
            assert_eq!(after(outcome, 0, Again::AsUsual), expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_body_may_put_a_retry_off_but_not_hasten_or_banish_it() {
        let put_off = |secs| after(Outcome::Failed, 0, Again::NotBefore(Span::from_secs(secs)));
        assert_eq!(put_off(5), retry_in(60));
        assert_eq!(put_off(600), retry_in(600));
        assert_eq!(put_off(30 * 86_400), retry_in(86_400));
        assert_eq!(put_off(u64::MAX / 1_000_000), retry_in(86_400));
    }

    #[test]
    fn no_retry_follows_the_last_or_one_that_is_of_no_use() {
        let over = Then::EndChain { stop_job: false };
        assert_eq!(after(Outcome::Failed, 2, Again::AsUsual), over);
        assert_eq!(after(Outcome::Failed, 0, Again::Never), over);
        let stops = Definition { on_exhausted: OnExhausted::Stop, ..job() };
        let then = after_end(&stops, Attempt(0), Outcome::TimedOut, Again::Never, NOW, 0.5);
        assert_eq!(then, Then::EndChain { stop_job: true });
    }
}
