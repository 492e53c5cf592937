//! What users reach and the simulation does not: straight to the model.

use std::collections::HashMap;

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::balance::{LoadProfileKey, Placement};
use evenkeel_core::dedup::DedupKey;
use evenkeel_core::{AttemptKey, JobId, JobNo, NodeNo, TenantNo, Timestamp};
use evenkeel_store::*;
use uuid::Uuid;

use super::FaultyStore;

macro_rules! straight {
    ($port:ident { $($verb:ident($($name:ident: $of:ty),*) -> $answer:ty;)* }) => {
        #[async_trait]
        impl $port for FaultyStore {
            $(async fn $verb(&self, $($name: $of),*) -> Result<$answer, StoreError> {
                self.inner.$verb($($name),*).await
            })*
        }
    };
}

straight!(RunStatsStore {
    add_run_stats(node: NodeNo, tallies: Vec<RunStatsDelta>, failures: Vec<FailureDelta>, at: Timestamp) -> ();
    run_totals(scope: &Scope) -> RunTotals;
    list_failures(scope: &Scope, page: PageRequest<FailureCursor>) -> Page<FailureGroup, FailureCursor>;
    prune_failures(before: Timestamp, limit: u32) -> u64;
});

straight!(RequestStore {
    begin_request(scope: &Scope, request: &KeyedRequest, now: Now) -> Begun;
    end_request(scope: &Scope, key: &str, begun_at: Timestamp, answer: Option<Answered>) -> ();
    prune_requests(before: Timestamp, limit: u32) -> u64;
});

straight!(TargetStore {
    create_target(scope: &Scope, target: NewTarget, now: Now) -> CreatedTarget;
    get_targets(scope: &Scope, numbers: &[i64]) -> Vec<Option<Target>>;
    target_urls(scope: &Scope, numbers: &[i64]) -> HashMap<i64, Option<String>>;
    list_targets(scope: &Scope, page: PageRequest<i64>) -> Page<Target, i64>;
    change_target(scope: &Scope, number: i64, if_generation: Option<i32>, fields: TargetFields,
        now: Now) -> ChangedTarget;
    delete_target(scope: &Scope, number: i64, detach: bool) -> DeletedTarget;
    jobs_of_target(scope: &Scope, number: i64, after: Option<JobNo>, limit: u32)
        -> Vec<(JobNo, JobId)>;
    stale_targets(before: Timestamp, after: Option<(TenantNo, i64)>, limit: u32) -> StaleTargets;
});

straight!(BalanceStore {
    load_profiles(after: Option<(TenantNo, LoadProfileKey)>, limit: u32) -> Vec<LoadProfileCount>;
    tenant_load_profiles(scope: &Scope, after: Option<LoadProfileKey>, limit: u32) -> Vec<LoadProfileCount>;
    count_uncounted(limit: u32) -> u32;
    recount_load(after: Option<JobNo>, limit: u32) -> Recounted;
    placements(scope: &Scope, after: Option<JobNo>, limit: u32) -> Vec<Placement>;
    placements_of(scope: &Scope, jobs: &[JobNo]) -> Vec<Placement>;
    plan_rebalance(scope: &Scope, rebalance: Rebalance, parts: Vec<Vec<u8>>) -> ();
    get_rebalance(scope: &Scope, id: Uuid) -> Option<Rebalance>;
    rebalance_part(scope: &Scope, id: Uuid, part: u32) -> Option<RebalancePart>;
    list_rebalances(scope: &Scope, page: PageRequest<(Timestamp, Uuid)>)
        -> Page<Rebalance, (Timestamp, Uuid)>;
    begin_rebalance(scope: &Scope, id: Uuid, silent_before: Timestamp, now: Now)
        -> Option<BeganRebalance>;
    end_rebalance(scope: &Scope, id: Uuid, state: RebalanceState, now: Now) -> Option<Rebalance>;
    move_jobs(scope: &Scope, batch: MoveBatch, now: Now) -> Moved;
    save_score(tenant: TenantNo, score: SavedScore) -> bool;
    scores(scope: &Scope, from: Timestamp, until: Timestamp, limit: u32) -> Vec<SavedScore>;
    prune_balance(scores_before: Timestamp, plans_before: Timestamp, limit: u32) -> u64;
});

straight!(QueueStore {
    queue_depths(limit: u32) -> QueueDepths;
    queue_front(pools: &[String], rows: u32) -> QueueFront;
    reprioritize(aging: Aging, after: Option<AttemptKey>, limit: u32) -> Reprioritized;
});

straight!(LimitStore {
    release_limited(ended: &[Permit], terms: &LimitTerms, now: Now) -> u64;
    release_all_limited(rooms: ReleaseStep, now: Now) -> Released;
    prune_permits(after: Option<Permit>, limit: u32) -> Option<Permit>;
});

straight!(DeadStore {
    list_dead(scope: &Scope, filter: DeadFilter, page: PageRequest<DeadCursor>) -> Page<DeadLetter, DeadCursor>;
    get_dead(scope: &Scope, run: AttemptKey) -> Option<DeadLetter>;
    are_dead(runs: &[AttemptKey]) -> Vec<bool>;
    redrive(scope: &Scope, runs: &[AttemptKey], now: Now) -> Vec<Redriven>;
    delete_dead(scope: &Scope, runs: &[AttemptKey]) -> Vec<bool>;
    prune_dead(before: Timestamp, keep: u32, limit: u32) -> u64;
    list_failing(limit: u32) -> Vec<FailingJob>;
    prune_failing(jobs: &[JobNo]) -> ();
});

straight!(DedupStore {
    prune_dedup(before: Timestamp, after: Option<(TenantNo, DedupKey)>, limit: u32) -> PrunedDedup;
});

straight!(OverrideStore {
    active_attempts(scope: &Scope, job: JobId, limit: u32) -> Vec<LiveAttempt>;
    override_outcome(scope: &Scope, settle: OutcomeOverride) -> OverrideResult;
});

straight!(AccessStore {
    create_key(scope: &Scope, key: NewApiKey, now: Now) -> bool;
    find_key(hash: &KeyHash) -> Option<ApiKey>;
    use_keys(ids: &[Uuid], at: Timestamp) -> ();
    revoke_key(scope: &Scope, id: Uuid, now: Now) -> bool;
    list_keys(scope: &Scope, page: PageRequest<Uuid>) -> Page<ApiKey, Uuid>;
    record_audit(entries: Vec<AuditEntry>) -> ();
    list_audit(scope: &Scope, filter: &AuditFilter, page: PageRequest<AuditCursor>) -> Page<(AuditCursor, AuditEntry), AuditCursor>;
    prune_audit(before: Timestamp, limit: u32) -> u64;
});

straight!(SecretStore {
    put_secret(scope: &Scope, secret: NewSecret, now: Now) -> SecretInfo;
    delete_secret(scope: &Scope, name: &str) -> bool;
    list_secrets(scope: &Scope, page: PageRequest<String>) -> Page<SecretInfo, String>;
    get_secret(scope: &Scope, name: &str) -> Option<SecretInfo>;
    get_secrets(scope: &Scope, names: &[String]) -> Vec<SealedSecret>;
    stale_secrets(scope: &Scope, reach: SecretReach, key_id: &str, after: Option<(TenantNo, String)>, limit: u32) -> Vec<SealedSecret>;
    reseal_secrets(scope: &Scope, reach: SecretReach, secrets: Vec<Reseal>) -> u64;
});

#[async_trait]
impl EventStore for FaultyStore {
    fn events(&self) -> &Events {
        self.inner.events()
    }

    async fn publish(&self, events: Vec<NewEvent>, dropped: bool) -> Result<(), StoreError> {
        self.inner.publish(events, dropped).await
    }

    async fn newest_event(&self) -> Result<EventNo, StoreError> {
        self.inner.newest_event().await
    }

    async fn events_after(
        &self,
        scope: &Scope,
        after: EventNo,
        limit: u32,
    ) -> Result<EventPage, StoreError> {
        self.inner.events_after(scope, after, limit).await
    }

    async fn listen(&self, until: Timestamp) -> Result<(), StoreError> {
        self.inner.listen(until).await
    }

    async fn listened_until(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.listened_until().await
    }

    async fn job_titles(&self, jobs: &[JobNo]) -> Result<Vec<Option<JobTitle>>, StoreError> {
        self.inner.job_titles(jobs).await
    }
}
