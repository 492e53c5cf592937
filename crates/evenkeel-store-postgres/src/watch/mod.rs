//! The verbs of the judge, and of those who look at what was judged.

mod judge;
mod list;

use async_trait::async_trait;
use evenkeel_core::{AttemptKey, JobNo, Shard};
use evenkeel_store::{
    AtRisk, AtRiskStore, ConditionCounts, Judgement, Now, OverdueInQueue, Page, PageRequest,
    RiskCursor, RiskFilter, Scope, StoreError, ToJudge,
};

use crate::PostgresStore;

#[async_trait]
impl AtRiskStore for PostgresStore {
    async fn mark_at_risk(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        judge::watch(self, jobs).await
    }

    async fn to_judge(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<ToJudge, StoreError> {
        judge::to_judge(self, shards, limit, now).await
    }

    async fn judge(&self, batch: Vec<Judgement>, now: Now) -> Result<(), StoreError> {
        judge::judge(self, batch, now).await
    }

    async fn overdue_in_queue(
        &self,
        shards: &[Shard],
        after: Option<AttemptKey>,
        limit: u32,
        now: Now,
    ) -> Result<OverdueInQueue, StoreError> {
        judge::overdue_in_queue(self, shards, after, limit, now).await
    }

    async fn condition_counts(&self, scope: &Scope) -> Result<ConditionCounts, StoreError> {
        list::condition_counts(self, scope).await
    }

    async fn all_condition_counts(&self) -> Result<ConditionCounts, StoreError> {
        list::all_condition_counts(self).await
    }

    async fn list_at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Result<Page<AtRisk, RiskCursor>, StoreError> {
        list::list_at_risk(self, scope, filter, page).await
    }
}
