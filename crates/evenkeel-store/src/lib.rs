//! What Evenkeel asks of a database.
//!
//! A verb is one transaction and works on a batch. A store obeys: what is to be done was decided
//! in `evenkeel-core`, and every sentence of a contract here has a case in
//! `evenkeel-store-testkit` that both stores must pass.
//!
//! Verbs that users can reach take a [`Scope`], so that forgetting the tenant does not compile.
//! Every write made for a worker carries its node and [`Fence`](evenkeel_core::lease::Fence); with an
//! old one it changes nothing and says so.

mod access;
mod at_risk;
mod attempts;
mod balance;
mod codes;
mod commands;
mod dead_letters;
mod dedup;
mod error;
mod event_ring;
mod events;
mod jobs;
mod limits;
mod lists;
mod load_profiles;
mod nodes;
mod overrides;
mod page;
mod pages;
mod progress;
mod queue;
mod reprioritize;
mod requests;
mod requeue;
mod row;
mod run_events;
mod run_stats;
mod schedules;
mod scope;
mod secrets;
mod signal;
pub mod statements;
mod targets;
pub mod text;
mod verbs;

pub use access::{
    AUDIT_SCAN_MAX, AccessStore, ApiKey, AuditCursor, AuditEntry, AuditFilter, KeyHash, NewApiKey,
};
pub use at_risk::{
    AtRisk, AtRiskStore, ConditionCounts, JobToJudge, Judgement, OverdueInQueue, RiskCursor,
    RiskFilter, ToJudge,
};
pub use attempts::{
    Attempt, AttemptFilter, AttemptStore, Cancellation, Claim, Claimed, ClaimedAttempt, Finish,
    FinishResult, LISTED_OUTPUT_CHARS, LongAttempt, OwnedAttempt, Prune, Pruned, QueuePosition,
    Results, RunCancelled, WaitingAttempt, WaitsFor,
};
pub use balance::{
    BalanceStore, BeganRebalance, LoadProfileCount, MOVES_MAX, MoveBatch, Moved, NOT_MADE,
    PARTS_FORGOTTEN, REBALANCES_KEPT, Rebalance, RebalancePart, RebalanceState, Recounted,
    SavedScore,
};
pub use codes::{STOPPED_FOR_GOOD, codes, from_code};
pub use commands::{Action, Applied, COMMANDS_MAX, CommandEffect, JobCommand};
pub use dead_letters::{
    DEAD_LETTER_ERROR_MAX, DEAD_LETTERS_MAX, DeadCursor, DeadFilter, DeadLetter, DeadStore,
    FailingJob, Redriven,
};
pub use dedup::{DedupClaim, DedupStore, PrunedDedup};
pub use error::{Cause, StoreError, Unwritable};
pub use evenkeel_core::status::JobState;
pub use event_ring::EventRing;
pub use events::{
    EVENTS_KEPT, Event, EventJob, EventKind, EventNo, EventPage, EventStore, Events, JobTitle,
    NewEvent,
};
pub use jobs::{
    Job, JobChange, JobStore, LAST_ERROR_MAX, NamedJob, NewJob, Registered, SlotLoad, Trigger,
    Triggered,
};
pub use limits::{
    LimitQueue, LimitStore, LimitTerms, Permit, RELEASE_SCAN_MAX, RELEASED_MAX, ReleaseStep,
    Released,
};
pub use lists::{
    Activity, COUNTED_MAX, FindSection, HeldJob, IndexScan, JobCounts, JobCursor, JobFilter,
    JobSort, LABEL_BYTES_MAX, LABELS_MAX, LIST_SCAN_MAX, LIST_SECTIONS, ListIndex, ListPosition,
    ListProbe, ListQuery, ListRow, ListValue, ListedJob, SlotPart, SortBy, labels_of, list_jobs,
    passing_statement, without_waiting,
};
pub use load_profiles::{LoadProfiles, ProfileLoad};
pub use nodes::{Joined, Member, NewNode, NodeState, NodeStore, Ping, Pinged, Roles};
pub use overrides::{
    LiveAttempt, LiveState, OVERRIDE_ALPHA, OutcomeOverride, OverrideAction, OverrideResult,
    OverrideStore,
};
pub use page::{Page, PageRequest};
pub use pages::{
    MARK_END, MARK_START, PageFilter, PageHit, PageNo, PageQuota, PageStore, SEARCH_LIMIT_MAX,
    StoredPage,
};
pub use progress::{
    Attachments, CheckpointDisposition, MessageKind, NodeMessage, ProgressNote, ProgressStore,
    Running,
};
pub use queue::{
    DepthWalk, QUEUE_GROUPS_MAX, QueueDepth, QueueDepths, QueueFront, QueueGroup, QueueStore, TENS,
};
pub use reprioritize::{QueuedAttempt, Reprioritized};
pub use requests::{Answered, Begun, KeyedRequest, RequestStore};
pub use requeue::{AfterLoss, LostEnd, Requeue};
pub use row::{
    attempt_key_from_columns, outcome_from_code, pools_from_text, pools_text, skip_reason_code,
    skip_reason_from_code, sql_time,
};
pub use run_events::discard_unwritten_dead_letters;
pub use run_stats::{
    FailureCursor, FailureDelta, FailureGroup, RunStatsDelta, RunStatsStore, RunTotals,
};
pub use schedules::{
    ClaimWindow, ClosedAttempt, DelayedAttempt, DueJob, Fire, FireDelayed, FireResult, Fired,
    LookAhead, Postpone, QueueEntry, QueueWait, RunLink, ScheduleStore, Start, Supersede,
};
pub use scope::{Role, Scope};
pub use secrets::{NewSecret, Reseal, Sealed, SealedSecret, SecretInfo, SecretReach, SecretStore};
pub use signal::{Signal, Signals};
pub use targets::{
    ChangedTarget, CreatedTarget, DeletedTarget, NewTarget, StaleTarget, StaleTargets, Target,
    TargetFields, TargetStore, is_stale,
};

pub use verbs::{Intercept, Intercepted, OwnedAnswer, OwnedCall, Relay, Relayed, Verb};

pub use evenkeel_core::after_attempt::Then;
pub use evenkeel_core::on_failure::Hook;

use evenkeel_core::{TenantNo, Timestamp};

use verbs::verbs;

/// Which clock says "now": the database's in production, a literal in tests and simulation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Now {
    /// The one clock of the cluster.
    Database,
    /// This moment.
    At(Timestamp),
}

impl Now {
    /// The literal moment, if there is one.
    pub const fn literal(self) -> Option<Timestamp> {
        match self {
            Self::Database => None,
            Self::At(moment) => Some(moment),
        }
    }
}

verbs! {
    /// A database with all its verbs.
    trait Store:
        JobStore,
        ScheduleStore,
        AttemptStore,
        ProgressStore,
        NodeStore,
        PageStore,
        AtRiskStore,
        RunStatsStore,
        RequestStore,
        AccessStore,
        EventStore,
        BalanceStore,
        QueueStore,
        TargetStore,
        DeadStore,
        LimitStore,
        DedupStore,
        OverrideStore,
        SecretStore {
        /// Do several nodes share it? If not, nobody can take a lease over.
        fn is_shared() -> bool;

        /// What it likes best under load.
        fn batch_sizing() -> BatchSizing;

        /// The wake-ups it passes between its users.
        fn signals() -> &Signals;
    }

    /// What its clock says.
    read fn now() -> Timestamp;

    /// Wakes everybody, on this node and on others, who waits for `signal`. It may be lost:
    /// whoever waits also polls.
    read fn announce(signal: Signal) -> ();

    /// The number of the tenant called `name`, which is created if it is new.
    write fn tenant(name: &str) -> TenantNo;

    /// The value kept under `key`: `fresh` if there was none, the same for everyone ever after.
    write fn setting(key: &str, fresh: &str) -> String;

    /// Finishes what was accepted and takes no more changes. A store that is a file has all of it in
    /// that file afterwards.
    write fn close() -> ();

    /// Counts everything, slowly. For benchmarks and tests.
    read fn census() -> Census;
}

/// How a store is best fed under load.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BatchSizing {
    /// Rows in one batch at most.
    pub batch: usize,
    /// Batches of a kind under way at once.
    pub parallel_batches: usize,
}

/// How much of everything there is.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// Jobs that are not deleted.
    pub jobs: u64,
    /// Attempts and skip records in the history.
    pub runs: u64,
    /// Attempts a worker has.
    pub running: u64,
    /// Attempts that wait for a worker.
    pub ready: u64,
    /// Retries and triggers that wait for their time.
    pub delayed: u64,
    /// Scheduled times recorded as skipped.
    pub skipped_times: u64,
    /// Chains that the jobs count as live.
    pub live: u64,
    /// Jobs on the watch list.
    pub at_risk: u64,
}
