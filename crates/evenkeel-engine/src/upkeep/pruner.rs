//! Forgets old history, a little at a time.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{AttemptKey, Span};
use evenkeel_store::{Prune, StoreError};
use tracing::info;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;
use crate::upkeep::dedup_sweeper::DedupSweeper;

/// Between two steps, so that forgetting never keeps firing waiting.
const PAUSE: Duration = Duration::from_millis(20);

/// Pages forgotten in one step: they are larger than runs.
const PAGES_STEP: u32 = 100;

/// Answers of requests with a key are kept this long.
const REQUESTS_KEPT: Span = Span::from_secs(24 * 3600);

/// Scores of hours are kept this long.
const SCORES_KEPT: Span = Span::from_secs(90 * 86_400);
/// Plans that nobody acted on are kept this long: they are good for 15 minutes, and large.
const PLANS_KEPT: Span = Span::from_secs(3600);
/// Scores and rebalances forgotten in one step.
const BALANCE_STEP: u32 = 500;

/// Requests forgotten in one step: their answers may be long.
const REQUESTS_STEP: u32 = 100;
/// Groups of failures forgotten in one step.
const FAILURES_STEP: u32 = 500;

/// Dead letters are kept this long.
const LETTERS_AGE: Span = Span::from_secs(30 * 86_400);
/// And so many of each tenant.
const LETTERS_KEPT: u32 = 10_000;
/// Dead letters forgotten in one step.
const LETTERS_STEP: u32 = 500;

/// Keys of jobs looked at in one step.
const KEYS_STEP: u32 = 1000;
/// Steps of that in one round: there may be ten million keys, and runs are forgotten meanwhile.
const KEYS_STEPS: u32 = 50;

/// Goes round the history again and again.
pub struct Pruner {
    ctx: Arc<NodeContext>,
    at: Option<AttemptKey>,
    forgotten: u64,
    keys: DedupSweeper,
}

impl Pruner {
    /// A pruner of this incarnation.
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, at: None, forgotten: 0, keys: DedupSweeper::new(KEYS_STEP, KEYS_STEPS) }
    }

    /// Looks at one bounded part of the history. Says whether the round is over.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        let retention = self.ctx.settings.retention;
        let prune = Prune {
            after: self.at,
            limit: retention.step,
            keep_per_job: retention.per_job,
            keep_since: self.ctx.db_now().saturating_sub(retention.age),
        };
        let pruned = self.ctx.store.prune(prune).await?;
        self.forgotten += pruned.forgotten;
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

    /// Forgets how requests with a key were answered, once nobody can be waiting for that.
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

    /// Forgets what crawls of deleted jobs have kept.
    async fn clear_pages(&self) -> Result<(), StoreError> {
        loop {
            let cleared = self.ctx.store.clear_pages(PAGES_STEP).await?;
            metrics::counter!("evenkeel_pages_forgotten_total").increment(cleared);
            if cleared < u64::from(PAGES_STEP) || !self.ctx.pause(PAUSE).await {
                return Ok(());
            }
        }
    }

    /// Forgets failures that have not happened again for as long as runs are kept.
    async fn prune_failures(&self) -> Result<(), StoreError> {
        let before = self.ctx.db_now().saturating_sub(self.ctx.settings.retention.age);
        loop {
            let forgotten = self.ctx.store.prune_failures(before, FAILURES_STEP).await?;
            if forgotten < u64::from(FAILURES_STEP) || !self.ctx.pause(PAUSE).await {
                return Ok(());
            }
        }
    }

    /// Forgets how load was spread long ago, and who moved what.
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

    /// Forgets runs that failed for good long ago, and of each tenant those beyond its newest.
    async fn prune_dead(&self) -> Result<(), StoreError> {
        loop {
            let before = self.ctx.db_now().saturating_sub(LETTERS_AGE);
            let store = &self.ctx.store;
            let forgotten = store.prune_dead(before, LETTERS_KEPT, LETTERS_STEP).await?;
            metrics::counter!("evenkeel_dead_letters_forgotten_total").increment(forgotten);
            if forgotten < u64::from(LETTERS_STEP) || !self.ctx.pause(PAUSE).await {
                return Ok(());
            }
        }
    }

    /// Forgets keys that keep nobody out any more.
    async fn prune_dedup(&mut self) -> Result<(), StoreError> {
        let ctx = Arc::clone(&self.ctx);
        while self.keys.step(&*ctx.store, ctx.db_now()).await? {
            if !ctx.pause(PAUSE).await {
                break;
            }
        }
        Ok(())
    }

    /// Runs until the node stops.
    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut wait = ctx.settings.retention.every;
        while ctx.pause(wait).await {
            wait = match self.run_once().await {
                Ok(false) => PAUSE,
                Ok(true) => {
                    let forgotten = std::mem::take(&mut self.forgotten);
                    if forgotten > 0 {
                        info!(runs.count = forgotten, "forgot {forgotten} old runs");
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
