//! Delivers messages from other nodes to running bodies.

use std::sync::Arc;

use evenkeel_store::{Signal, StoreError};

use crate::cluster::node_context::{NodeContext, signalled};
use crate::cluster::store_health::log_trouble;

/// Messages per query.
const LIMIT: u32 = 1000;

pub struct Inbox {
    ctx: Arc<NodeContext>,
}

impl Inbox {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx }
    }

    /// Delivers waiting messages. Returns whether more may wait.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let taken = self.ctx.store.take_messages(self.ctx.node, LIMIT).await;
        // The store may have removed the messages although the answer was lost; the reconciler
        // detects their effects.
        let messages = taken.inspect_err(|_| self.ctx.request_reconcile())?;
        messages.iter().for_each(|message| self.ctx.worker.deliver(*message));
        Ok(messages.len() >= LIMIT as usize)
    }

    /// Runs until its task is aborted; bodies of a draining node receive messages, too.
    pub async fn run(self) {
        let mut signals = self.ctx.store.signals().subscribe();
        loop {
            match self.run_once().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    log_trouble(&error, "reading node messages failed; will retry");
                }
            }
            tokio::select! {
                biased;
                () = signalled(&mut signals, Signal::Messages) => {}
                () = tokio::time::sleep(self.ctx.settings.poll) => {}
            }
        }
    }
}
