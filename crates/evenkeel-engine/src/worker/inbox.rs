//! Delivers messages from other nodes to running attempts.

use std::sync::Arc;

use evenkeel_store::{Signal, StoreError};

use crate::cluster::node_context::{NodeContext, signalled};
use crate::cluster::store_health::log_trouble;

/// Messages per query.
const LIMIT: u32 = 1000;

pub struct Inbox {
    pub ctx: Arc<NodeContext>,
}

impl Inbox {
    /// Delivers one batch of messages from the store. Returns whether the store may have more
    /// messages.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let taken = self.ctx.store.take_messages(self.ctx.node, LIMIT).await;
        // If the store's answer was lost, the store may already have deleted the messages. The
        // reconciler finds attempts that are affected by lost messages.
        let messages = taken.inspect_err(|_| self.ctx.request_reconcile())?;
        messages.iter().for_each(|message| self.ctx.worker.deliver(*message));
        Ok(messages.len() >= LIMIT as usize)
    }

    /// The loop also runs while the node drains, because attempts of a draining node receive
    /// messages.
    pub async fn run(self) {
        let mut signals = self.ctx.store.signals().subscribe();
        loop {
            match self.run_once().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    log_trouble(&error, "reading messages of other nodes failed; will retry");
                }
            }
            let signal = signalled(&mut signals, Signal::Messages);
            let _ = tokio::time::timeout(self.ctx.settings.poll, signal).await;
        }
    }
}
