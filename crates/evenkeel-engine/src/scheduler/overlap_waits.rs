//! Tracks jobs whose next run waits for the end of their active run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel_core::JobNo;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use crate::sync::lock;

/// Maximum number of tracked jobs. The scheduler tries further waiting jobs again only after a
/// delay, like jobs whose active run is on another node.
const COUNT_MAX: usize = 100_000;

/// Schedulers add waiting jobs, and the finisher marks jobs whose run has ended. While no job
/// waits, a finished attempt costs one atomic load.
#[derive(Debug)]
pub struct OverlapWaits {
    /// Waiting jobs. The value is true if the active run has ended since the job began to wait.
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
    pub fn await_end(&self, job: JobNo) {
        let mut jobs = lock(&self.jobs);
        if jobs.len() < COUNT_MAX {
            jobs.insert(job, false);
            self.any.store(true, Ordering::Release);
        }
    }

    pub fn forget(&self, job: JobNo) {
        let mut jobs = lock(&self.jobs);
        jobs.remove(&job);
        self.any.store(!jobs.is_empty(), Ordering::Release);
    }

    /// Marks waiting jobs whose active run has ended, after the result of this run was stored.
    pub fn ended(&self, ended: impl Iterator<Item = JobNo>) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut found = false;
        {
            let mut jobs = lock(&self.jobs);
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

    /// Removes and returns the waiting jobs for which `mine` is true and whose active run has
    /// ended.
    pub fn take_ended(&self, mine: impl Fn(JobNo) -> bool) -> Vec<JobNo> {
        if !self.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut jobs = lock(&self.jobs);
        let ended: Vec<JobNo> =
            jobs.iter().filter(|(job, over)| **over && mine(**job)).map(|(job, _)| *job).collect();
        for job in &ended {
            jobs.remove(job);
        }
        self.any.store(!jobs.is_empty(), Ordering::Release);
        ended
    }

    /// Returns a channel that changes whenever the active run of a waiting job has ended.
    pub fn ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
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
