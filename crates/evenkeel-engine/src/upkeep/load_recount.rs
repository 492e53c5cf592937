//! Updates the load that balancing expects from each job, from the measured durations of its runs.

use std::sync::Arc;

use evenkeel_core::JobNo;
use evenkeel_store::{Store, StoreError};

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;

/// Jobs per step.
const STEP: u32 = 5000;
/// Number of poll intervals between two steps, each of which updates the load of 5,000 jobs. With
/// 10 poll intervals of 1 s, a pass over a million jobs takes about half an hour.
const POLLS_PER_STEP: u32 = 10;

/// Updates the load of all jobs of the cluster in an endless loop, on one node of the cluster.
pub struct LoadRecount {
    store: Arc<dyn Store>,
    /// The last job whose load the previous step updated.
    after: Option<JobNo>,
}

impl LoadRecount {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, after: None }
    }

    /// Updates the next jobs.
    pub async fn run_once(&mut self) -> Result<(), StoreError> {
        self.after = self.store.recount_load(self.after, STEP).await?.next;
        Ok(())
    }

    pub async fn run(mut self, ctx: Arc<NodeContext>) {
        let pace = ctx.settings.poll * POLLS_PER_STEP;
        let mut wait = ctx.settings.poll;
        while ctx.pause(wait).await {
            wait = pace;
            if ctx.is_housekeeper()
                && let Err(error) = self.run_once().await
            {
                log_trouble(&error, "updating the expected load of jobs failed; will retry");
            }
        }
    }
}
