//! Stores how bodies ended, many at a time.

use std::sync::Arc;

use evenkeel_store::{Finish, FinishResult, StoreError};
use tokio::sync::{Mutex, mpsc};
use tracing::warn;

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
        let mut backoff = Backoff::default();
        let results = loop {
            let (node, alpha) = (self.life.node, self.life.settings.alpha);
            match self.life.store.finish(node, batch.clone(), alpha).await {
                Ok(results) => break results,
                Err(error) => {
                    let error: &StoreError = &error;
                    warn!(
                        error = error as &dyn std::error::Error,
                        runs.count = batch.len(),
                        "ends of runs wait for the store"
                    );
                    tokio::time::sleep(backoff.next()).await;
                }
            }
        };
        self.life.worker.stored(batch.iter().map(|finish| finish.key));
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
    ] {
        let count = batch.iter().filter(|finish| finish.outcome == outcome).count();
        if count > 0 {
            metrics::counter!("evenkeel_runs_ended_total", "outcome" => name)
                .increment(count as u64);
        }
    }
}
