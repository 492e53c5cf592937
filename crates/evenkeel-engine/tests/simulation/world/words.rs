//! What people say about runs that have not ended.

use std::time::Duration;

use evenkeel_core::aging::Aging;
use evenkeel_core::after_attempt::{RetryHint, Ended, after_end};
use evenkeel_core::chance::Chance;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, Span};
use evenkeel_store::{
    AttemptStore, Job, JobStore, LiveAttempt, LiveState, OutcomeOverride, OverrideAction,
    OverrideResult, OverrideStore, QueueEntry, QueueWait, Scope, Signal, Store,
};

use super::World;
use crate::body::Time as _;

/// What was said about a run, and was acknowledged.
#[derive(Copy, Clone, Debug)]
pub struct Word {
    /// About this attempt.
    pub key: AttemptKey,
    /// True time of the answer.
    pub at: Duration,
    /// The right that its worker has no more, if it had one.
    pub lost: Option<u32>,
    /// How it ended by that word, and under which fence; it went back into the queue if it did not.
    pub end: Option<(AttemptStatus, u32)>,
}

/// The body of an attempt that goes back has so long to end before another begins.
const LET_GO: Span = Span::from_secs(5);

impl World {
    /// Says how runs of a job ended, or sends them back, in the middle of it all.
    pub(super) async fn somebody_says(&mut self, scope: &Scope) {
        for _ in 0..self.plan.len() {
            let index = self.chance.bits() as usize % self.plan.len();
            if !self.plan[index].takes_commands() {
                continue;
            }
            let id = self.plan[index].id;
            let Some(job) = self.model.get(scope, id).await.unwrap() else { continue };
            let all = self.model.active_attempts(scope, id, 100).await.unwrap();
            for one in &all {
                self.say(scope, &job, *one).await;
            }
            if !all.is_empty() {
                break;
            }
        }
        if self.chance.bits().is_multiple_of(2) {
            self.model.announce(Signal::Jobs).await.unwrap();
        }
    }

    async fn say(&mut self, scope: &Scope, job: &Job, one: LiveAttempt) {
        let LiveAttempt { key, state: seen, priority } = one;
        let now = self.time.db();
        let runs = matches!(seen, LiveState::Running { .. });
        let verdict = match self.chance.bits() % 4 {
            0 | 1 if runs => {
                let from = now.saturating_add(LET_GO);
                let waited =
                    QueueWait { since: key.scheduled_at, priority, aging: &Aging::default() };
                let definition = &job.definition;
                let average = definition.average(None);
                let ticket = QueueEntry::new(definition, key.scheduled_at, average, from, waited);
                let open_from = ticket.open_from.or(Some(from));
                OverrideAction::Queued(Box::new(QueueEntry { open_from, ..ticket }))
            }
            n => {
                let outcome = if n % 2 == 0 { Outcome::Completed } else { Outcome::Failed };
                let error = outcome.is_failure().then(|| "somebody says so".to_owned());
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
        let settle = OutcomeOverride { key, expected: seen, at: now, action: verdict };
        match self.model.override_outcome(scope, settle).await.unwrap() {
            OverrideResult::Done => {}
            OverrideResult::Stopped if !is_end => return,
            other => panic!("{key:?} was seen a moment ago: {other:?}"),
        }
        let lost = match seen {
            LiveState::Waiting => None,
            LiveState::Running { fence, .. } => Some(fence.0),
        };
        let run = self.model.get_attempt(scope, key).await.unwrap().unwrap();
        let end = is_end.then_some((run.status, run.fence.0));
        self.words.push(Word { key, at: self.time.truth(), lost, end });
    }
}
