//! What follows the end of an attempt.

use crate::attempt::Outcome;
use crate::ids::AttemptNo;
use crate::job::{Definition, OnExhausted};
use crate::retry::Verdict;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};

/// What follows an attempt's end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Then {
    /// The chain is over.
    EndRun {
        /// The job gets no further regular time.
        stop_job: bool,
        /// Its next regular time, if that follows from this end.
        next_at: Option<Timestamp>,
    },
    /// The next attempt may start at `due`; the chain stays live.
    Retry {
        /// Then.
        due: Timestamp,
    },
}

/// What the body of a failed attempt says about trying again.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum RetryHint {
    /// Nothing: the job's retry policy decides.
    #[default]
    ByPolicy,
    /// Not sooner than after this wait.
    NotBefore(Span),
    /// It is of no use.
    Never,
}

/// Nobody may put off a retry for longer than this.
pub const RETRY_DELAY_MAX: Span = Span::from_secs(24 * 3600);

/// An attempt that is over.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Which of its run.
    pub attempt: AttemptNo,
    /// How.
    pub outcome: Outcome,
    /// What its body says about trying again.
    pub again: RetryHint,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
}

/// What follows when an attempt of a job has ended. `draw` is the chance in its retry.
pub fn after_end(definition: &Definition, ended: Ended, draw: f64) -> Then {
    if !ended.outcome.is_failure() {
        return end(definition, ended.finished_at, Span::ZERO, false);
    }
    let wait = match (definition.retry.after_failure(ended.attempt, draw), ended.again) {
        (Verdict::Exhausted, _) | (_, RetryHint::Never) => {
            let pause = definition.retry.pause_after(ended.attempt);
            return after_final_failure(definition, ended.finished_at, pause);
        }
        (Verdict::RetryAfter(wait), RetryHint::ByPolicy) => wait,
        (Verdict::RetryAfter(wait), RetryHint::NotBefore(asked)) => {
            wait.max(asked.min(RETRY_DELAY_MAX))
        }
    };
    // What failed tells nothing about how long a good run takes; what was said about it does.
    let average = definition.average(None);
    let due = ended.finished_at.saturating_add(wait);
    Then::Retry { due: definition.may_start_from(due, average) }
}

/// What follows a failure without further retries, of a job that pauses at least for `pause`.
pub fn after_final_failure(definition: &Definition, finished_at: Timestamp, pause: Span) -> Then {
    let stop_job = definition.on_exhausted == OnExhausted::Stop;
    end(definition, finished_at, pause, stop_job)
}

/// The chain is over. A job whose times follow from its ends gets its next one.
fn end(definition: &Definition, finished_at: Timestamp, pause: Span, stop_job: bool) -> Then {
    let Schedule::Periodic(periodic) = &definition.schedule else {
        return Then::EndRun { stop_job, next_at: None };
    };
    let next = periodic.after_end(finished_at).max(finished_at.saturating_add(pause));
    let next = definition.may_start_from(next, definition.average(None));
    let over = definition.bounds.end_at.is_some_and(|end| next > end);
    Then::EndRun { stop_job: stop_job || over, next_at: (!over).then_some(next) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blackout::Blackout;
    use crate::retry::{Backoff, Jitter, RetryPolicy};
    use crate::schedule::{Once, Periodic};

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn job() -> Definition {
        Definition {
            retry: RetryPolicy {
                max_retries: 2,
                backoff: Backoff::Fixed { delay: Span::from_secs(60) },
                jitter: Jitter::None,
            },
            ..Definition::noop(Schedule::Once(Once::NOW))
        }
    }

    fn ended(outcome: Outcome, attempt: u16, again: RetryHint) -> Ended {
        let attempt = AttemptNo(attempt);
        Ended { attempt, outcome, again, started_at: NOW, finished_at: NOW }
    }

    fn after(outcome: Outcome, attempt: u16, again: RetryHint) -> Then {
        after_end(&job(), ended(outcome, attempt, again), 0.5)
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
                Then::EndRun { stop_job: false, next_at: None }
            };
            assert_eq!(after(outcome, 0, RetryHint::ByPolicy), expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_body_may_put_a_retry_off_but_not_hasten_or_banish_it() {
        let put_off = |secs| after(Outcome::Failed, 0, RetryHint::NotBefore(Span::from_secs(secs)));
        assert_eq!(put_off(5), retry_in(60));
        assert_eq!(put_off(600), retry_in(600));
        assert_eq!(put_off(30 * 86_400), retry_in(86_400));
        assert_eq!(put_off(u64::MAX / 1_000_000), retry_in(86_400));
    }

    #[test]
    fn no_retry_follows_the_last_or_one_that_is_of_no_use() {
        let over = Then::EndRun { stop_job: false, next_at: None };
        assert_eq!(after(Outcome::Failed, 2, RetryHint::ByPolicy), over);
        assert_eq!(after(Outcome::Failed, 0, RetryHint::Never), over);
        let stops = Definition { on_exhausted: OnExhausted::Stop, ..job() };
        let then = after_end(&stops, ended(Outcome::TimedOut, 0, RetryHint::Never), 0.5);
        assert_eq!(then, Then::EndRun { stop_job: true, next_at: None });
    }

    #[test]
    fn a_periodic_job_runs_again_when_its_pause_is_over() {
        let hours = |n: u64| Span::from_secs(n * 3600);
        let periodic = Periodic::new(hours(24), Some(hours(1))).unwrap();
        let job = Definition {
            retry: RetryPolicy { max_retries: 1, ..RetryPolicy::deadline() },
            ..Definition::noop(Schedule::Periodic(periodic))
        };
        let next = |outcome, attempt| match after_end(
            &job,
            ended(outcome, attempt, RetryHint::ByPolicy),
            0.5,
        ) {
            Then::EndRun { next_at, .. } => next_at,
            Then::Retry { .. } => None,
        };
        assert_eq!(next(Outcome::Completed, 0), Some(NOW.saturating_add(hours(1))));
        assert_eq!(next(Outcome::Cancelled, 0), Some(NOW.saturating_add(hours(1))));
        assert_eq!(next(Outcome::Failed, 0), None);
        assert_eq!(next(Outcome::Failed, 1), Some(NOW.saturating_add(hours(1))));
        assert_eq!(next(Outcome::Failed, 2), Some(NOW.saturating_add(hours(4))));
    }

    #[test]
    fn a_retry_waits_for_the_end_of_a_blackout() {
        let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
        let blackout = Blackout { start: hour(0), end: hour(1) };
        let job = Definition { blackout_periods: vec![blackout], ..job() };
        let then = after_end(&job, ended(Outcome::Failed, 0, RetryHint::ByPolicy), 0.5);
        assert_eq!(then, Then::Retry { due: Timestamp::from_micros(3600 * 1_000_000) });
    }
}
