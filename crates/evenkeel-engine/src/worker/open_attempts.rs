//! What a worker has, for those who look after it.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::lease::Fence;
use evenkeel_core::run::Loss;
use evenkeel_core::{AttemptKey, JobNo, TenantNo, Timestamp};
use evenkeel_store::{LongAttempt, ProgressNote};

use super::{Worker, lock};
use crate::worker::open_attempt::{AttemptStage, LossInfo, OpenAttempt, note_of, unsaved_note};

impl Worker {
    /// What running bodies have said since the last time, each with its version.
    pub fn notes(&self) -> Vec<(ProgressNote, u64)> {
        // What bodies say is copied after the lock is given back: it may be long.
        let running: Vec<_> = lock(&self.open)
            .iter()
            .filter(|(_, open)| open.stage == AttemptStage::Running)
            .map(|(key, open)| (*key, open.fence, open.wire.clone()))
            .collect();
        running.into_iter().filter_map(|(key, fence, wire)| note_of(key, fence, &wire)).collect()
    }

    /// The last checkpoint of an attempt that this node lost, if the store may not have it.
    pub fn lost_checkpoint(&self, key: AttemptKey) -> Option<ProgressNote> {
        let all = lock(&self.open);
        let open = all.get(&key).filter(|open| open.lost().is_some())?;
        unsaved_note(key, open.fence, &open.wire)
    }

    /// The store has what a body said up to this version.
    pub fn noted(&self, key: AttemptKey, fence: Fence, version: u64) {
        if let Some(open) = lock(&self.open).get(&key).filter(|open| open.fence == fence) {
            open.wire.stored(version);
        }
    }

    /// Bodies that run, and the right under which they do.
    pub fn running(&self) -> Vec<(AttemptKey, Fence)> {
        let all = lock(&self.open);
        let running = all.iter().filter(|(_, open)| open.stage == AttemptStage::Running);
        running.map(|(key, open)| (*key, open.fence)).collect()
    }

    /// Does this node run the attempt, or is about to store its end?
    pub fn has(&self, key: AttemptKey) -> bool {
        lock(&self.open).get(&key).is_some_and(|open| open.lost().is_none())
    }

    /// How this node lost an attempt that it had under this fence, if it did.
    pub fn lost(&self, key: AttemptKey, fence: Fence) -> Option<LossInfo> {
        let all = lock(&self.open);
        let mut lost = all.get(&key).filter(|open| open.fence == fence)?.lost()?;
        if lost.loss == Loss::StoreUnreachable && self.was_frozen.load(Ordering::Acquire) {
            lost.loss = Loss::NodeFrozen;
        }
        Some(lost)
    }

    /// All attempts that this node lost and has not given back.
    pub fn all_lost(&self) -> Vec<(AttemptKey, Fence)> {
        let all = lock(&self.open);
        let lost = all.iter().filter(|(_, open)| open.lost().is_some());
        lost.map(|(key, open)| (*key, open.fence)).collect()
    }

    /// Has a body of the job ended here whose end the store does not know?
    pub fn has_unstored_end(&self, job: JobNo) -> bool {
        let all = lock(&self.open);
        all.iter().any(|(key, open)| key.job_no == job && open.stage == AttemptStage::Ended)
    }

    /// Attempts with a body, or with an end that is not stored.
    pub fn open_count(&self) -> usize {
        lock(&self.open).len()
    }

    /// How many bodies run for whom.
    pub fn running_by_tenant(&self) -> BTreeMap<TenantNo, u32> {
        let mut running = BTreeMap::new();
        for open in lock(&self.open).values().filter(|open| open.stage == AttemptStage::Running) {
            *running.entry(open.tenant()).or_default() += 1;
        }
        running
    }

    /// How long the body runs that has run longest.
    pub fn oldest_running(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let open = lock(&self.open);
        let running = open.values().filter(|open| open.stage == AttemptStage::Running);
        running.map(|open| now.saturating_sub(open.since)).max()
    }

    /// Those of them that this node still has something to do for.
    pub fn busy_count(&self) -> usize {
        lock(&self.open).values().filter(|open| open.lost().is_none()).count()
    }

    /// The oldest scheduled time of what is open, long runs aside.
    pub fn oldest_open(&self, long_after: Duration) -> Option<Timestamp> {
        let now = self.clock.monotonic();
        let short = |open: &OpenAttempt| now.saturating_sub(open.since) < long_after;
        let open = lock(&self.open);
        open.iter().filter(|(_, open)| short(open)).map(|(key, _)| key.scheduled_at).min()
    }

    /// What has been open for longer than `long_after`.
    pub fn long_runs(&self, long_after: Duration) -> Vec<LongAttempt> {
        let now = self.clock.monotonic();
        let mut runs: Vec<LongAttempt> = lock(&self.open)
            .iter()
            .filter(|(_, open)| now.saturating_sub(open.since) >= long_after)
            .map(|(key, open)| open.long_run(*key))
            .collect();
        runs.sort_by_key(|run| run.key);
        runs
    }
}
