//! Finds out whether a batch took effect whose answer was lost.

use evenkeel_core::AttemptKey;
use evenkeel_store::{Fire, FireResult, Fired, Start, StoreError};

use super::Scheduler;
use crate::cluster::node_context::Backoff;
use crate::cluster::store_health::log_trouble;

impl Scheduler {
    /// Asks the store until it answers whether the batch took effect. Attempts that it claimed for
    /// this node are started; all other jobs are reloaded.
    pub(super) async fn read_back(&mut self, batch: &[Fire], error: StoreError) -> Fired {
        log_trouble(&error, "firing failed; reading back what was stored");
        self.could_not_fire = true;
        if error.unwritable().is_some() {
            let results = vec![FireResult::Stale; batch.len()];
            return Fired { now: self.ctx.db_now(), results };
        }
        self.ctx.request_reconcile();
        let keys: Vec<AttemptKey> = batch
            .iter()
            .filter_map(|fire| match fire.start {
                Some((scheduled, Start::Claimed)) => Some(AttemptKey::regular(fire.job, scheduled)),
                Some((_, Start::Queued(_))) | None => None,
            })
            .collect();
        let owned = self.owned_of(&keys).await;
        let mut results = Vec::with_capacity(batch.len());
        let mut now = self.ctx.db_now();
        for fire in batch {
            let key = fire.start.as_ref().map(|(at, _)| AttemptKey::regular(fire.job, *at));
            let found = owned.iter().find(|owned| Some(owned.key) == key);
            now = found.map_or(now, |owned| owned.started_at);
            results.push(match found {
                // The claim was committed, so the copy of the job is as good as after a normal
                // answer.
                Some(owned) if !self.ctx.worker.has(owned.key) => FireResult::Fired(owned.fence),
                Some(_) | None => FireResult::Stale,
            });
        }
        Fired { now, results }
    }

    /// Returns those of `keys` that this node owns. Retries until the store answers.
    pub(super) async fn owned_of(&self, keys: &[AttemptKey]) -> Vec<evenkeel_store::OwnedAttempt> {
        let mut backoff = Backoff::default();
        loop {
            match self.ctx.store.find_owned(self.ctx.node, keys).await {
                Ok(owned) => return owned,
                Err(_) => tokio::time::sleep(backoff.next()).await,
            }
        }
    }
}
