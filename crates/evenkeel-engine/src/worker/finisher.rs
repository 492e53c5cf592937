//! Stores the results of finished attempts in batches.

use std::sync::Arc;

use evenkeel_core::{Span, Timestamp};
use evenkeel_store::{
    Attachments, CheckpointDisposition, Finish, FinishResult, Results, Signal, StoreError, Then,
    discard_unwritten_dead_letters,
};
use tokio::sync::{Mutex, mpsc};
use tracing::{error, warn};

use crate::cluster::node_context::{Backoff, NodeContext};
use crate::cluster::store_health::log_trouble;
use crate::settings::LINGER_FROM;
use crate::worker::recorder::BATCH_BYTES_MAX;

/// Stores the results of attempts in batches. Results that arrive while a batch is being stored
/// form the next batch.
pub struct Finisher {
    ctx: Arc<NodeContext>,
    ended: Arc<Mutex<mpsc::UnboundedReceiver<Finish>>>,
    last_batch: usize,
}

impl Finisher {
    /// Several finishers may receive results from the same channel `ended`.
    pub fn new(ctx: Arc<NodeContext>, ended: Arc<Mutex<mpsc::UnboundedReceiver<Finish>>>) -> Self {
        Self { ctx, ended, last_batch: 0 }
    }

    /// Waits for results of attempts and stores one batch. Returns `None` if the channel of results
    /// is closed.
    pub async fn run_once(&mut self) -> Option<usize> {
        let batch_max = self.ctx.store.batch_sizing().batch;
        let mut batch = Vec::new();
        {
            let mut ended = self.ended.lock().await;
            if self.last_batch >= LINGER_FROM && ended.len() < batch_max {
                tokio::time::sleep(self.ctx.settings.linger).await;
            }
            if ended.recv_many(&mut batch, batch_max).await == 0 {
                return None;
            }
        }
        self.last_batch = batch.len();
        for part in by_bytes(batch) {
            self.store(part).await;
        }
        Some(self.last_batch)
    }

    /// Stores a batch of results, and retries for as long as the store is unavailable.
    async fn store(&self, mut batch: Vec<Finish>) {
        let results = match self.try_store(&batch).await {
            Ok(results) => results,
            Err(_) => {
                // A single result that the store refuses must not block the other results of the
                // batch.
                let mut results = Vec::with_capacity(batch.len());
                for end in &batch {
                    results.push(self.store_alone(end).await);
                }
                results
            }
        };
        self.ctx.worker.stats.ended(&batch, &results);
        self.ctx.worker.stored(&batch);
        self.ctx.worker.permits.release(batch.iter().map(|finish| finish.key));
        self.ctx.overlap_waits.ended(batch.iter().map(|finish| finish.key.job_no));
        for (finish, result) in batch.iter().zip(&results) {
            if *result == FinishResult::LeaseLost {
                metrics::counter!("evenkeel_stale_reports_total").increment(1);
                warn!(
                    run.id = %self.ctx.run_ids.attempt_id(finish.key),
                    run.fence = finish.fence.0,
                    "store refused the result of an attempt because another node has taken the attempt over; dropping the result"
                );
            }
        }
        if batch.iter().any(moves_next_time) {
            self.ctx.announce(Signal::Jobs);
        }
        discard_unwritten_dead_letters(&*self.ctx.store, &mut batch, &results).await;
        self.ctx.report_ended(&batch, &results);
    }

    /// Sends a batch of results again until the store answers. An error means that the store
    /// refuses the batch of results.
    async fn try_store(&self, batch: &[Finish]) -> Result<Vec<FinishResult>, StoreError> {
        let mut backoff = Backoff::default();
        loop {
            let (node, alpha) = (self.ctx.node, self.ctx.settings.alpha);
            let mut batch = batch.to_vec();
            mark_late(&mut batch, self.ctx.db_now());
            match self.ctx.store.finish(node, batch, alpha).await {
                Err(error) if error.is_outage() => {
                    log_trouble(&error, "storing finished attempts failed; retrying from memory");
                    tokio::time::sleep(backoff.next()).await;
                }
                answer => return answer,
            }
        }
    }

    /// Stores one result. If the store refuses a result, stores it without output and checkpoint.
    async fn store_alone(&self, end: &Finish) -> FinishResult {
        let refusal = match self.try_store(std::slice::from_ref(end)).await {
            Ok(results) => return results.first().copied().unwrap_or(FinishResult::LeaseLost),
            Err(refusal) => refusal,
        };
        error!(
            run.id = %self.ctx.run_ids.attempt_id(end.key),
            error = &refusal as &dyn std::error::Error,
            "store refuses the output of an attempt; storing its result without output"
        );
        let error = Some(format!("the output could not be stored: {refusal}"));
        let bare = Finish {
            results: Results { error, ..Results::default() },
            attachments: Attachments { checkpoint: CheckpointDisposition::Keep, ..end.attachments },
            ..end.clone()
        };
        match self.try_store(std::slice::from_ref(&bare)).await {
            Ok(results) => results.first().copied().unwrap_or(FinishResult::LeaseLost),
            Err(_) => {
                self.ctx.worker.end_refused(end);
                FinishResult::LeaseLost
            }
        }
    }

    pub async fn run(mut self) {
        while self.run_once().await.is_some() {}
    }
}

/// A result that is stored more than 1 s after the end of its attempt counts as late. Until a
/// result is stored, other nodes count the run as active.
const LATE: Span = Span::from_secs(1);

/// Marks late results. While a result was late, its finished run counted as active in the store, so
/// the store corrects the reason of skip records of the job from that time on.
fn mark_late(batch: &mut [Finish], now: Timestamp) {
    for end in batch {
        let is_late = end.finished_at.saturating_add(LATE) < now;
        end.unstored_since = is_late.then_some(end.finished_at);
    }
}

/// True if the next scheduled time of the job is computed from the time at which this run finished.
fn moves_next_time(end: &Finish) -> bool {
    matches!(end.then, Then::EndRun { next_at: Some(_), .. })
}

/// Splits a batch into parts that are small enough for one SQL statement each. Usually the batch
/// stays whole.
fn by_bytes(batch: Vec<Finish>) -> Vec<Vec<Finish>> {
    let size = |finish: &Finish| {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let checkpoint = match &finish.attachments.checkpoint {
            CheckpointDisposition::Replace(data) => data.len(),
            CheckpointDisposition::Keep | CheckpointDisposition::Delete => 0,
        };
        checkpoint + text(&finish.results.output) + text(&finish.results.error)
    };
    let mut parts = vec![Vec::new()];
    let mut bytes = 0;
    for finish in batch {
        bytes += size(&finish);
        if bytes > BATCH_BYTES_MAX && parts.last().is_some_and(|part: &Vec<_>| !part.is_empty()) {
            bytes = size(&finish);
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(finish);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use evenkeel_core::attempt::Outcome;
    use evenkeel_core::lease::Fence;
    use evenkeel_core::on_failure::Hook;
    use evenkeel_core::{AttemptKey, JobNo, TenantNo};

    use super::*;

    fn end(job: i64, checkpoint: usize) -> Finish {
        let at = Timestamp::from_micros(1);
        Finish {
            key: AttemptKey::regular(JobNo(job), at),
            fence: Fence(1),
            tenant: TenantNo(1),
            outcome: Outcome::Failed,
            started_at: at,
            finished_at: at,
            results: Results::default(),
            then: Then::Retry { due: at },
            priority: None,
            attachments: Attachments {
                has_notes: false,
                checkpoint: CheckpointDisposition::Replace(vec![0; checkpoint]),
            },
            judge: false,
            unstored_since: None,
            hook: Hook::None,
        }
    }

    #[test]
    fn batch_of_large_results_is_split_without_loss() {
        let large = BATCH_BYTES_MAX / 2;
        let sizes =
            |ends: Vec<Finish>| -> Vec<usize> { by_bytes(ends).iter().map(Vec::len).collect() };
        assert_eq!(sizes((0..1000).map(|n| end(n, 0)).collect()), [1000]);
        assert_eq!(sizes((0..5).map(|n| end(n, large)).collect()), [2, 2, 1]);
        assert_eq!(sizes((0..3).map(|n| end(n, 3 * large)).collect()), [1, 1, 1]);
    }
}
