//! What those who were called say about their attempt.

use std::sync::Arc;

use evenkeel_core::chain::{Again, Ended, Then, after_end};
use evenkeel_core::chance::Chance;
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::{Hook, hook_of};
use evenkeel_core::run::{AttemptStatus, Outcome};
use evenkeel_core::secret::{self, Masks, SecretSource};
use evenkeel_core::{
    AttemptId, AttemptKey, AttemptNo, AttemptTokens, Definition, Progress, RunIds, TenantNo,
};
use evenkeel_store::{
    Attachments, CheckpointDisposition, Finish, FinishResult, MessageKind, NewEvent, NodeMessage,
    Now, ProgressNote, Results, Role, Running, Scope, Signal, Store, StoreError,
    discard_unwritten_dead_letters,
};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{CommandError, Conflict};

/// The end of an attempt, as reported from afar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ending {
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong and what it printed, how many items it found and kept.
    pub results: Results,
    /// What it says about trying again.
    pub again: Again,
}

/// Takes words from those who accepted a call and do the work later. Each must show the token that
/// came with the call; it is good for that attempt alone, and only as long as the attempt runs.
#[derive(Clone)]
pub struct Callbacks {
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    tokens: AttemptTokens,
    run_ids: RunIds,
    alpha: f64,
    lane: Arc<Semaphore>,
    secrets: Option<Arc<dyn SecretSource>>,
}

/// So many words are passed on at once. They use what firing and pings use, and a crowd of receivers
/// must not stand in their way.
const LANE: usize = 2;

impl Callbacks {
    /// Callbacks to attempts of `store` with tokens of `tokens`. `alpha` weighs the newest duration
    /// in a job's average.
    pub fn new(
        store: Arc<dyn Store>,
        chance: Arc<dyn Chance>,
        tokens: AttemptTokens,
        run_ids: RunIds,
        alpha: f64,
    ) -> Self {
        let lane = Arc::new(Semaphore::new(LANE));
        Self { store, chance, tokens, run_ids, alpha, lane, secrets: None }
    }

    /// The same, which takes values of secrets out of what receivers report.
    #[must_use]
    pub fn with_secrets(self, secrets: Arc<dyn SecretSource>) -> Self {
        Self { secrets: Some(secrets), ..self }
    }

    /// Hides values of secrets that the attempt was given. If they can't be read any more, all text
    /// is hidden.
    async fn hide<'t>(
        &self,
        tenant: TenantNo,
        definition: &Definition,
        texts: impl Iterator<Item = &'t mut String>,
    ) {
        let (config, payload) = (&definition.executor.config, &definition.payload);
        let Some(source) = &self.secrets else { return };
        if !secret::has_references(config, payload) {
            return;
        }
        let references = secret::references(config, payload);
        let mut names: Vec<String> = references.into_iter().map(|found| found.name).collect();
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

    /// Ends an attempt. When this returns, the end is stored.
    pub async fn end(
        &self,
        id: AttemptId,
        token: &str,
        ending: Ending,
    ) -> Result<Then, CommandError> {
        let (key, fence, running, _turn) = self.find(id, token).await?;
        let definition = definition_of(key, &running)?;
        let attempt = running.attempt;
        let finished_at = self.store.now().await?.max(attempt.started_at);
        let draw = self.chance.unit();
        let Ending { outcome, mut results, again } = ending;
        let texts = results.error.iter_mut().chain(&mut results.output);
        self.hide(attempt.tenant, &definition, texts).await;
        let started_at = attempt.started_at;
        let ended = Ended { attempt: key.attempt, outcome, again, started_at, finished_at };
        let then = after_end(&definition, ended, draw);
        let checkpoint = match then {
            Then::Retry { .. } => CheckpointDisposition::AsIs,
            Then::EndChain { .. } => CheckpointDisposition::Forget,
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
            // Nobody here knows whether it was in time.
            judge: true,
            unstored_since: None,
            hook: hook_of(&definition, &ended, then),
        };
        let told = finish.clone();
        let results = self.store.finish(running.node, vec![finish], self.alpha).await?;
        if results != [FinishResult::Done] {
            return Err(CommandError::Conflict(Conflict::NotRunning));
        }
        let mut told = [told];
        discard_unwritten_dead_letters(&*self.store, &mut told, &results).await;
        told.iter().for_each(|told| self.tell(told));
        // If it gets lost, the node lets the body go when it has been silent for too long.
        let letter = NodeMessage { key, fence, kind: MessageKind::Ended };
        if let Err(error) = self.store.send_message(running.node, letter).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a node was not told");
        }
        if matches!(then, Then::Retry { .. } | Then::EndChain { next_at: Some(_), .. }) {
            let _ = self.store.announce(Signal::Jobs).await;
        }
        Ok(then)
    }

    /// Counts an end, and tells it to those who listen, as the node would have.
    fn tell(&self, end: &Finish) {
        let outcome = AttemptStatus::from(end.outcome).as_str();
        let took = end.finished_at.since(end.started_at).as_micros() as f64 / 1_000_000.0;
        metrics::counter!("evenkeel_runs_ended_total", "outcome" => outcome).increment(1);
        metrics::histogram!("evenkeel_run_duration_seconds", "outcome" => outcome).record(took);
        if matches!(end.then, Then::Retry { .. }) {
            metrics::counter!("evenkeel_retries_total").increment(1);
        }
        if end.outcome.is_good() && end.key.attempt > AttemptNo::FIRST {
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

    /// Says that the work goes on: the job's time-out begins anew.
    pub async fn heartbeat(&self, id: AttemptId, token: &str) -> Result<(), CommandError> {
        let (key, fence, running, _turn) = self.find(id, token).await?;
        let letter = NodeMessage { key, fence, kind: MessageKind::Heartbeat };
        Ok(self.store.send_message(running.node, letter).await?)
    }

    /// Says how far the work has come (what is left out stays as said before), and leaves a checkpoint for the next attempt if there is
    /// one. Counts as a heartbeat.
    pub async fn progress(
        &self,
        id: AttemptId,
        token: &str,
        mut progress: Progress,
        checkpoint: Option<Vec<u8>>,
    ) -> Result<(), CommandError> {
        let (key, fence, running, _turn) = self.find(id, token).await?;
        let mut checkpoint = checkpoint.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let texts = progress.message.iter_mut().chain(&mut checkpoint);
        let definition = definition_of(key, &running)?;
        self.hide(running.attempt.tenant, &definition, texts).await;
        let checkpoint = checkpoint.map(String::into_bytes);
        let scope = Scope { tenant: running.attempt.tenant, role: Role::Viewer };
        let shown = self.store.get_attempt(&scope, key).await?;
        let mut said = shown.and_then(|run| run.progress).unwrap_or_default();
        said.update(progress);
        let note = ProgressNote { key, fence, progress: Some(said), log: None, checkpoint };
        let noted = self.store.save_progress(running.node, vec![note], Now::Database).await?;
        if noted != [true] {
            return Err(CommandError::Conflict(Conflict::NotRunning));
        }
        let letter = NodeMessage { key, fence, kind: MessageKind::Heartbeat };
        let sent = self.store.send_message(running.node, letter).await;
        sent.map_err(|error| CommandError::from(error).after(true))
    }

    /// The attempt a token is for, if it still runs under the token's fence, and one's turn to say
    /// something about it.
    async fn find(
        &self,
        id: AttemptId,
        token: &str,
    ) -> Result<(AttemptKey, Fence, Running, Option<SemaphorePermit<'_>>), CommandError> {
        let key = self.run_ids.key(id);
        let fence = self.tokens.verify(key, token).ok_or(CommandError::BadAttemptToken)?;
        // It is never closed.
        let turn = self.lane.acquire().await.ok();
        let running = self.store.find_running(key).await?;
        match running {
            Some(running) if running.attempt.fence == fence => Ok((key, fence, running, turn)),
            Some(_) => Err(CommandError::Conflict(Conflict::TakenOver)),
            None => Err(CommandError::Conflict(Conflict::NotRunning)),
        }
    }
}

fn definition_of(key: AttemptKey, running: &Running) -> Result<Definition, StoreError> {
    serde_json::from_str(&running.attempt.definition)
        .map_err(|fault| StoreError::corrupt(key.job_no, "definition", fault))
}
