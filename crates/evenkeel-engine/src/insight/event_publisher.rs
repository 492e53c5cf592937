//! Passes on what this node has to tell, while somebody listens.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_store::{Signal, StoreError};
use tracing::debug;

use crate::cluster::node_context::{Backoff, NodeContext, signalled};

/// Events written down at once.
const BATCH: usize = 1000;
/// Between two batches, so that what happens together is told together.
const GAP: Duration = Duration::from_millis(20);
/// What is left at the end has this long.
const LAST: Duration = Duration::from_secs(1);

/// Brings events to the store, and keeps an eye on whether anybody wants them.
pub struct EventPublisher {
    ctx: Arc<NodeContext>,
    looked_at: Option<Duration>,
}

impl EventPublisher {
    /// A relay of this incarnation.
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, looked_at: None }
    }

    /// Looks whether anybody listens, if it is time to, and passes on one batch. Says whether more
    /// waits.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        let now = self.ctx.clock.monotonic();
        let poll = self.ctx.settings.poll;
        // While nobody listens, whatever wakes it is worth a look.
        let is_time = self.looked_at.is_none_or(|then| now.saturating_sub(then) >= poll);
        if is_time || !self.ctx.events.has_listeners() {
            let until = self.ctx.store.listened_until().await?;
            self.looked_at = Some(now);
            self.ctx.events.set_has_listeners(until.is_some_and(|until| until > self.ctx.db_now()));
        }
        publish_batch(&self.ctx).await
    }

    /// Runs until its task is ended: a draining node still has something to tell.
    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut signals = ctx.store.signals().subscribe();
        let mut backoff = Backoff::default();
        loop {
            let wait = match self.run_once().await {
                Ok(more) => {
                    backoff.reset();
                    if more { Duration::ZERO } else { ctx.settings.poll }
                }
                Err(error) => {
                    debug!(error = &error as &dyn std::error::Error, "events wait for the store");
                    tokio::time::sleep(backoff.next()).await;
                    continue;
                }
            };
            tokio::select! {
                biased;
                () = ctx.events.emitted() => tokio::time::sleep(GAP).await,
                () = signalled(&mut signals, Signal::Events) => tokio::time::sleep(GAP).await,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// Passes on one batch. Says whether more waits.
async fn publish_batch(ctx: &NodeContext) -> Result<bool, StoreError> {
    if !ctx.events.has_listeners() {
        return Ok(false);
    }
    let (batch, dropped) = ctx.events.take(BATCH);
    if batch.is_empty() && !dropped {
        return Ok(false);
    }
    let is_full = batch.len() == BATCH;
    if let Err(error) = ctx.store.publish(batch, dropped).await {
        // It may be there or not. Told twice would be worse than told to be missing.
        ctx.events.mark_gap();
        return Err(error);
    }
    Ok(is_full)
}

/// Passes on what is left when the node leaves.
pub async fn publish_rest(ctx: &NodeContext) {
    let all = async { while let Ok(true) = publish_batch(ctx).await {} };
    let _ = tokio::time::timeout(LAST, all).await;
}
