//! Events of runs, made in one place: nodes and receivers of calls tell the same.

use evenkeel_core::chain::Then;
use evenkeel_core::on_failure::Hook;
use evenkeel_core::run::{Outcome, RunStatus};
use evenkeel_core::{RunKey, TenantNo, Timestamp};
use serde_json::{Map, Value, json};

use crate::{EventJob, EventKind, Finish, FinishResult, NewEvent, Store};

/// So many characters of an error are told; all that is kept of it is with the execution.
const ERROR_TOLD: usize = 500;

/// Of ends and what became of them, takes back that those which were stored left a dead letter, if
/// they did not: somebody wanted the run ended, and then it is no loss that anybody is to be told of.
/// All are looked for at once. If that cannot be seen, they are told as they were decided.
pub async fn keep_true_letters(store: &dyn Store, ends: &mut [Finish], became: &[FinishResult]) {
    let mut doubtful: Vec<&mut Finish> = ends
        .iter_mut()
        .zip(became)
        .filter(|(end, became)| {
            **became == FinishResult::Done && matches!(end.hook, Hook::DeadLetter(_))
        })
        .map(|(end, _)| end)
        .collect();
    // Mostly there are none, and then nobody is asked.
    if doubtful.is_empty() {
        return;
    }
    let runs: Vec<RunKey> = doubtful.iter().map(|end| end.key).collect();
    let Ok(are_dead) = store.are_dead(&runs).await else { return };
    for (end, is_dead) in doubtful.iter_mut().zip(are_dead) {
        if !is_dead {
            end.hook = Hook::None;
        }
    }
}

impl NewEvent {
    /// Something about an attempt.
    pub fn of_run(
        kind: EventKind,
        tenant: TenantNo,
        run: RunKey,
        at: Timestamp,
        data: &Value,
    ) -> Self {
        let job = EventJob::No(run.job_no);
        Self { kind, tenant, job, run: Some(run), at, data: data.to_string() }
    }

    /// An attempt has ended.
    pub fn run_ended(end: &Finish) -> Self {
        let mut data = Map::new();
        data.insert("status".into(), json!(RunStatus::from(end.outcome)));
        let took = end.finished_at.since(end.started_at);
        data.insert("duration_ms".into(), took.as_millis().into());
        let results = &end.results;
        if let Some(error) = &results.error {
            let told: String = error.chars().take(ERROR_TOLD).collect();
            data.insert("error_message".into(), told.into());
        }
        for (name, count) in
            [("items_crawled", results.items_crawled), ("items_indexed", results.items_indexed)]
        {
            if let Some(count) = count {
                data.insert(name.into(), count.into());
            }
        }
        if let Then::Retry { due } = end.then {
            data.insert("retry_at".into(), json!(due));
        }
        let at = end.finished_at;
        Self::of_run(EventKind::RunEnded, end.tenant, end.key, at, &Value::Object(data))
    }

    /// What is told of an end: that it has ended, and that its run was put on the dead-letter list.
    pub fn of_end(end: &Finish) -> impl Iterator<Item = Self> + use<> {
        let dead = match end.hook {
            Hook::DeadLetter(reason) => {
                let data = json!({"reason": reason, "status": RunStatus::from(end.outcome)});
                let (tenant, at) = (end.tenant, end.finished_at);
                Some(Self::of_run(EventKind::RunDead, tenant, end.key, at, &data))
            }
            Hook::None | Hook::CountFailure { .. } => None,
        };
        [Self::run_ended(end)].into_iter().chain(dead)
    }

    /// An attempt was withdrawn before it ran.
    pub fn run_withdrawn(tenant: TenantNo, run: RunKey, at: Timestamp) -> Self {
        let data = json!({"status": RunStatus::from(Outcome::Cancelled)});
        Self::of_run(EventKind::RunEnded, tenant, run, at, &data)
    }
}
