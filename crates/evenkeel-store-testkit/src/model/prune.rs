//! Pruning.

use std::ops::Bound;

use evenkeel_core::AttemptKey;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_store::{Prune, Pruned};

use super::data::{Data, RunRow, count};

impl Data {
    pub fn prune(&mut self, prune: Prune) -> Pruned {
        let after = prune.after.map_or(Bound::Unbounded, Bound::Excluded);
        let limit = prune.limit as usize;
        let looked_at: Vec<AttemptKey> =
            self.runs.range((after, Bound::Unbounded)).take(limit).map(|(key, _)| *key).collect();
        let mut deleted = 0;
        for key in &looked_at {
            let goes = self.runs.get(key).is_some_and(|run| self.is_forgettable(*key, run, &prune));
            if goes {
                self.runs.remove(key);
                deleted += 1;
            }
            self.forget_leftovers(*key);
        }
        let next = looked_at.last().copied().filter(|_| looked_at.len() == limit);
        Pruned { seen: count(looked_at.len()), deleted, next }
    }

    fn is_forgettable(&self, key: AttemptKey, run: &RunRow, prune: &Prune) -> bool {
        let ended = !matches!(run.status, AttemptStatus::Pending | AttemptStatus::Running);
        let Some(job) = self.find(key.job_no).filter(|_| ended) else { return false };
        if job.newest_good == Some(key) || job.newest_failed == Some(key) {
            return false;
        }
        let is_new = |number: u64| number + u64::from(prune.keep_per_job) > job.executions;
        let is_old = run.finished_at.is_some_and(|end| end < prune.keep_since);
        is_old || !run.number.is_none_or(is_new)
    }
}
