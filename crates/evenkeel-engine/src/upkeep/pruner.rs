//! Deletes old history in small steps.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{AttemptKey, Slot, Span};
use evenkeel_store::{Prune, StoreError};
use tracing::info;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;
use crate::upkeep::dedup_sweeper::DedupSweeper;

/// Delay between two pruning steps, so that firing jobs never waits for pruning.
const PAUSE: Duration = Duration::from_millis(20);

/// Number of crawled pages deleted per step. Only few pages are deleted per step, because stored
/// pages are larger than runs.
const PAGES_STEP: u32 = 100;

/// How long stored answers to requests with an idempotency key are kept.
const REQUESTS_KEPT: Span = Span::from_secs(24 * 3600);

const SCORES_KEPT: Span = Span::from_secs(90 * 86_400);
/// How long rebalance plans that were not applied are kept. A rebalance plan is large and can be
/// applied for only 15 minutes.
const PLANS_KEPT: Span = Span::from_secs(3600);
const BALANCE_STEP: u32 = 500;

/// Number of stored requests with an idempotency key deleted per step. Only few requests are
/// deleted per step, because stored answers to requests may be long.
const REQUESTS_STEP: u32 = 100;
const FAILURES_STEP: u32 = 500;

const ACTIVITY_KEPT: Span = Span::from_secs(90 * 86_400);
const ACTIVITY_STEP: u32 = 500;

const DEAD_LETTERS_AGE: Span = Span::from_secs(30 * 86_400);
/// Maximum number of dead letters kept per tenant.
const DEAD_LETTERS_KEPT: u32 = 10_000;
const DEAD_LETTERS_STEP: u32 = 500;

const KEYS_STEP: u32 = 1000;
/// Maximum number of steps in which one pruning round checks deduplication keys. The store may hold
/// ten million deduplication keys, and pruning of runs must not wait until all keys are checked.
const KEYS_STEPS: u32 = 50;

pub struct Pruner {
    ctx: Arc<NodeContext>,
    at: Option<AttemptKey>,
    deleted: u64,
    keys: DedupSweeper,
}

impl Pruner {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, at: None, deleted: 0, keys: DedupSweeper::new(KEYS_STEP, KEYS_STEPS) }
    }

    /// Checks a limited part of the history for old rows. Returns whether the round over the whole
    /// history has ended.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        let retention = self.ctx.settings.retention;
        let prune = Prune {
            after: self.at,
            limit: retention.step,
            keep_per_job: retention.per_job,
            keep_since: self.ctx.db_now().saturating_sub(retention.age),
        };
        let pruned = self.ctx.store.prune(prune).await?;
        self.deleted += pruned.deleted;
        metrics::counter!("evenkeel_runs_forgotten_total").increment(pruned.deleted);
        self.at = pruned.next;
        let is_over = pruned.next.is_none();
        if is_over {
            self.prune_rest().await?;
            self.prune_dedup().await?;
        }
        Ok(is_over)
    }

    /// Deletes all kinds of old data except runs and deduplication keys.
    async fn prune_rest(&self) -> Result<(), StoreError> {
        let (ctx, store) = (&self.ctx, &*self.ctx.store);
        let before = |kept: Span| ctx.db_now().saturating_sub(kept);
        // Pages of deleted jobs.
        let pages = || store.clear_pages(PAGES_STEP);
        self.repeat(PAGES_STEP, Some("evenkeel_pages_forgotten_total"), pages).await?;
        let requests = || store.prune_requests(before(REQUESTS_KEPT), REQUESTS_STEP);
        self.repeat(REQUESTS_STEP, Some("evenkeel_requests_forgotten_total"), requests).await?;
        // Failure groups are deleted if they have not occurred again for as long as runs are kept.
        let age = ctx.settings.retention.age;
        let failures = || store.prune_failures(before(age), FAILURES_STEP);
        self.repeat(FAILURES_STEP, None, failures).await?;
        let activity = || store.prune_activity(Slot::of(before(ACTIVITY_KEPT)), ACTIVITY_STEP);
        self.repeat(ACTIVITY_STEP, None, activity).await?;
        let balance = || store.prune_balance(before(SCORES_KEPT), before(PLANS_KEPT), BALANCE_STEP);
        self.repeat(BALANCE_STEP, None, balance).await?;
        let dead_letters =
            || store.prune_dead(before(DEAD_LETTERS_AGE), DEAD_LETTERS_KEPT, DEAD_LETTERS_STEP);
        self.repeat(DEAD_LETTERS_STEP, Some("evenkeel_dead_letters_forgotten_total"), dead_letters)
            .await
    }

    /// Repeats a deletion of up to `step` rows until it deletes fewer rows, or the node stops.
    /// Counts the deleted rows in `metric`.
    async fn repeat<F>(
        &self,
        step: u32,
        metric: Option<&'static str>,
        delete: impl Fn() -> F,
    ) -> Result<(), StoreError>
    where
        F: Future<Output = Result<u64, StoreError>>,
    {
        loop {
            let deleted = delete().await?;
            if let Some(metric) = metric {
                metrics::counter!(metric).increment(deleted);
            }
            if deleted < u64::from(step) || !self.ctx.pause(PAUSE).await {
                return Ok(());
            }
        }
    }

    async fn prune_dedup(&mut self) -> Result<(), StoreError> {
        let ctx = Arc::clone(&self.ctx);
        while self.keys.step(&*ctx.store, ctx.db_now()).await? {
            if !ctx.pause(PAUSE).await {
                break;
            }
        }
        Ok(())
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut wait = ctx.settings.retention.every;
        while ctx.pause(wait).await {
            wait = match self.run_once().await {
                Ok(false) => PAUSE,
                Ok(true) => {
                    let deleted = std::mem::take(&mut self.deleted);
                    if deleted > 0 {
                        info!(
                            runs.count = deleted,
                            "deleted old runs, as the retention settings require"
                        );
                    }
                    ctx.settings.retention.every
                }
                Err(error) => {
                    log_trouble(&error, "deleting old history failed; will retry");
                    ctx.settings.retention.every
                }
            };
        }
    }
}
