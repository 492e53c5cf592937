//! Due times that wait for the end of an overlapping run of their job.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use evenkeel_core::JobNo;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use crate::sync::lock;

/// Further waits, and ends on other nodes, are found by trying again after a delay.
const COUNT_MAX: usize = 100_000;

/// Filled by schedulers; the finisher marks ended runs. While no job waits, this costs one atomic
/// load.
#[derive(Debug)]
pub struct OverlapWaits {
    /// Waiting jobs, with whether their run has ended since.
    jobs: Mutex<FxHashMap<JobNo, bool>>,
    any: AtomicBool,
    ends: watch::Sender<u64>,
}

impl Default for OverlapWaits {
    fn default() -> Self {
        Self { jobs: Mutex::default(), any: AtomicBool::new(false), ends: watch::Sender::new(0) }
    }
}

impl OverlapWaits {
    /// Records that a due time of the job waits for the end of a run.
    pub fn await_end(&self, job: JobNo) {
        let mut jobs = self.lock();
        if jobs.len() < COUNT_MAX {
            jobs.insert(job, false);
            self.any.store(true, Ordering::Release);
        }
    }

    pub fn forget(&self, job: JobNo) {
        let mut jobs = self.lock();
        jobs.remove(&job);
        self.any.store(!jobs.is_empty(), Ordering::Release);
    }

    /// Marks jobs of which an attempt has ended and is stored.
    pub fn ended(&self, ended: impl Iterator<Item = JobNo>) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut found = false;
        {
            let mut jobs = self.lock();
            for job in ended {
                if let Some(over) = jobs.get_mut(&job) {
                    (*over, found) = (true, true);
                }
            }
        }
        if found {
            self.ends.send_modify(|count| *count += 1);
        }
    }

    /// Removes and returns the jobs of `mine` whose run has ended.
    pub fn take_ended(&self, mine: impl Fn(JobNo) -> bool) -> Vec<JobNo> {
        if !self.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut jobs = self.lock();
        let ended: Vec<JobNo> =
            jobs.iter().filter(|(job, over)| **over && mine(**job)).map(|(job, _)| *job).collect();
        for job in &ended {
            jobs.remove(job);
        }
        self.any.store(!jobs.is_empty(), Ordering::Release);
        ended
    }

    /// Changes whenever a run has ended for which a due time waits.
    pub fn ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<JobNo, bool>> {
        lock(&self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_job_is_returned_once_after_its_run_ended() {
        let overlap_waits = OverlapWaits::default();
        let mut ends = overlap_waits.ends();
        overlap_waits.ended([JobNo(1)].into_iter());
        overlap_waits.await_end(JobNo(1));
        overlap_waits.await_end(JobNo(2));
        assert!(overlap_waits.take_ended(|_| true).is_empty());
        overlap_waits.ended([JobNo(1), JobNo(2), JobNo(3)].into_iter());
        assert!(ends.has_changed().unwrap());
        ends.mark_unchanged();
        assert_eq!(overlap_waits.take_ended(|job| job == JobNo(2)), [JobNo(2)]);
        assert_eq!(overlap_waits.take_ended(|_| true), [JobNo(1)]);
        assert!(overlap_waits.take_ended(|_| true).is_empty());
    }

    #[test]
    fn forgotten_job_is_not_returned() {
        let overlap_waits = OverlapWaits::default();
        overlap_waits.await_end(JobNo(1));
        overlap_waits.forget(JobNo(1));
        overlap_waits.ended([JobNo(1)].into_iter());
        assert!(overlap_waits.take_ended(|_| true).is_empty());
    }
}
