//! Stores how bodies ended, many at a time.

use std::sync::Arc;

use evenkeel_store::{Finish, FinishResult, Results, StoreError};
use tokio::sync::{Mutex, mpsc};
use tracing::{error, warn};

use crate::incarnation::{Backoff, Incarnation};

/// Writes ends in batches: what has come while the last batch was written is the next one.
pub struct Finisher {
    life: Arc<Incarnation>,
    ended: Arc<Mutex<mpsc::UnboundedReceiver<Finish>>>,
    last_batch: usize,
}

impl Finisher {
    /// Takes ends from `ended`, which several finishers may share.
    pub fn new(life: Arc<Incarnation>, ended: Arc<Mutex<mpsc::UnboundedReceiver<Finish>>>) -> Self {
        Self { life, ended, last_batch: 0 }
    }

    /// Waits for ends and stores one batch of them. `None` when no more can come.
    pub async fn run_once(&mut self) -> Option<usize> {
        let batch_max = self.life.store.appetite().batch;
        let mut batch = Vec::new();
        {
            let mut ended = self.ended.lock().await;
            if self.last_batch > 16 && ended.len() < batch_max {
                tokio::time::sleep(self.life.settings.linger).await;
            }
            if ended.recv_many(&mut batch, batch_max).await == 0 {
                return None;
            }
        }
        self.last_batch = batch.len();
        self.store(batch).await;
        Some(self.last_batch)
    }

    /// Stores a batch, waiting out the store for as long as it takes.
    async fn store(&self, batch: Vec<Finish>) {
        let results = match self.try_store(&batch).await {
            Ok(results) => results,
            Err(_) => {
                // One end that the store will never take must not keep the others waiting.
                let mut results = Vec::with_capacity(batch.len());
                for end in &batch {
                    results.push(self.store_alone(end).await);
                }
                results
            }
        };
        self.life.worker.stored(&batch);
        for (finish, result) in batch.iter().zip(results) {
            if result == FinishResult::LeaseLost {
                metrics::counter!("evenkeel_stale_reports_total").increment(1);
                warn!(
                    run.id = %finish.key.execution_id(),
                    run.fence = finish.fence.0,
                    "the end of a run was refused: another node has taken it over"
                );
            }
        }
        count_outcomes(&batch);
    }

    /// Tries until the store answers. An error is its refusal.
    async fn try_store(&self, batch: &[Finish]) -> Result<Vec<FinishResult>, StoreError> {
        let mut backoff = Backoff::default();
        loop {
            let (node, alpha) = (self.life.node, self.life.settings.alpha);
            match self.life.store.finish(node, batch.to_vec(), alpha).await {
                Err(error) if error.is_outage() => {
                    warn!(
                        error = &error as &dyn std::error::Error,
                        runs.count = batch.len(),
                        "ends of runs wait for the store"
                    );
                    tokio::time::sleep(backoff.next()).await;
                }
                answer => return answer,
            }
        }
    }

    /// Stores one end; without its results if the store refuses them.
    async fn store_alone(&self, end: &Finish) -> FinishResult {
        let refusal = match self.try_store(std::slice::from_ref(end)).await {
            Ok(results) => return results.first().copied().unwrap_or(FinishResult::LeaseLost),
            Err(refusal) => refusal,
        };
        error!(
            run.id = %end.key.execution_id(),
            error = &refusal as &dyn std::error::Error,
            "the store refuses the results of a run; it is stored without them"
        );
        let error = Some(format!("its results could not be stored: {refusal}"));
        let bare = Finish { results: Results { error, ..Results::default() }, ..end.clone() };
        match self.try_store(std::slice::from_ref(&bare)).await {
            Ok(results) => results.first().copied().unwrap_or(FinishResult::LeaseLost),
            Err(_) => FinishResult::LeaseLost,
        }
    }

    /// Runs until no more ends can come.
    pub async fn run(mut self) {
        while self.run_once().await.is_some() {}
    }
}

fn count_outcomes(batch: &[Finish]) {
    use evenkeel_core::run::Outcome;
    for (outcome, name) in [
        (Outcome::Completed, "completed"),
        (Outcome::Failed, "failed"),
        (Outcome::TimedOut, "timed_out"),
        (Outcome::Cancelled, "cancelled"),
        (Outcome::PartlyFailed, "partly_failed"),
    ] {
        let count = batch.iter().filter(|finish| finish.outcome == outcome).count();
        if count > 0 {
            metrics::counter!("evenkeel_runs_ended_total", "outcome" => name)
                .increment(count as u64);
        }
    }
}
