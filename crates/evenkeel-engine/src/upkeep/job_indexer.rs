//! Adds new and changed jobs to the search index.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_store::{Store, StoreError};

use crate::cluster::node_context::{NodeContext, instant_now};
use crate::cluster::store_health::log_trouble;

/// Jobs per step. A step of the SQLite store blocks other writes, so it must be short.
const STEP: u32 = 500;
/// Indexing pauses for this many times the duration of the last step. It thereby takes at most a
/// fifth of the time of the store's writer, even while a client registers a million jobs.
const PAUSE_RATIO: u32 = 4;

/// Indexes jobs of all tenants, on one node of the cluster.
pub struct JobIndexer {
    store: Arc<dyn Store>,
}

impl JobIndexer {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Indexes the next jobs. Returns false if all jobs are indexed.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        self.store.index_jobs(STEP).await
    }

    pub async fn run(self, ctx: Arc<NodeContext>) {
        let poll = ctx.settings.poll;
        let mut wait = poll;
        while ctx.pause(wait).await {
            wait = poll;
            if !ctx.is_housekeeper() {
                continue;
            }
            let started = instant_now();
            match self.run_once().await {
                Ok(true) => wait = pause_after(started.elapsed(), poll),
                Ok(false) => {}
                Err(error) => log_trouble(&error, "updating the search index failed; will retry"),
            }
        }
    }
}

/// Returns the pause after a step that took `step`.
fn pause_after(step: Duration, poll: Duration) -> Duration {
    (step * PAUSE_RATIO).clamp(Duration::from_millis(1), poll.max(Duration::from_millis(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexing_takes_a_fifth_of_the_time() {
        let (ms, poll) = (Duration::from_millis, Duration::from_secs(1));
        assert_eq!(pause_after(ms(20), poll), ms(80));
        assert_eq!(pause_after(ms(0), poll), ms(1));
        assert_eq!(pause_after(ms(900), poll), poll);
        assert_eq!(pause_after(ms(900), ms(0)), ms(1));
    }
}
