//! Clients override the outcome of active attempts.

use std::time::Duration;

use evenkeel_core::after_attempt::{Ended, RetryHint, after_end};
use evenkeel_core::aging::Aging;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::chance::Chance;
use evenkeel_core::{AttemptKey, Span};
use evenkeel_store::{
    AttemptStore, Job, JobStore, LiveAttempt, LiveState, OutcomeOverride, OverrideAction,
    OverrideResult, OverrideStore, QueueEntry, QueueWait, Scope, Signal, Store,
};

use super::World;
use crate::body::Time as _;

/// An acknowledged override.
#[derive(Copy, Clone, Debug)]
pub struct Override {
    pub key: AttemptKey,
    /// True time of the acknowledgement.
    pub at: Duration,
    /// The fence that the override made invalid, if the attempt was running.
    pub ended_fence: Option<u32>,
    /// The new status and fence of the attempt, or `None` if the attempt was requeued.
    pub end: Option<(AttemptStatus, u32)>,
}

/// Delay before a requeued attempt may start again, so that its old execution can end first.
const OLD_BODY_ENDS_WITHIN: Span = Span::from_secs(5);

impl World {
    /// Overrides the outcomes of all active attempts of a random job, or requeues these attempts.
    pub(super) async fn override_outcomes(&mut self, scope: &Scope) {
        for _ in 0..self.plan.len() {
            let index = self.chance.bits() as usize % self.plan.len();
            if !self.plan[index].accepts_commands() {
                continue;
            }
            let id = self.plan[index].id;
            let Some(job) = self.model.get(scope, id).await.unwrap() else { continue };
            let all = self.model.active_attempts(scope, id, 100).await.unwrap();
            for one in &all {
                self.override_one(scope, &job, *one).await;
            }
            if !all.is_empty() {
                break;
            }
        }
        if self.chance.bits().is_multiple_of(2) {
            self.model.announce(Signal::Jobs).await.unwrap();
        }
    }

    async fn override_one(&mut self, scope: &Scope, job: &Job, one: LiveAttempt) {
        let LiveAttempt { key, state: seen, priority } = one;
        let now = self.time.db();
        let runs = matches!(seen, LiveState::Running { .. });
        let verdict = match self.chance.bits() % 4 {
            0 | 1 if runs => {
                let from = now.saturating_add(OLD_BODY_ENDS_WITHIN);
                let waited =
                    QueueWait { since: key.scheduled_at, priority, aging: &Aging::default() };
                let definition = &job.definition;
                let average = definition.average(None);
                let entry = QueueEntry::new(definition, key.scheduled_at, average, from, waited);
                let open_from = entry.open_from.or(Some(from));
                OverrideAction::Queued(Box::new(QueueEntry { open_from, ..entry }))
            }
            n => {
                let outcome = if n % 2 == 0 { Outcome::Completed } else { Outcome::Failed };
                let error = outcome.is_failure().then(|| "overridden by the simulation".to_owned());
                let ended = Ended {
                    attempt: key.attempt,
                    outcome: Outcome::Cancelled,
                    again: RetryHint::ByPolicy,
                    started_at: now,
                    finished_at: now,
                };
                OverrideAction::Ended {
                    outcome,
                    error,
                    then: after_end(&job.definition, ended, 0.0),
                }
            }
        };
        let is_end = matches!(verdict, OverrideAction::Ended { .. });
        let change = OutcomeOverride { key, expected: seen, at: now, action: verdict };
        match self.model.override_outcome(scope, change).await.unwrap() {
            OverrideResult::Done => {}
            OverrideResult::Stopped if !is_end => return,
            other => panic!("{key:?} was seen a moment ago: {other:?}"),
        }
        let ended_fence = match seen {
            LiveState::Waiting => None,
            LiveState::Running { fence, .. } => Some(fence.0),
        };
        let run = self.model.get_attempt(scope, key).await.unwrap().unwrap();
        let end = is_end.then_some((run.status, run.fence.0));
        self.overrides.push(Override { key, at: self.time.true_time(), ended_fence, end });
    }
}
