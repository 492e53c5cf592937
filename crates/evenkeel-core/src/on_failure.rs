//! Decides what happens when a run has failed and is not retried.

use serde::{Deserialize, Serialize};

use crate::after_attempt::{Ended, RetryHint, Then};
use crate::job::Definition;
use crate::named_enum;
use crate::retry::Verdict;

/// The job's policy for runs that have failed and are not retried.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum OnFailure {
    /// The job continues with its next scheduled time.
    #[default]
    None,
    /// The job is paused after this many consecutive failed runs.
    Pause {
        after: u16,
        /// A note that users see together with the reason why the job is paused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Each run that failed and is not retried is added to the dead-letter list.
    DeadLetter,
}

impl OnFailure {
    pub const AFTER_MAX: u16 = 1000;
    pub const AFTER_DEFAULT: u16 = 3;

    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

named_enum! {
    /// Why a run is not retried.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DeathReason {
        RetriesExhausted => "retries_exhausted",
        /// The attempt reported that a retry cannot succeed.
        NotRetryable => "not_retryable",
        /// The worker was lost, and the job's settings do not allow another worker to start the
        /// attempt again.
        WorkerLost => "worker_lost",
    }
}

impl DeathReason {
    /// The stored number.
    pub const fn code(self) -> i16 {
        self as i16
    }

    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }
}

/// A follow-up action that the store performs in the transaction that finishes a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Hook {
    #[default]
    None,
    /// Counts a failed run, and marks the job to be paused after `pause_after` failed runs.
    CountFailure {
        pause_after: u16,
    },
    DeadLetter(DeathReason),
}

/// Returns the follow-up action (hook) for a finished attempt. `then` says whether the attempt is
/// retried.
pub fn hook_of(definition: &Definition, ended: &Ended, then: Then) -> Hook {
    // The random number is 0, because it changes only the delay of a retry.
    let verdict = definition.retry.after_failure(ended.attempt, 0.0);
    let reason = match (verdict, ended.again) {
        (Verdict::RetryAfter(_), RetryHint::Never) => DeathReason::NotRetryable,
        _ => DeathReason::RetriesExhausted,
    };
    if ended.outcome.is_failure() && matches!(then, Then::EndRun { .. }) {
        hook_of_dead(&definition.on_failure, reason)
    } else {
        Hook::None
    }
}

/// Returns the follow-up action (hook) for a run that has failed and is not retried.
pub fn hook_of_dead(on_failure: &OnFailure, reason: DeathReason) -> Hook {
    match on_failure {
        OnFailure::None => Hook::None,
        OnFailure::Pause { after, .. } => Hook::CountFailure { pause_after: *after },
        OnFailure::DeadLetter => Hook::DeadLetter(reason),
    }
}

/// Returns the note for a job that is paused after `failures` consecutive failures. Returns `None`
/// if the job must not be paused, which can happen if its policy has changed since the failures
/// were counted.
pub fn pause_note(on_failure: &OnFailure, failures: u32) -> Option<String> {
    let OnFailure::Pause { after, note } = on_failure else { return None };
    if failures < u32::from(*after) {
        return None;
    }
    let runs = if failures == 1 { "a run".into() } else { format!("{failures} runs in a row") };
    let paused = format!("paused because {runs} failed");
    Some(match note {
        Some(note) => format!("{paused}: {note}"),
        None => paused,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::after_attempt::after_end;
    use crate::attempt::Outcome;
    use crate::ids::AttemptNo;
    use crate::retry::RetryPolicy;
    use crate::schedule::{Once, Schedule};
    use crate::time::{Span, Timestamp};

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn any_on_failure() -> impl Strategy<Value = OnFailure> {
        prop_oneof![
            Just(OnFailure::None),
            Just(OnFailure::DeadLetter),
            (1..=OnFailure::AFTER_MAX, proptest::option::of("[a-z ]{0,9}"))
                .prop_map(|(after, note)| OnFailure::Pause { after, note }),
        ]
    }

    fn any_again() -> impl Strategy<Value = RetryHint> {
        prop_oneof![
            Just(RetryHint::ByPolicy),
            Just(RetryHint::Never),
            (0_u64..9999).prop_map(|secs| RetryHint::NotBefore(Span::from_secs(secs))),
        ]
    }

    proptest! {
        #[test]
        fn only_the_last_failure_of_a_run_has_a_hook(
            on_failure in any_on_failure(), again in any_again(), attempt in 0_u16..12,
            max_retries in 0_u16..9, outcome in prop::sample::select(&Outcome::ALL[..]),
            draw in 0.0..1.0_f64,
        ) {
            let definition = Definition {
                retry: RetryPolicy { max_retries, ..RetryPolicy::queue() },
                on_failure: on_failure.clone(),
                ..Definition::noop(Schedule::Once(Once::NOW))
            };
            let attempt = AttemptNo(attempt);
            let ended = Ended { attempt, outcome, again, started_at: NOW, finished_at: NOW };
            let then = after_end(&definition, ended, draw);
            let hook = hook_of(&definition, &ended, then);
            let is_last = attempt.0 >= max_retries || again == RetryHint::Never;
            let failed = matches!(outcome, Outcome::Failed | Outcome::TimedOut);
            let expected = match on_failure {
                _ if !(failed && is_last) => Hook::None,
                OnFailure::None => Hook::None,
                OnFailure::Pause { after, .. } => Hook::CountFailure { pause_after: after },
                OnFailure::DeadLetter if attempt.0 >= max_retries => {
                    Hook::DeadLetter(DeathReason::RetriesExhausted)
                }
                OnFailure::DeadLetter => Hook::DeadLetter(DeathReason::NotRetryable),
            };
            prop_assert_eq!(hook, expected);
        }

        #[test]
        fn job_is_paused_after_the_configured_number_of_failures(
            on_failure in any_on_failure(), failures in 0_u32..2000,
        ) {
            let paused = pause_note(&on_failure, failures);
            match &on_failure {
                OnFailure::Pause { after, note } => {
                    prop_assert_eq!(paused.is_some(), failures >= u32::from(*after));
                    if let (Some(said), Some(note)) = (&paused, note) {
                        prop_assert!(said.ends_with(note.as_str()));
                    }
                }
                _ => prop_assert_eq!(paused, None),
            }
        }

        #[test]
        fn on_failure_reads_back_as_stored(on_failure in any_on_failure()) {
            let stored = serde_json::to_string(&on_failure).unwrap();
            prop_assert_eq!(serde_json::from_str::<OnFailure>(&stored).unwrap(), on_failure);
        }
    }

    #[test]
    fn death_reasons_read_back() {
        for reason in DeathReason::ALL {
            assert_eq!(DeathReason::from_code(reason.code()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        assert_eq!(DeathReason::from_code(3), None);
    }

    #[test]
    fn pause_note_names_the_reason() {
        let pause =
            |after, note: Option<&str>| OnFailure::Pause { after, note: note.map(Into::into) };
        let said = pause_note(&pause(3, Some("ask the shop team")), 3);
        assert_eq!(
            said.as_deref(),
            Some("paused because 3 runs in a row failed: ask the shop team")
        );
        assert_eq!(pause_note(&pause(1, None), 1).as_deref(), Some("paused because a run failed"));
    }
}
