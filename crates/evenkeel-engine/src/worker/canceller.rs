//! Passes on to running bodies that somebody wants them ended.

use std::sync::Arc;

use evenkeel_executors::CancelReason;
use evenkeel_store::{Cancellation, Signal, StoreError};

use crate::cluster::node_context::{NodeContext, signalled};
use crate::cluster::store_health::log_trouble;

/// Ends bodies on request.
pub struct Canceller {
    ctx: Arc<NodeContext>,
}

impl Canceller {
    /// A canceller of this incarnation.
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx }
    }

    /// Asks the store once what is to end.
    pub async fn run_once(&self) -> Result<usize, StoreError> {
        let wanted = self.ctx.store.cancellations(self.ctx.node).await?;
        for Cancellation { key, superseded } in &wanted {
            let reason =
                if *superseded { CancelReason::Superseded } else { CancelReason::Requested };
            // They are told until they have ended; the body hears it once.
            self.ctx.worker.cancel(*key, reason);
        }
        Ok(wanted.len())
    }

    /// Runs until its task is ended: also a draining node obeys.
    pub async fn run(self) {
        let mut signals = self.ctx.store.signals().subscribe();
        loop {
            if let Err(error) = self.run_once().await {
                log_trouble(&error, "cancellations were not read; will retry");
            }
            tokio::select! {
                biased;
                () = signalled(&mut signals, Signal::Cancel) => {}
                () = tokio::time::sleep(self.ctx.settings.poll) => {}
            }
        }
    }
}
