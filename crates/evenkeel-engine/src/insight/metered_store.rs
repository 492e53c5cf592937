//! A store that measures how long its verbs take.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::balance::{LoadProfileKey, Placement};
use evenkeel_core::dedup::DedupKey;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{
    AttemptKey, JobId, JobNo, NodeNo, PageId, Shard, Slot, Span, TenantNo, Timestamp,
};
use evenkeel_store::*;
use uuid::Uuid;

use crate::cluster::node_context::instant_now;
use crate::cluster::store_health::WriteHealth;

/// A store whose verbs are measured by name: how long each took, and how often it failed.
pub struct Metered(Arc<dyn Store>, Arc<WriteHealth>);

/// Every node changes its row by this verb every few seconds, whatever else it does.
const ALWAYS_WRITES: &str = "ping";

impl Metered {
    /// The same store, measured; whether it takes changes is told to `health`.
    pub fn wrap(store: Arc<dyn Store>, health: Arc<WriteHealth>) -> Arc<dyn Store> {
        Arc::new(Self(store, health))
    }
}

async fn measured<T>(
    health: &WriteHealth,
    verb: &'static str,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let began = instant_now();
    let answer = answer.await;
    let ended = instant_now();
    let took = ended.duration_since(began);
    health.answered(answer.as_ref().err(), verb == ALWAYS_WRITES, ended);
    metrics::histogram!("evenkeel_store_verb_seconds", "verb" => verb).record(took);
    if let Err(error) = &answer {
        let kind = if error.is_outage() { "outage" } else { "fault" };
        metrics::counter!("evenkeel_store_errors_total", "verb" => verb, "kind" => kind)
            .increment(1);
    }
    answer
}

macro_rules! metered {
    ($port:ident { $($verb:ident($($name:ident: $of:ty),*) -> $answer:ty;)* }) => {
        #[async_trait]
        impl $port for Metered {
            $(async fn $verb(&self, $($name: $of),*) -> Result<$answer, StoreError> {
                measured(&self.1, stringify!($verb), self.0.$verb($($name),*)).await
            })*
        }
    };
}

metered!(JobStore {
    register(scope: &Scope, jobs: Vec<NewJob>, now: Now) -> Vec<Registered>;
    register_paused(scope: &Scope, job: NewJob, now: Now) -> Registered;
    get(scope: &Scope, id: JobId) -> Option<Job>;
    get_with_now(scope: &Scope, id: JobId) -> Option<(Job, Timestamp)>;
    list_jobs(scope: &Scope, filter: &JobFilter, sort: JobSort, page: PageRequest<JobCursor>)
        -> Page<Job, JobCursor>;
    apply_commands(scope: &Scope, orders: Vec<JobCommand>, now: Now) -> Vec<Applied>;
    purge(scope: &Scope, id: JobId, limit: u32) -> u64;
    get_jobs(scope: &Scope, ids: &[JobId]) -> Vec<Job>;
    ids_of_numbers(scope: &Scope, numbers: &[i64]) -> Vec<Option<JobId>>;
    jobs_named(scope: &Scope, name: &str, limit: u32) -> Vec<NamedJob>;
    job_counts(scope: &Scope) -> JobCounts;
    all_job_counts() -> JobCounts;
    trigger(scope: &Scope, id: JobId, ask: Trigger, now: Now) -> Triggered;
    slot_loads(scope: &Scope, slots: &[Slot], limit: u32) -> Vec<SlotLoad>;
});

metered!(ScheduleStore {
    load_due(shard: Shard, until: Slot, after: Option<JobNo>, limit: u32) -> Vec<DueJob>;
    load_jobs(jobs: &[JobNo]) -> Vec<DueJob>;
    look_ahead(shards: &[Shard], until: Timestamp, limit: u32, now: Now) -> LookAhead;
    fire(node: NodeNo, batch: Vec<Fire>, now: Now) -> Fired;
    fire_delayed(node: NodeNo, batch: Vec<FireDelayed>, now: Now) -> Fired;
    supersede(batch: &[Supersede], now: Now) -> ();
    postpone(batch: &[Postpone]) -> ();
    find_closed_windows(shards: &[Shard], limit: u32, now: Now) -> Vec<ClosedAttempt>;
    set_claim_windows(batch: &[(AttemptKey, ClaimWindow)]) -> ();
});

metered!(ProgressStore {
    save_progress(node: NodeNo, batch: Vec<ProgressNote>, now: Now) -> Vec<bool>;
    find_running(key: AttemptKey) -> Option<Running>;
    send_message(node: NodeNo, letter: NodeMessage) -> ();
    take_messages(node: NodeNo, limit: u32) -> Vec<NodeMessage>;
});

metered!(PageStore {
    known_pages(job: JobNo, pages: &[PageId]) -> Vec<KnownPage>;
    save_pages(shelf: PageQuota, pages: Vec<PageContent>, now: Now) -> Vec<Kept>;
    see_pages(job: JobNo, pages: &[PageId], now: Now) -> ();
    prune_pages(job: JobNo, pages: &[PageId]) -> u64;
    clear_pages(limit: u32) -> u64;
    list_pages(scope: &Scope, filter: &PageFilter, page: PageRequest<PageNo>)
        -> Page<PageHit, PageNo>;
    get_page(scope: &Scope, id: PageId) -> Option<StoredPage>;
});

metered!(AttemptStore {
    cancel_run(scope: &Scope, key: AttemptKey, now: Now) -> RunCancelled;
    claim(claim: &Claim, now: Now) -> Claimed;
    finish(node: NodeNo, batch: Vec<Finish>, alpha: f64) -> Vec<FinishResult>;
    requeue(node: NodeNo, batch: Vec<Requeue>, now: Now) -> Vec<bool>;
    find_owned(node: NodeNo, keys: &[AttemptKey]) -> Vec<OwnedAttempt>;
    list_owned(node: NodeNo, limit: u32) -> Vec<OwnedAttempt>;
    cancellations(node: NodeNo) -> Vec<Cancellation>;
    waiting_attempts(scope: &Scope, job: JobId, ahead: Option<Aging>, now: Now) -> Vec<WaitingAttempt>;
    count_queued(pools: &[String], limit: u32) -> u32;
    count_queued_ahead(pools: &[String], place: QueuePosition, limit: u32, now: Now) -> u32;
    get_attempt(scope: &Scope, key: AttemptKey) -> Option<Attempt>;
    list_attempts(scope: &Scope, filter: AttemptFilter, page: PageRequest<AttemptKey>) -> Page<Attempt, AttemptKey>;
    prune(prune: Prune) -> Pruned;
});

metered!(AtRiskStore {
    mark_at_risk(jobs: &[JobNo]) -> ();
    to_judge(shards: &[Shard], limit: u32, now: Now) -> ToJudge;
    judge(batch: Vec<Judgement>, now: Now) -> ();
    overdue_in_queue(shards: &[Shard], after: Option<AttemptKey>, limit: u32, now: Now) -> OverdueInQueue;
    condition_counts(scope: &Scope) -> ConditionCounts;
    all_condition_counts() -> ConditionCounts;
    list_at_risk(scope: &Scope, filter: RiskFilter, page: PageRequest<RiskCursor>)
        -> Page<AtRisk, RiskCursor>;
});

metered!(NodeStore {
    join(node: &NewNode, now: Now) -> Joined;
    ping(ping: &Ping, now: Now) -> Pinged;
    begin_steal(victim: NodeNo, silent_after: Span, now: Now) -> bool;
    steal(victim: NodeNo, challenged_at: Timestamp, grace: Span, now: Now) -> bool;
    drain(node: NodeNo) -> ();
    retire(node: NodeNo) -> bool;
    members() -> (Timestamp, Vec<Member>);
});

metered!(RunStatsStore {
    add_run_stats(node: NodeNo, tallies: Vec<RunStatsDelta>, failures: Vec<FailureDelta>, at: Timestamp) -> ();
    run_totals(scope: &Scope) -> RunTotals;
    list_failures(scope: &Scope, page: PageRequest<FailureCursor>) -> Page<FailureGroup, FailureCursor>;
    prune_failures(before: Timestamp, limit: u32) -> u64;
});

metered!(RequestStore {
    begin_request(scope: &Scope, request: &KeyedRequest, now: Now) -> Begun;
    end_request(scope: &Scope, key: &str, begun: Timestamp, answer: Option<Answered>) -> ();
    prune_requests(before: Timestamp, limit: u32) -> u64;
});

metered!(TargetStore {
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

metered!(BalanceStore {
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

metered!(QueueStore {
    queue_depths(limit: u32) -> QueueDepths;
    queue_front(pools: &[String], rows: u32) -> QueueFront;
    reprioritize(aging: Aging, after: Option<AttemptKey>, limit: u32) -> Reprioritized;
});

metered!(LimitStore {
    release_limited(ended: &[Permit], terms: &LimitTerms, now: Now) -> u64;
    release_all_limited(rooms: ReleaseStep, now: Now) -> Released;
    prune_permits(after: Option<Permit>, limit: u32) -> Option<Permit>;
});

metered!(DeadStore {
    list_dead(scope: &Scope, filter: DeadFilter, page: PageRequest<DeadCursor>) -> Page<DeadLetter, DeadCursor>;
    get_dead(scope: &Scope, run: AttemptKey) -> Option<DeadLetter>;
    are_dead(runs: &[AttemptKey]) -> Vec<bool>;
    redrive(scope: &Scope, runs: &[AttemptKey], now: Now) -> Vec<Redriven>;
    delete_dead(scope: &Scope, runs: &[AttemptKey]) -> Vec<bool>;
    prune_dead(before: Timestamp, keep: u32, limit: u32) -> u64;
    list_failing(limit: u32) -> Vec<FailingJob>;
    prune_failing(jobs: &[JobNo]) -> ();
});

metered!(DedupStore {
    prune_dedup(before: Timestamp, after: Option<(TenantNo, DedupKey)>, limit: u32) -> PrunedDedup;
});

metered!(OverrideStore {
    active_attempts(scope: &Scope, job: JobId, limit: u32) -> Vec<LiveAttempt>;
    override_outcome(scope: &Scope, settle: OutcomeOverride) -> OverrideResult;
});

metered!(AccessStore {
    create_key(scope: &Scope, key: NewApiKey, now: Now) -> bool;
    find_key(hash: &KeyHash) -> Option<ApiKey>;
    use_keys(ids: &[Uuid], at: Timestamp) -> ();
    revoke_key(scope: &Scope, id: Uuid, now: Now) -> bool;
    list_keys(scope: &Scope, page: PageRequest<Uuid>) -> Page<ApiKey, Uuid>;
    record_audit(entries: Vec<AuditEntry>) -> ();
    list_audit(scope: &Scope, filter: &AuditFilter, page: PageRequest<AuditCursor>) -> Page<(AuditCursor, AuditEntry), AuditCursor>;
    prune_audit(before: Timestamp, limit: u32) -> u64;
});

metered!(SecretStore {
    put_secret(scope: &Scope, secret: NewSecret, now: Now) -> SecretInfo;
    delete_secret(scope: &Scope, name: &str) -> bool;
    list_secrets(scope: &Scope, page: PageRequest<String>) -> Page<SecretInfo, String>;
    get_secret(scope: &Scope, name: &str) -> Option<SecretInfo>;
    get_secrets(scope: &Scope, names: &[String]) -> Vec<SealedSecret>;
    stale_secrets(scope: &Scope, reach: SecretReach, key_id: &str, after: Option<(TenantNo, String)>, limit: u32) -> Vec<SealedSecret>;
    reseal_secrets(scope: &Scope, reach: SecretReach, secrets: Vec<Reseal>) -> u64;
});

#[async_trait]
impl EventStore for Metered {
    fn events(&self) -> &Events {
        self.0.events()
    }

    async fn publish(&self, events: Vec<NewEvent>, dropped: bool) -> Result<(), StoreError> {
        measured(&self.1, "publish", self.0.publish(events, dropped)).await
    }

    async fn newest_event(&self) -> Result<EventNo, StoreError> {
        measured(&self.1, "newest_event", self.0.newest_event()).await
    }

    async fn events_after(
        &self,
        scope: &Scope,
        after: EventNo,
        limit: u32,
    ) -> Result<EventPage, StoreError> {
        measured(&self.1, "events_after", self.0.events_after(scope, after, limit)).await
    }

    async fn listen(&self, until: Timestamp) -> Result<(), StoreError> {
        measured(&self.1, "listen", self.0.listen(until)).await
    }

    async fn listened_until(&self) -> Result<Option<Timestamp>, StoreError> {
        measured(&self.1, "listened_until", self.0.listened_until()).await
    }

    async fn job_titles(&self, jobs: &[JobNo]) -> Result<Vec<Option<JobTitle>>, StoreError> {
        measured(&self.1, "job_titles", self.0.job_titles(jobs)).await
    }
}

#[async_trait]
impl Store for Metered {
    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    fn batch_sizing(&self) -> BatchSizing {
        self.0.batch_sizing()
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        measured(&self.1, "now", self.0.now()).await
    }

    fn signals(&self) -> &Signals {
        self.0.signals()
    }

    async fn announce(&self, signal: Signal) -> Result<(), StoreError> {
        measured(&self.1, "announce", self.0.announce(signal)).await
    }

    async fn tenant(&self, name: &str) -> Result<TenantNo, StoreError> {
        measured(&self.1, "tenant", self.0.tenant(name)).await
    }

    async fn setting(&self, key: &str, fresh: &str) -> Result<String, StoreError> {
        measured(&self.1, "setting", self.0.setting(key, fresh)).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.0.close().await
    }

    async fn census(&self) -> Result<Census, StoreError> {
        measured(&self.1, "census", self.0.census()).await
    }
}
