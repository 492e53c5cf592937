//! Passes on to running bodies what is said to them from afar.

use std::sync::Arc;

use evenkeel_store::{Signal, StoreError};

use crate::cluster::node_context::{NodeContext, signalled};
use crate::cluster::store_health::log_trouble;

/// Letters taken at once.
const LIMIT: u32 = 1000;

/// Fetches the letters for this node's bodies.
pub struct Inbox {
    ctx: Arc<NodeContext>,
}

impl Inbox {
    /// A postman of this incarnation.
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx }
    }

    /// Delivers what has come. Says whether there may be more.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let taken = self.ctx.store.take_messages(self.ctx.node, LIMIT).await;
        // They may be gone from the store all the same: whose bodies they were about is looked up.
        let messages = taken.inspect_err(|_| self.ctx.request_reconcile())?;
        messages.iter().for_each(|message| self.ctx.worker.deliver(*message));
        Ok(messages.len() >= LIMIT as usize)
    }

    /// Runs until its task is ended: bodies of a draining node still want to hear.
    pub async fn run(self) {
        let mut signals = self.ctx.store.signals().subscribe();
        loop {
            match self.run_once().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    log_trouble(&error, "node messages were not read; will retry");
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
