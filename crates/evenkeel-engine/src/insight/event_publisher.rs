//! Writes this node's events to the store while a client listens to events.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_store::{Signal, StoreError};
use tracing::debug;

use crate::cluster::node_context::{Backoff, NodeContext, signalled};

/// Events per batch.
const BATCH: usize = 1000;
/// Delay before events are written, so that events of the same moment are written together.
const GAP: Duration = Duration::from_millis(20);
/// Time limit for writing the remaining events of a draining node.
const LAST: Duration = Duration::from_secs(1);

pub struct EventPublisher {
    ctx: Arc<NodeContext>,
    listeners_checked_at: Option<Duration>,
}

impl EventPublisher {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, listeners_checked_at: None }
    }

    /// Checks once per poll interval whether a client listens to events, and writes one batch of
    /// events. Returns whether more events wait.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        let now = self.ctx.clock.monotonic();
        let poll = self.ctx.settings.poll;
        // While no client listens to events, every signal causes a check for new listeners.
        let is_time = self.listeners_checked_at.is_none_or(|then| now.saturating_sub(then) >= poll);
        if is_time || !self.ctx.events.has_listeners() {
            let until = self.ctx.store.listened_until().await?;
            self.listeners_checked_at = Some(now);
            self.ctx.events.set_has_listeners(until.is_some_and(|until| until > self.ctx.db_now()));
        }
        publish_batch(&self.ctx).await
    }

    /// The loop also runs while the node drains, because a draining node emits events.
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
                    debug!(
                        error = &error as &dyn std::error::Error,
                        "writing events failed; will retry"
                    );
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

/// Writes one batch of events. Returns whether more events wait.
async fn publish_batch(ctx: &NodeContext) -> Result<bool, StoreError> {
    if !ctx.events.has_listeners() {
        return Ok(false);
    }
    let (batch, dropped) = ctx.events.take(BATCH);
    if batch.is_empty() && !dropped {
        return Ok(false);
    }
    let is_full = batch.len() == BATCH;
    // If the store call fails, it is unknown whether the batch of events was written. Listeners are
    // notified that events are missing, which is better than duplicate events.
    ctx.store.publish(batch, dropped).await.inspect_err(|_| ctx.events.mark_gap())?;
    Ok(is_full)
}

pub async fn publish_rest(ctx: &NodeContext) {
    let all = async { while let Ok(true) = publish_batch(ctx).await {} };
    let _ = tokio::time::timeout(LAST, all).await;
}
