//! Maintains the load that each job counts for: adds jobs that are not counted yet, and updates the
//! cost of a run from measured durations.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::JobNo;
use evenkeel_store::{Store, StoreError};
use tracing::info;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;

/// Jobs added per step.
const COUNTED_STEP: u32 = 1000;
/// Jobs updated per step.
const UPDATED_STEP: u32 = 5000;
/// Delay between steps that add jobs, so that firing never waits.
const PAUSE: Duration = Duration::from_millis(20);
/// Polls between two updating steps: a million jobs take about half an hour.
const POLLS_PER_STEP: u32 = 10;

/// Visits all jobs again and again, on one node of the cluster.
pub struct LoadRecount {
    store: Arc<dyn Store>,
    /// All jobs are counted, as far as is known.
    is_counted: bool,
    counted: u64,
    at: Option<JobNo>,
}

impl LoadRecount {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, is_counted: false, counted: 0, at: None }
    }

    /// Adds or updates some jobs. Returns whether more must be added.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        if !self.is_counted {
            let counted = self.store.count_uncounted(COUNTED_STEP).await?;
            self.counted += u64::from(counted);
            self.is_counted = counted == 0;
            if self.is_counted && self.counted > 0 {
                let counted = std::mem::take(&mut self.counted);
                info!(jobs.count = counted, "counted the load of jobs that were not counted yet");
            }
            return Ok(!self.is_counted);
        }
        let updated = self.store.recount_load(self.at, UPDATED_STEP).await?;
        self.at = updated.next;
        // Nodes of an older version may create more jobs that are not counted.
        self.is_counted = updated.next.is_some();
        Ok(false)
    }

    pub async fn run(mut self, ctx: Arc<NodeContext>) {
        let pace = ctx.settings.poll * POLLS_PER_STEP;
        let mut wait = ctx.settings.poll;
        while ctx.pause(wait).await {
            wait = if ctx.is_housekeeper() {
                match self.run_once().await {
                    Ok(true) => PAUSE,
                    Ok(false) => pace,
                    Err(error) => {
                        log_trouble(&error, "recounting load failed; will retry");
                        pace
                    }
                }
            } else {
                pace
            };
        }
    }
}
