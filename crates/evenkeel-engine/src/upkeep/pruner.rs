//! Deletes old history in small steps.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{AttemptKey, Span};
use evenkeel_store::{Prune, StoreError};
use tracing::info;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;
use crate::upkeep::dedup_sweeper::DedupSweeper;

/// Delay between steps, so that firing never waits.
const PAUSE: Duration = Duration::from_millis(20);

/// Pages per step; they are larger than runs.
const PAGES_STEP: u32 = 100;

/// Answers to requests with an idempotency key are kept for this long.
const REQUESTS_KEPT: Span = Span::from_secs(24 * 3600);

const SCORES_KEPT: Span = Span::from_secs(90 * 86_400);
/// Rebalance plans that were not applied are kept for this long. They are valid for 15 minutes, and
/// large.
const PLANS_KEPT: Span = Span::from_secs(3600);
const BALANCE_STEP: u32 = 500;

/// Requests per step; their answers may be long.
const REQUESTS_STEP: u32 = 100;
const FAILURES_STEP: u32 = 500;

const DEAD_LETTERS_AGE: Span = Span::from_secs(30 * 86_400);
/// Dead letters kept per tenant.
const DEAD_LETTERS_KEPT: u32 = 10_000;
const DEAD_LETTERS_STEP: u32 = 500;

const KEYS_STEP: u32 = 1000;
/// Steps per round: there may be ten million keys, and pruning of runs must continue meanwhile.
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

    /// Checks one bounded part of the history. Returns whether the round has ended.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        let retention = self.ctx.settings.retention;
        let prune = Prune {
            after: self.at,
            limit: retention.step,
            keep_per_job: retention.per_job,
            keep_since: self.ctx.db_now().saturating_sub(retention.age),
        };
        let pruned = self.ctx.store.prune(prune).await?;
        self.deleted += pruned.forgotten;
        metrics::counter!("evenkeel_runs_forgotten_total").increment(pruned.forgotten);
        self.at = pruned.next;
        let is_over = pruned.next.is_none();
        if is_over {
            self.clear_pages().await?;
            self.prune_requests().await?;
            self.prune_failures().await?;
            self.prune_balance().await?;
            self.prune_dead().await?;
            self.prune_dedup().await?;
        }
        Ok(is_over)
    }

    /// Deletes answers to requests with an idempotency key.
    async fn prune_requests(&self) -> Result<(), StoreError> {
        loop {
            let before = self.ctx.db_now().saturating_sub(REQUESTS_KEPT);
            let forgotten = self.ctx.store.prune_requests(before, REQUESTS_STEP).await?;
            metrics::counter!("evenkeel_requests_forgotten_total").increment(forgotten);
            if forgotten < u64::from(REQUESTS_STEP) || !self.ctx.pause(PAUSE).await {
                return Ok(());
            }
        }
    }

    /// Deletes crawled pages of deleted jobs.
    async fn clear_pages(&self) -> Result<(), StoreError> {
        loop {
            let cleared = self.ctx.store.clear_pages(PAGES_STEP).await?;
            metrics::counter!("evenkeel_pages_forgotten_total").increment(cleared);
            if cleared < u64::from(PAGES_STEP) || !self.ctx.pause(PAUSE).await {
                return Ok(());
            }
        }
    }

    /// Deletes failure groups that have not occurred again for as long as runs are kept.
    async fn prune_failures(&self) -> Result<(), StoreError> {
        let before = self.ctx.db_now().saturating_sub(self.ctx.settings.retention.age);
        loop {
            let forgotten = self.ctx.store.prune_failures(before, FAILURES_STEP).await?;
            if forgotten < u64::from(FAILURES_STEP) || !self.ctx.pause(PAUSE).await {
                return Ok(());
            }
        }
    }

    /// Deletes old balance scores and rebalances.
    async fn prune_balance(&self) -> Result<(), StoreError> {
        loop {
            let now = self.ctx.db_now();
            let (scores, plans) = (now.saturating_sub(SCORES_KEPT), now.saturating_sub(PLANS_KEPT));
            let forgotten = self.ctx.store.prune_balance(scores, plans, BALANCE_STEP).await?;
            if forgotten < u64::from(BALANCE_STEP) || !self.ctx.pause(PAUSE).await {
                return Ok(());
            }
        }
    }

    /// Deletes old dead letters, and those beyond the newest of each tenant.
    async fn prune_dead(&self) -> Result<(), StoreError> {
        loop {
            let before = self.ctx.db_now().saturating_sub(DEAD_LETTERS_AGE);
            let store = &self.ctx.store;
            let forgotten = store.prune_dead(before, DEAD_LETTERS_KEPT, DEAD_LETTERS_STEP).await?;
            metrics::counter!("evenkeel_dead_letters_forgotten_total").increment(forgotten);
            if forgotten < u64::from(DEAD_LETTERS_STEP) || !self.ctx.pause(PAUSE).await {
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
                    let forgotten = std::mem::take(&mut self.deleted);
                    if forgotten > 0 {
                        info!(runs.count = forgotten, "deleted old runs");
                    }
                    ctx.settings.retention.every
                }
                Err(error) => {
                    log_trouble(&error, "pruning failed; will retry");
                    ctx.settings.retention.every
                }
            };
        }
    }
}
