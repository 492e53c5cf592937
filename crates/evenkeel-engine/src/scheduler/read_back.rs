//! Asks the store whether a batch of fires was committed, after the answer to this batch was lost.

use evenkeel_core::AttemptKey;
use evenkeel_store::{FireResult, Fired, OwnedAttempt, StoreError};

use super::Scheduler;
use crate::cluster::node_context::Backoff;
use crate::cluster::store_health::log_trouble;

impl Scheduler {
    /// Asks the store whether a batch of fires was committed, until the store answers. For each
    /// batch entry, `claimed` holds the attempt that the entry claims for this node. Batch entries
    /// whose attempt was claimed count as fired. The jobs of other batch entries are loaded again.
    pub(super) async fn read_back(
        &mut self,
        claimed: Vec<Option<AttemptKey>>,
        error: StoreError,
    ) -> Fired {
        log_trouble(&error, "firing due jobs failed; checking which runs were stored nevertheless");
        self.could_not_fire = true;
        if error.unwritable().is_some() {
            let results = vec![FireResult::Stale; claimed.len()];
            return Fired { now: self.ctx.db_now(), results };
        }
        self.ctx.request_reconcile();
        let keys: Vec<AttemptKey> = claimed.iter().flatten().copied().collect();
        let owned = self.owned_of(&keys).await;
        let mut now = self.ctx.db_now();
        let mut result = |key: Option<AttemptKey>| {
            let found = owned.iter().find(|owned| Some(owned.key) == key);
            match found.filter(|owned| !self.ctx.worker.has(owned.key)) {
                Some(owned) => {
                    now = owned.started_at;
                    FireResult::Fired(owned.fence)
                }
                None => FireResult::Stale,
            }
        };
        let results = claimed.into_iter().map(&mut result).collect();
        Fired { now, results }
    }

    /// Returns the attempts in `keys` that this node owns. Retries until the store answers.
    async fn owned_of(&self, keys: &[AttemptKey]) -> Vec<OwnedAttempt> {
        let mut backoff = Backoff::default();
        loop {
            match self.ctx.store.find_owned(self.ctx.node, keys).await {
                Ok(owned) => return owned,
                Err(_) => tokio::time::sleep(backoff.next()).await,
            }
        }
    }
}
