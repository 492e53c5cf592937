//! Collects jobs that may miss their deadline, for the `Judge` loop.

use std::collections::BTreeSet;
use std::sync::Mutex;

use evenkeel_core::JobNo;
use tokio::sync::Notify;

use crate::sync::lock;

/// Maximum number of collected at-risk jobs. Further at-risk jobs stay with the loop that noticed
/// them until the next pass of this loop.
const COUNT_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub struct AtRiskJobs {
    jobs: Mutex<BTreeSet<JobNo>>,
    added: Notify,
}

impl AtRiskJobs {
    /// Moves jobs from `jobs` into the collection of at-risk jobs, as long as they fit.
    pub fn add(&self, jobs: &mut Vec<JobNo>) {
        if jobs.is_empty() {
            return;
        }
        {
            let mut known = lock(&self.jobs);
            while known.len() < COUNT_MAX
                && let Some(job) = jobs.pop()
            {
                known.insert(job);
            }
        }
        self.added.notify_one();
    }

    pub fn take(&self) -> Vec<JobNo> {
        std::mem::take(&mut *lock(&self.jobs)).into_iter().collect()
    }

    /// Waits until at-risk jobs are added. Jobs added since the last wait end the wait at once.
    pub async fn added(&self) {
        self.added.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn jobs_beyond_the_limit_stay_with_the_caller() {
        let at_risk = AtRiskJobs::default();
        let mut jobs: Vec<JobNo> = (0..COUNT_MAX as i64 + 10).map(JobNo).collect();
        at_risk.add(&mut jobs);
        at_risk.added().await;
        assert_eq!(jobs.len(), 10);
        assert_eq!(at_risk.take().len(), COUNT_MAX);
        at_risk.add(&mut jobs);
        assert_eq!((jobs.len(), at_risk.take().len()), (0, 10));
    }
}
