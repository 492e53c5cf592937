//! Keeps in order what jobs count for: those from before load was counted are counted, and what a
//! run costs follows what runs take.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::JobNo;
use evenkeel_store::{Store, StoreError};
use tracing::info;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;

/// Jobs counted in one step.
const COUNTED_STEP: u32 = 1000;
/// Jobs weighed in one step.
const WEIGHED_STEP: u32 = 5000;
/// Between two steps while something is to be counted, so that firing never waits.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two other steps, in polls: a million jobs take half an hour.
const POLLS_A_STEP: u32 = 10;

/// Goes round all jobs again and again, on one node of all.
pub struct LoadRecount {
    store: Arc<dyn Store>,
    /// All jobs are counted, as far as known.
    is_counted: bool,
    counted: u64,
    at: Option<JobNo>,
}

impl LoadRecount {
    /// Of the jobs of a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, is_counted: false, counted: 0, at: None }
    }

    /// Counts or weighs some jobs. Says whether more are to be counted.
    pub async fn run_once(&mut self) -> Result<bool, StoreError> {
        if !self.is_counted {
            let counted = self.store.count_uncounted(COUNTED_STEP).await?;
            self.counted += u64::from(counted);
            self.is_counted = counted == 0;
            if self.is_counted && self.counted > 0 {
                let counted = std::mem::take(&mut self.counted);
                info!(jobs.count = counted, "counted the load of {counted} jobs from before");
            }
            return Ok(!self.is_counted);
        }
        let weighed = self.store.recount_load(self.at, WEIGHED_STEP).await?;
        self.at = weighed.next;
        // Nodes of an older version may go on to create what is not counted.
        self.is_counted = weighed.next.is_some();
        Ok(false)
    }

    /// Runs until the node stops.
    pub async fn run(mut self, ctx: Arc<NodeContext>) {
        let pace = ctx.settings.poll * POLLS_A_STEP;
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
