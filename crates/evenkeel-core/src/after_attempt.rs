//! Decides what happens after an attempt has finished: a retry, or the end of the run.

use crate::attempt::Outcome;
use crate::ids::AttemptNo;
use crate::job::{Definition, OnExhausted};
use crate::retry::Verdict;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Then {
    EndRun {
        /// True if the job has no further scheduled times.
        stop_job: bool,
        /// The job's next scheduled time; `None` unless it depends on when this run finished.
        next_at: Option<Timestamp>,
    },
    /// The next attempt may start at `due`; the run stays active.
    Retry { due: Timestamp },
}

impl Then {
    /// The run ends, and the schedule of the job continues.
    pub const END: Self = Self::EndRun { stop_job: false, next_at: None };

    /// Replaces a retry with the end of the run.
    #[must_use]
    pub fn without_retry(self) -> Self {
        if let Self::Retry { .. } = self { Self::END } else { self }
    }
}

/// What a failed attempt reports about its retry, for example with the HTTP header `Retry-After`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum RetryHint {
    /// The job's retry policy decides.
    #[default]
    ByPolicy,
    /// The next attempt starts after this delay at the earliest.
    NotBefore(Span),
    /// A retry cannot succeed.
    Never,
}

/// The longest delay that a failed attempt can request for its retry.
pub const RETRY_DELAY_MAX: Span = Span::from_secs(24 * 3600);

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    pub attempt: AttemptNo,
    pub outcome: Outcome,
    pub again: RetryHint,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
}

/// Decides whether a finished attempt is retried or its run ends. `draw` is a random number from 0
/// to 1 that determines the retry's jitter.
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
    // The duration of a failed attempt says nothing about the duration of a successful run, so the
    // retry time depends only on the configured average duration.
    let average = definition.average(None);
    let due = ended.finished_at.saturating_add(wait);
    Then::Retry { due: definition.may_start_from(due, average) }
}

/// Ends a run that has failed and has no retries left. The next run of a periodic job starts at
/// least `pause` after the failed run.
pub fn after_final_failure(definition: &Definition, finished_at: Timestamp, pause: Span) -> Then {
    let stop_job = definition.on_exhausted == OnExhausted::Stop;
    end(definition, finished_at, pause, stop_job)
}

/// Ends the run. The next scheduled time of a periodic job depends on when its run ends.
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
    fn only_failures_are_retried() {
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
    fn body_may_delay_a_retry_up_to_the_bound_but_not_hasten_it() {
        let put_off = |secs| after(Outcome::Failed, 0, RetryHint::NotBefore(Span::from_secs(secs)));
        assert_eq!(put_off(5), retry_in(60));
        assert_eq!(put_off(600), retry_in(600));
        assert_eq!(put_off(30 * 86_400), retry_in(86_400));
        assert_eq!(put_off(u64::MAX / 1_000_000), retry_in(86_400));
    }

    #[test]
    fn no_retry_follows_the_last_attempt_or_the_hint_never() {
        let over = Then::EndRun { stop_job: false, next_at: None };
        assert_eq!(after(Outcome::Failed, 2, RetryHint::ByPolicy), over);
        assert_eq!(after(Outcome::Failed, 0, RetryHint::Never), over);
        let stops = Definition { on_exhausted: OnExhausted::Stop, ..job() };
        let then = after_end(&stops, ended(Outcome::TimedOut, 0, RetryHint::Never), 0.5);
        assert_eq!(then, Then::EndRun { stop_job: true, next_at: None });
    }

    #[test]
    fn periodic_job_runs_again_after_its_cooldown_or_pause() {
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
    fn retry_waits_for_the_end_of_a_blackout() {
        let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
        let blackout = Blackout { start: hour(0), end: hour(1) };
        let job = Definition { blackout_periods: vec![blackout], ..job() };
        let then = after_end(&job, ended(Outcome::Failed, 0, RetryHint::ByPolicy), 0.5);
        assert_eq!(then, Then::Retry { due: Timestamp::from_micros(3600 * 1_000_000) });
    }
}
