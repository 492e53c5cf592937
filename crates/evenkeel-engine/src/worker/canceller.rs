//! Cancels running attempts whose cancellation was requested.

use std::sync::Arc;

use evenkeel_executors::CancelReason;
use evenkeel_store::{Cancellation, Signal, StoreError};

use crate::cluster::node_context::{NodeContext, signalled};
use crate::cluster::store_health::log_trouble;

pub struct Canceller {
    pub ctx: Arc<NodeContext>,
}

impl Canceller {
    /// Reads the requested cancellations of this node's attempts, and applies them.
    pub async fn run_once(&self) -> Result<usize, StoreError> {
        let wanted = self.ctx.store.cancellations(self.ctx.node).await?;
        for Cancellation { key, superseded } in &wanted {
            let reason =
                if *superseded { CancelReason::Superseded } else { CancelReason::Requested };
            // The store returns each cancellation repeatedly until its attempt has finished. Only
            // the first call of `cancel` has an effect on a running attempt.
            self.ctx.worker.cancel(*key, reason);
        }
        Ok(wanted.len())
    }

    /// The loop also runs while the node drains, because attempts of a draining node can be
    /// cancelled.
    pub async fn run(self) {
        let mut signals = self.ctx.store.signals().subscribe();
        loop {
            if let Err(error) = self.run_once().await {
                log_trouble(&error, "reading which attempts to cancel failed; will retry");
            }
            let signal = signalled(&mut signals, Signal::Cancel);
            let _ = tokio::time::timeout(self.ctx.settings.poll, signal).await;
        }
    }
}
