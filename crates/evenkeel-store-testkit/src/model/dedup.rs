//! Deduplication keys.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::dedup::{DedupKey, KeyHolder};
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{DedupClaim, DedupStore, JobState, PrunedDedup, StoreError};

use super::ModelStore;
use super::data::{Data, JobRow, count};

/// The last job that took each deduplication key, and when.
pub(super) type Keys = BTreeMap<(TenantNo, DedupKey), (JobNo, Timestamp)>;

impl Data {
    /// Returns the job that holds the deduplication key and blocks the new job or run.
    pub fn kept_out_by(
        &self,
        tenant: TenantNo,
        wanted: Option<&DedupClaim>,
        now: Timestamp,
    ) -> Option<JobId> {
        let wanted = wanted?;
        let (no, taken_at) = *self.keys.get(&(tenant, wanted.key))?;
        let job = self.find(no)?;
        let holder = KeyHolder {
            state: job.state,
            recurs: job.definition.schedule.recurs(),
            next_at: job.next_at,
            waits: self.waiting_of(no).next().is_some(),
            live: job.live,
            taken_at,
        };
        wanted.is_kept_out(job.id, &holder, now).then_some(job.id)
    }

    /// Makes the job the holder of the deduplication key.
    pub fn take_key(
        &mut self,
        tenant: TenantNo,
        wanted: Option<&DedupClaim>,
        no: JobNo,
        now: Timestamp,
    ) {
        let Some(wanted) = wanted else { return };
        let holder =
            self.keys.get(&(tenant, wanted.key)).and_then(|(holder, _)| self.find(*holder));
        if !holder.is_some_and(|job| wanted.keeps(job.id)) {
            self.keys.insert((tenant, wanted.key), (no, now));
        }
    }

    /// Releases the deduplication key if the job holds it.
    pub fn let_go(&mut self, tenant: TenantNo, key: Option<DedupKey>, no: JobNo) {
        let Some(key) = key.map(|key| (tenant, key)) else { return };
        if self.keys.get(&key).is_some_and(|(holder, _)| *holder == no) {
            self.keys.remove(&key);
        }
    }

    /// Returns the run that replaces a rejected duplicate: a waiting run, else a running run, else
    /// the run at the next scheduled time, else the last run.
    pub fn run_instead(&self, no: JobNo) -> Option<AttemptKey> {
        let job = self.find(no)?;
        let waiting = self.waiting_of(no).map(|(key, _)| key).max();
        let running = self.newest_running(job).map(|(key, _)| key);
        let next = job.next_at.map(|next_at| AttemptKey::regular(no, next_at));
        let last = job.run_links.last().map(|link| AttemptKey {
            sequence: link.sequence,
            ..AttemptKey::regular(no, link.scheduled_at)
        });
        let run = waiting.or(running).or(next).or(last)?;
        Some(run.with_attempt(AttemptNo::FIRST))
    }

    fn prune_dedup(
        &mut self,
        before: Timestamp,
        after: Option<(TenantNo, DedupKey)>,
        limit: u32,
    ) -> PrunedDedup {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let looked: Vec<_> =
            self.keys.range((from, Unbounded)).take(limit as usize).map(|(key, _)| *key).collect();
        let is_left = self.keys.len();
        for key in &looked {
            let (no, taken_at) = self.keys[key];
            let is_done = |job: &JobRow| {
                let is_idle = job.next_at.is_none() && job.live == 0;
                taken_at < before && is_idle && job.state != JobState::Paused
            };
            if self.find(no).is_none_or(|job| job.is_deleted() || is_done(job)) {
                self.keys.remove(key);
            }
        }
        let next = looked.last().copied().filter(|_| looked.len() == limit as usize);
        PrunedDedup { deleted: count(is_left - self.keys.len()), next }
    }
}

#[async_trait]
impl DedupStore for ModelStore {
    async fn prune_dedup(
        &self,
        before: Timestamp,
        after: Option<(TenantNo, DedupKey)>,
        limit: u32,
    ) -> Result<PrunedDedup, StoreError> {
        Ok(self.lock().prune_dedup(before, after, limit))
    }
}
