//! The watch list, on the way to the model.

use async_trait::async_trait;
use evenkeel_core::{AttemptKey, JobNo, Shard};
use evenkeel_store::*;

use super::{FaultyStore, Own, Ref};

#[async_trait]
impl AtRiskStore for FaultyStore {
    async fn mark_at_risk(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        through!(self, mark_at_risk(jobs = Ref(jobs.to_vec())))
    }

    async fn to_judge(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<ToJudge, StoreError> {
        through!(self, to_judge(shards = Ref(shards.to_vec()), limit = Own(limit), now = Own(now)))
    }

    async fn judge(&self, batch: Vec<Judgement>, now: Now) -> Result<(), StoreError> {
        through!(self, judge(batch = Own(batch), now = Own(now)))
    }

    async fn overdue_in_queue(
        &self,
        shards: &[Shard],
        after: Option<AttemptKey>,
        limit: u32,
        now: Now,
    ) -> Result<OverdueInQueue, StoreError> {
        through!(
            self,
            overdue_in_queue(
                shards = Ref(shards.to_vec()),
                after = Own(after),
                limit = Own(limit),
                now = Own(now)
            )
        )
    }

    async fn condition_counts(&self, scope: &Scope) -> Result<ConditionCounts, StoreError> {
        self.inner.condition_counts(scope).await
    }

    async fn all_condition_counts(&self) -> Result<ConditionCounts, StoreError> {
        through!(self, all_condition_counts())
    }

    async fn list_at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Result<Page<AtRisk, RiskCursor>, StoreError> {
        self.inner.list_at_risk(scope, filter, page).await
    }
}
