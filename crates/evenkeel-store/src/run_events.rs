//! Builds the events of runs, for nodes and for the API.

use evenkeel_core::after_attempt::Then;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::on_failure::Hook;
use evenkeel_core::{AttemptKey, TenantNo, Timestamp};
use serde_json::{Value, json};

use crate::{EventJob, EventKind, Finish, FinishResult, NewEvent, Store};

/// Maximum number of error characters in an event. The stored attempt keeps the whole error text.
const ERROR_CHARS_MAX: usize = 500;

/// Removes the dead-letter hook from results for which the store created no dead letter because the
/// run was asked to stop. Events must not report dead letters that do not exist. If the store
/// cannot be queried, the results are not changed.
pub async fn discard_unwritten_dead_letters(
    store: &dyn Store,
    ends: &mut [Finish],
    results: &[FinishResult],
) {
    let mut unchecked: Vec<&mut Finish> = ends
        .iter_mut()
        .zip(results)
        .filter(|(end, results)| {
            **results == FinishResult::Done && matches!(end.hook, Hook::DeadLetter(_))
        })
        .map(|(end, _)| end)
        .collect();
    // Usually no result has a dead-letter hook, so the store is not queried.
    if unchecked.is_empty() {
        return;
    }
    let runs: Vec<AttemptKey> = unchecked.iter().map(|end| end.key).collect();
    let Ok(are_dead) = store.are_dead(&runs).await else { return };
    for (end, is_dead) in unchecked.iter_mut().zip(are_dead) {
        if !is_dead {
            end.hook = Hook::None;
        }
    }
}

fn event_error(end: &Finish) -> Option<String> {
    end.results.error.as_ref().map(|error| error.chars().take(ERROR_CHARS_MAX).collect())
}

impl NewEvent {
    /// Returns an event that is not about an attempt.
    pub fn new(
        kind: EventKind,
        tenant: TenantNo,
        job: EventJob,
        at: Timestamp,
        data: &Value,
    ) -> Self {
        Self { kind, tenant, job, run: None, at, data: data.to_string() }
    }

    pub fn of_run(
        kind: EventKind,
        tenant: TenantNo,
        run: AttemptKey,
        at: Timestamp,
        data: &Value,
    ) -> Self {
        let job = EventJob::No(run.job_no);
        Self { run: Some(run), ..Self::new(kind, tenant, job, at, data) }
    }

    fn run_ended(end: &Finish) -> Self {
        let retry_at = match end.then {
            Then::Retry { due } => Some(due),
            Then::EndRun { .. } => None,
        };
        let mut data = json!({
            "status": AttemptStatus::from(end.outcome),
            "duration_ms": end.finished_at.since(end.started_at).as_millis(),
            "error_message": event_error(end),
            "items_crawled": end.results.items_crawled,
            "items_indexed": end.results.items_indexed,
            "retry_at": retry_at,
        });
        data.as_object_mut().into_iter().for_each(|data| data.retain(|_, it| !it.is_null()));
        Self::of_run(EventKind::RunEnded, end.tenant, end.key, end.finished_at, &data)
    }

    /// Returns the event for a run that has failed and is not retried.
    fn run_exhausted(end: &Finish) -> Option<Self> {
        if !end.outcome.is_failure() || matches!(end.then, Then::Retry { .. }) {
            return None;
        }
        let data = json!({
            "status": AttemptStatus::from(end.outcome),
            "attempts": u32::from(end.key.attempt.0) + 1,
            "error_message": event_error(end),
        });
        let (tenant, at) = (end.tenant, end.finished_at);
        Some(Self::of_run(EventKind::RunExhausted, tenant, end.key, at, &data))
    }

    /// Returns the events for the result of an attempt: always `RunEnded`, then `RunExhausted` and
    /// `RunDead` if they apply.
    pub fn of_end(end: &Finish) -> impl Iterator<Item = Self> + use<> {
        let dead = match end.hook {
            Hook::DeadLetter(reason) => {
                let data = json!({"reason": reason, "status": AttemptStatus::from(end.outcome)});
                let (tenant, at) = (end.tenant, end.finished_at);
                Some(Self::of_run(EventKind::RunDead, tenant, end.key, at, &data))
            }
            Hook::None | Hook::CountFailure { .. } => None,
        };
        [Self::run_ended(end)].into_iter().chain(Self::run_exhausted(end)).chain(dead)
    }

    /// Returns the event for an attempt that was cancelled before it started.
    pub fn run_withdrawn(tenant: TenantNo, run: AttemptKey, at: Timestamp) -> Self {
        let data = json!({"status": AttemptStatus::from(Outcome::Cancelled)});
        Self::of_run(EventKind::RunEnded, tenant, run, at, &data)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::lease::Fence;
    use evenkeel_core::on_failure::DeathReason;
    use evenkeel_core::{AttemptNo, JobNo};

    use super::*;
    use crate::{Attachments, Results};

    const AT: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn end(outcome: Outcome, then: Then, hook: Hook) -> Finish {
        let key = AttemptKey { attempt: AttemptNo(2), ..AttemptKey::regular(JobNo(7), AT) };
        Finish {
            key,
            fence: Fence(1),
            tenant: TenantNo(1),
            outcome,
            started_at: AT,
            finished_at: AT,
            results: Results { error: Some("no answer".into()), ..Results::default() },
            then,
            priority: None,
            attachments: Attachments::default(),
            judge: false,
            hook,
            unstored_since: None,
        }
    }

    fn kinds(end: &Finish) -> Vec<&'static str> {
        NewEvent::of_end(end).map(|event| event.kind.as_str()).collect()
    }

    #[test]
    fn an_exhausted_run_is_reported_with_or_without_a_dead_letter() {
        let over = Then::EndRun { stop_job: false, next_at: None };
        for outcome in [Outcome::Failed, Outcome::TimedOut] {
            let plain = end(outcome, over, Hook::None);
            assert_eq!(kinds(&plain), ["run.ended", "run.exhausted"]);
            let told = NewEvent::of_end(&plain).nth(1).unwrap().data;
            let told: Value = serde_json::from_str(&told).unwrap();
            assert_eq!(
                (&told["attempts"], &told["error_message"]),
                (&json!(3), &json!("no answer"))
            );
            let dead = end(outcome, over, Hook::DeadLetter(DeathReason::RetriesExhausted));
            assert_eq!(kinds(&dead), ["run.ended", "run.exhausted", "run.dead"]);
        }
        assert_eq!(
            kinds(&end(Outcome::Failed, Then::Retry { due: AT }, Hook::None)),
            ["run.ended"]
        );
        for outcome in [Outcome::Completed, Outcome::Cancelled, Outcome::Superseded] {
            assert_eq!(kinds(&end(outcome, over, Hook::None)), ["run.ended"]);
        }
    }
}
