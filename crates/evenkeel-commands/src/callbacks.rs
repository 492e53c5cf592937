//! Handles callbacks: reports of external services about their attempts.

use std::sync::Arc;

use evenkeel_core::after_attempt::{Ended, RetryHint, Then, after_end};
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::chance::Chance;
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::{Hook, hook_of};
use evenkeel_core::secret::{Masks, SecretSource};
use evenkeel_core::{
    AttemptId, AttemptKey, AttemptNo, AttemptTokens, Definition, Progress, RunIds, TenantNo,
};
use evenkeel_store::{
    Attachments, CheckpointDisposition, Finish, FinishResult, MessageKind, NewEvent, NodeMessage,
    Now, ProgressNote, Results, Role, Running, Scope, Signal, Store, StoreError,
    discard_unwritten_dead_letters,
};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::jobs::references;
use crate::{CommandError, Conflict, Result};

/// The outcome of an attempt that an external service reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptReport {
    pub outcome: Outcome,
    /// Error, output and item counts that the service reports.
    pub results: Results,
    /// Whether the run may be retried.
    pub again: RetryHint,
}

/// Accepts callbacks of services that answered the HTTP call of an attempt with 202 and continue to
/// work on the attempt. Each callback must contain the token of the attempt's HTTP call. The token
/// is valid for one attempt, while that attempt is running.
#[derive(Clone)]
pub struct Callbacks {
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    tokens: AttemptTokens,
    run_ids: RunIds,
    alpha: f64,
    permits: Arc<Semaphore>,
    secrets: Option<Arc<dyn SecretSource>>,
}

/// Maximum number of callbacks that are processed at the same time. Callbacks share database
/// connections with the scheduler and the heartbeats, and must not delay either.
const CONCURRENT_REPORTS: usize = 2;

impl Callbacks {
    /// `alpha` is the weight of the newest run in the moving average of a job's run durations.
    pub fn new(
        store: Arc<dyn Store>,
        chance: Arc<dyn Chance>,
        tokens: AttemptTokens,
        run_ids: RunIds,
        alpha: f64,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(CONCURRENT_REPORTS));
        Self { store, chance, tokens, run_ids, alpha, permits, secrets: None }
    }

    /// Masks the values of secrets in reported texts.
    #[must_use]
    pub fn with_secrets(self, secrets: Arc<dyn SecretSource>) -> Self {
        Self { secrets: Some(secrets), ..self }
    }

    /// Masks the values of the job's secrets in the reported `texts`. If a secret can no longer be
    /// read, masks the texts completely.
    async fn mask_secrets<'t>(
        &self,
        tenant: TenantNo,
        definition: &Definition,
        texts: impl Iterator<Item = &'t mut String>,
    ) {
        let Some(source) = &self.secrets else { return };
        let mut names: Vec<String> =
            references(definition).into_iter().map(|found| found.name).collect();
        if names.is_empty() {
            return;
        }
        names.sort_unstable();
        names.dedup();
        let values = source.values(tenant, &names).await;
        let known = values.ok().and_then(|values| values.into_iter().collect::<Option<Vec<_>>>());
        let masks = known.map(|known| Masks::new(known.iter().map(String::as_str)));
        for text in texts {
            match &masks {
                Some(masks) => masks.mask(text),
                None => *text = "***".into(),
            }
        }
    }

    /// Finishes an attempt with the reported outcome. The reported outcome is stored when this
    /// function returns.
    pub async fn end(&self, id: AttemptId, token: &str, report: AttemptReport) -> Result<Then> {
        let (key, fence, running, _permit) = self.find(id, token).await?;
        let definition = definition_of(key, &running)?;
        let attempt = running.attempt;
        let finished_at = self.store.now().await?.max(attempt.started_at);
        let draw = self.chance.unit();
        let AttemptReport { outcome, mut results, again } = report;
        let texts = results.error.iter_mut().chain(&mut results.output);
        self.mask_secrets(attempt.tenant, &definition, texts).await;
        let started_at = attempt.started_at;
        let ended = Ended { attempt: key.attempt, outcome, again, started_at, finished_at };
        let then = after_end(&definition, ended, draw);
        let checkpoint = match then {
            Then::Retry { .. } => CheckpointDisposition::Keep,
            Then::EndRun { .. } => CheckpointDisposition::Delete,
        };
        let finish = Finish {
            key,
            fence,
            tenant: attempt.tenant,
            outcome,
            started_at,
            finished_at,
            results,
            then,
            priority: attempt.priority,
            attachments: Attachments { has_notes: true, checkpoint },
            // The store evaluates the condition of the job at once, even if the attempt succeeded.
            judge: true,
            unstored_since: None,
            hook: hook_of(&definition, &ended, then),
        };
        let finished = finish.clone();
        let results = self.store.finish(running.node, vec![finish], self.alpha).await?;
        if results != [FinishResult::Done] {
            return Err(Conflict::NotRunning.into());
        }
        let mut finished = [finished];
        discard_unwritten_dead_letters(&*self.store, &mut finished, &results).await;
        finished.iter().for_each(|finished| self.publish(finished));
        // If the message about the finished attempt is lost, the node that waits for the callback
        // stops waiting after the attempt's time-out.
        let message = NodeMessage { key, fence, kind: MessageKind::Ended };
        if let Err(error) = self.store.send_message(running.node, message).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not notify a node that its attempt has ended; the node frees the attempt after its time-out"
            );
        }
        if matches!(then, Then::Retry { .. } | Then::EndRun { next_at: Some(_), .. }) {
            let _ = self.store.announce(Signal::Jobs).await;
        }
        Ok(then)
    }

    /// Counts the reported outcome of an attempt in the metrics and publishes its event, as a
    /// worker would do.
    fn publish(&self, end: &Finish) {
        let outcome = AttemptStatus::from(end.outcome).as_str();
        let took = end.finished_at.since(end.started_at).as_micros() as f64 / 1_000_000.0;
        metrics::counter!("evenkeel_runs_ended_total", "outcome" => outcome).increment(1);
        metrics::histogram!("evenkeel_run_duration_seconds", "outcome" => outcome).record(took);
        if matches!(end.then, Then::Retry { .. }) {
            metrics::counter!("evenkeel_retries_total").increment(1);
        }
        if end.outcome.is_success() && end.key.attempt > AttemptNo::FIRST {
            metrics::counter!("evenkeel_runs_succeeded_after_retry_total").increment(1);
        }
        if let Hook::DeadLetter(reason) = end.hook {
            metrics::counter!("evenkeel_dead_letters_total", "reason" => reason.as_str())
                .increment(1);
        }
        if self.store.events().has_listeners() {
            self.store.events().emit(NewEvent::of_end(end));
        }
    }

    /// Restarts the time-out of a running attempt.
    pub async fn heartbeat(&self, id: AttemptId, token: &str) -> Result<()> {
        let (key, fence, running, _permit) = self.find(id, token).await?;
        let message = NodeMessage { key, fence, kind: MessageKind::Heartbeat };
        Ok(self.store.send_message(running.node, message).await?)
    }

    /// Updates the given progress fields of an attempt, saves its checkpoint for the next attempt,
    /// and restarts its time-out.
    pub async fn progress(
        &self,
        id: AttemptId,
        token: &str,
        mut progress: Progress,
        checkpoint: Option<Vec<u8>>,
    ) -> Result<()> {
        let (key, fence, running, _permit) = self.find(id, token).await?;
        let mut checkpoint = checkpoint.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let texts = progress.message.iter_mut().chain(&mut checkpoint);
        let definition = definition_of(key, &running)?;
        self.mask_secrets(running.attempt.tenant, &definition, texts).await;
        let checkpoint = checkpoint.map(String::into_bytes);
        let scope = Scope { tenant: running.attempt.tenant, role: Role::Viewer };
        let shown = self.store.get_attempt(&scope, key).await?;
        let mut saved = shown.and_then(|attempt| attempt.progress).unwrap_or_default();
        saved.update(progress);
        let note = ProgressNote { key, fence, progress: Some(saved), log: None, checkpoint };
        let saved_notes = self.store.save_progress(running.node, vec![note], Now::Database).await?;
        if saved_notes != [true] {
            return Err(Conflict::NotRunning.into());
        }
        let message = NodeMessage { key, fence, kind: MessageKind::Heartbeat };
        let sent = self.store.send_message(running.node, message).await;
        sent.map_err(|error| CommandError::from(error).after(true))
    }

    /// Returns the attempt that a callback token belongs to, and a permit to process the callback.
    /// Returns an error unless the attempt is still running with the fence in the token.
    async fn find(
        &self,
        id: AttemptId,
        token: &str,
    ) -> Result<(AttemptKey, Fence, Running, Option<SemaphorePermit<'_>>)> {
        let key = self.run_ids.key(id);
        let fence = self.tokens.verify(key, token).ok_or(CommandError::BadAttemptToken)?;
        // The semaphore is never closed.
        let permit = self.permits.acquire().await.ok();
        let running = self.store.find_running(key).await?;
        match running {
            Some(running) if running.attempt.fence == fence => Ok((key, fence, running, permit)),
            Some(_) => Err(Conflict::TakenOver.into()),
            None => Err(Conflict::NotRunning.into()),
        }
    }
}

fn definition_of(key: AttemptKey, running: &Running) -> Result<Definition, StoreError> {
    serde_json::from_str(&running.attempt.definition)
        .map_err(|fault| StoreError::corrupt(key.job_no, "definition", fault))
}
