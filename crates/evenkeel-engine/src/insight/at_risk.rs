//! Jobs that may not keep their promise, on their way to the judge.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenkeel_core::JobNo;
use tokio::sync::Notify;

/// More wait where they were noticed.
const COUNT_MAX: usize = 100_000;

/// Filled by whoever notices something, emptied by the judge.
#[derive(Debug, Default)]
pub struct AtRiskJobs {
    jobs: Mutex<BTreeSet<JobNo>>,
    news: Notify,
}

impl AtRiskJobs {
    /// Takes jobs over, as many as there is room for; the others stay where they are.
    pub fn add(&self, jobs: &mut Vec<JobNo>) {
        if jobs.is_empty() {
            return;
        }
        {
            let mut known = self.lock();
            while known.len() < COUNT_MAX
                && let Some(job) = jobs.pop()
            {
                known.insert(job);
            }
        }
        self.news.notify_one();
    }

    /// All that have come, for the judge.
    pub fn take(&self) -> Vec<JobNo> {
        std::mem::take(&mut *self.lock()).into_iter().collect()
    }

    /// Waits until some have come since the last wait.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<JobNo>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_too_much_stays_where_it_was_noticed() {
        let at_risk = AtRiskJobs::default();
        let mut jobs: Vec<JobNo> = (0..COUNT_MAX as i64 + 10).map(JobNo).collect();
        at_risk.add(&mut jobs);
        at_risk.news().await;
        assert_eq!(jobs.len(), 10);
        assert_eq!(at_risk.take().len(), COUNT_MAX);
        at_risk.add(&mut jobs);
        assert_eq!((jobs.len(), at_risk.take().len()), (0, 10));
    }
}
