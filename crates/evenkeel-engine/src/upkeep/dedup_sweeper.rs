//! Deletes deduplication keys that are too old to reject a duplicate job.

use evenkeel_core::dedup::{DedupKey, LONGEST_WINDOW};
use evenkeel_core::{Span, TenantNo, Timestamp};
use evenkeel_store::{DedupStore, StoreError};

/// Deduplication keys of finished jobs are kept for the longest deduplication window that a job can
/// set.
const KEYS_KEPT: Span = LONGEST_WINDOW;

/// Checks the deduplication keys of all tenants, a limited number per step. The table of
/// deduplication keys can hold a key for every job created in a year.
#[derive(Debug)]
pub struct DedupSweeper {
    per_step: u32,
    /// Steps per round.
    steps: u32,
    /// Steps left in this round.
    left: u32,
    at: Option<(TenantNo, DedupKey)>,
}

impl DedupSweeper {
    pub const fn new(per_step: u32, steps: u32) -> Self {
        Self { per_step, steps, left: steps, at: None }
    }

    /// Checks `per_step` keys. Returns whether the current round over the deduplication keys
    /// continues. The next round resumes at the deduplication key where this round stopped.
    pub async fn step<S>(&mut self, store: &S, now: Timestamp) -> Result<bool, StoreError>
    where
        S: DedupStore + ?Sized,
    {
        let before = now.saturating_sub(KEYS_KEPT);
        let step = store.prune_dedup(before, self.at, self.per_step).await?;
        self.at = step.next;
        self.left = self.left.saturating_sub(1);
        let goes_on = self.at.is_some() && self.left > 0;
        if !goes_on {
            self.left = self.steps;
        }
        Ok(goes_on)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_core::dedup::{Dedup, DedupScope};
    use evenkeel_core::schedule::{Once, Schedule};
    use evenkeel_core::{About, Definition, JobId};
    use evenkeel_store::{JobStore as _, NewJob, Now, Registered, Role, Scope, Store as _};
    use evenkeel_store_testkit::fixtures::START;
    use evenkeel_store_testkit::model::ModelStore;

    use super::*;

    /// Returns a finished job with the deduplication key `n`.
    fn done(n: u8) -> NewJob {
        let dedup = Dedup { key: n.to_string(), by_target: false, scope: DedupScope::Pending };
        NewJob {
            id: JobId::new(START, [n; 10]),
            about: About { dedup: Some(dedup), ..About::default() },
            definition: Definition::noop(Schedule::Once(Once::NOW)),
            next_at: None,
        }
    }

    #[tokio::test]
    async fn round_visits_a_bounded_part_and_the_next_resumes_there() {
        let store = ModelStore::new(Arc::new(|| START));
        let tenant = store.tenant("main").await.unwrap();
        let scope = Scope { tenant, role: Role::Operator };
        let jobs: Vec<NewJob> = (0..11).map(done).collect();
        let made = store.register(&scope, jobs, Now::At(START)).await.unwrap();
        assert!(made.iter().all(|made| matches!(made, Registered::Created { .. })), "{made:?}");
        let left = async || {
            let all = store.prune_dedup(Timestamp::MIN, None, 1_000).await.unwrap();
            assert_eq!((all.deleted, all.next), (0, None));
            let mut left = 0;
            let mut at = None;
            loop {
                let one = store.prune_dedup(Timestamp::MIN, at, 1).await.unwrap();
                at = one.next;
                if at.is_none() {
                    return left;
                }
                left += 1;
            }
        };
        assert_eq!(left().await, 11);
        let mut sweeper = DedupSweeper::new(2, 2);
        let year = START.saturating_add(KEYS_KEPT);
        // Deduplication keys are kept for a year after their job has finished.
        let mut rounds = Vec::new();
        for now in [year, year.saturating_add(Span::from_secs(1))] {
            sweeper.at = None;
            for _ in 0..3 {
                let mut steps = 1;
                while sweeper.step(&store, now).await.unwrap() {
                    steps += 1;
                }
                rounds.push((steps, left().await));
            }
        }
        assert_eq!(rounds, [(2, 11), (2, 11), (2, 11), (2, 7), (2, 3), (2, 0)]);
        assert_eq!(sweeper.at, None);
    }
}
