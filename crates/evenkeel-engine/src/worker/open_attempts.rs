//! Queries about the open attempts of a worker, which are attempts without a stored result.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::attempt::Loss;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, JobNo, TenantNo, Timestamp};
use evenkeel_store::{LongAttempt, ProgressNote};

use super::Worker;
use crate::sync::lock;
use crate::worker::open_attempt::{AttemptStage, LossInfo, OpenAttempt, note_of, unsaved_note};

impl Worker {
    /// Returns new progress, output and checkpoints of running attempts since the last call, with
    /// their versions.
    pub fn notes(&self) -> Vec<(ProgressNote, u64)> {
        // Progress and output may be long, so they are copied after the lock is released.
        let running: Vec<_> = lock(&self.open)
            .iter()
            .filter(|(_, open)| open.stage == AttemptStage::Running)
            .map(|(key, open)| (*key, open.fence, open.live.clone()))
            .collect();
        running.into_iter().filter_map(|(key, fence, live)| note_of(key, fence, &live)).collect()
    }

    /// Returns the last checkpoint of a lost attempt, unless the checkpoint is known to be stored.
    pub fn lost_checkpoint(&self, key: AttemptKey) -> Option<ProgressNote> {
        let all = lock(&self.open);
        let open = all.get(&key).filter(|open| open.lost().is_some())?;
        unsaved_note(key, open.fence, &open.live)
    }

    /// Records that progress and checkpoint of an attempt are stored up to `version`.
    pub fn noted(&self, key: AttemptKey, fence: Fence, version: u64) {
        if let Some(open) = lock(&self.open).get(&key).filter(|open| open.fence == fence) {
            open.live.checkpoint_saved(version);
        }
    }

    pub fn running(&self) -> Vec<(AttemptKey, Fence)> {
        let all = lock(&self.open);
        let running = all.iter().filter(|(_, open)| open.stage == AttemptStage::Running);
        running.map(|(key, open)| (*key, open.fence)).collect()
    }

    /// True if the attempt runs on this node, or has finished here and its result is about to be
    /// stored.
    pub fn has(&self, key: AttemptKey) -> bool {
        lock(&self.open).get(&key).is_some_and(|open| open.lost().is_none())
    }

    /// Returns why this node lost an attempt, or `None` if the attempt is not lost.
    pub fn lost(&self, key: AttemptKey, fence: Fence) -> Option<LossInfo> {
        let all = lock(&self.open);
        let mut lost = all.get(&key).filter(|open| open.fence == fence)?.lost()?;
        if lost.loss == Loss::StoreUnreachable && self.was_frozen.load(Ordering::Acquire) {
            lost.loss = Loss::NodeFrozen;
        }
        Some(lost)
    }

    /// Returns all lost attempts that are neither requeued nor failed yet.
    pub fn all_lost(&self) -> Vec<(AttemptKey, Fence)> {
        let all = lock(&self.open);
        let lost = all.iter().filter(|(_, open)| open.lost().is_some());
        lost.map(|(key, open)| (*key, open.fence)).collect()
    }

    /// True if an attempt of the job has finished on this node and its result is not stored yet.
    pub fn has_unstored_end(&self, job: JobNo) -> bool {
        let all = lock(&self.open);
        all.iter().any(|(key, open)| key.job_no == job && open.stage == AttemptStage::Ended)
    }

    pub fn open_count(&self) -> usize {
        lock(&self.open).len()
    }

    pub fn running_by_tenant(&self) -> BTreeMap<TenantNo, u32> {
        let mut running = BTreeMap::new();
        for open in lock(&self.open).values().filter(|open| open.stage == AttemptStage::Running) {
            *running.entry(open.tenant()).or_default() += 1;
        }
        running
    }

    /// Returns how long the oldest running attempt has been running.
    pub fn oldest_running(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let open = lock(&self.open);
        let running = open.values().filter(|open| open.stage == AttemptStage::Running);
        running.map(|open| now.saturating_sub(open.since)).max()
    }

    /// Number of open attempts that are not lost.
    pub fn busy_count(&self) -> usize {
        lock(&self.open).values().filter(|open| open.lost().is_none()).count()
    }

    /// Returns the oldest scheduled time of all attempts that have been open for less than
    /// `long_after`.
    pub fn oldest_open(&self, long_after: Duration) -> Option<Timestamp> {
        let now = self.clock.monotonic();
        let short = |open: &OpenAttempt| now.saturating_sub(open.since) < long_after;
        let open = lock(&self.open);
        open.iter().filter(|(_, open)| short(open)).map(|(key, _)| key.scheduled_at).min()
    }

    /// Returns the attempts that have been open for at least `long_after`.
    pub fn long_attempts(&self, long_after: Duration) -> Vec<LongAttempt> {
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
