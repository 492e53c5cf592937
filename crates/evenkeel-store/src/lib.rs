//! The store interface: the operations that Evenkeel needs from a database.
//!
//! A store operation is called a verb in the code; it is one transaction and works on a batch.
//! Stores only carry out decisions that `evenkeel-core` makes. Every sentence in the doc comment of
//! a store operation has a conformance test in `evenkeel-store-testkit`, which all stores must
//! pass.
//!
//! Store operations for API users take a [`Scope`], so that a request without a tenant does not
//! compile. Every write for a worker contains the worker's node number and
//! [`Fence`](evenkeel_core::lease::Fence). A write with an outdated fence changes nothing, and its
//! result says so.
//!
//! Modules:
//!
//! - operations on jobs: `jobs`, `commands`, `lists`, `targets`, `dedup`, `secrets`, `access`,
//!   `requests`
//! - the scheduler: `schedules`; spreading runs evenly over time: `balance`, `load_profiles`
//! - the queue and its workers: `attempts`, `queue`, `reprioritize`, `requeue`, `progress`,
//!   `limits`, `overrides`
//! - the cluster: `nodes`, `signal`
//! - monitoring for users: `at_risk`, `run_stats`, `events`, `run_events`, `event_ring`,
//!   `dead_letters`
//! - crawled web pages: `pages`, [`text`]
//! - shared by the stores: `verbs` (declares and intercepts operations), [`statements`] and `codes`
//!   (SQL files), `row`, `error`

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
    PARTS_PRUNED, REBALANCES_KEPT, Rebalance, RebalancePart, RebalanceState, Recounted, SavedScore,
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

/// The clock that a store operation uses: the database clock in production, a fixed time in tests
/// and simulations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Now {
    Database,
    At(Timestamp),
}

impl Now {
    pub const fn literal(self) -> Option<Timestamp> {
        match self {
            Self::Database => None,
            Self::At(moment) => Some(moment),
        }
    }
}

verbs! {
    /// A database with all store operations.
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
        /// True if several nodes use the same database. In a database with a single node, no other
        /// node can take over a lease.
        fn is_shared() -> bool;

        fn batch_sizing() -> BatchSizing;

        /// Wake-up signals of this process.
        fn signals() -> &Signals;
    }

    /// Returns the time of the store's clock.
    read fn now() -> Timestamp;

    /// Wakes all listeners of `signal` on all nodes. A signal can be lost, so listeners also poll
    /// the store.
    read fn announce(signal: Signal) -> ();

    /// Returns the number of the tenant called `name`, and creates the tenant if it is new.
    write fn tenant(name: &str) -> TenantNo;

    /// Returns the value of a setting. The first call for `key` stores `fresh` as the value of the
    /// setting; all later calls return the stored value.
    write fn setting(key: &str, fresh: &str) -> String;

    /// Closes the store: completes accepted changes and rejects new changes. After the close, a
    /// file-based store has all changes in its main file.
    write fn close() -> ();

    /// Counts all rows of the database, which is slow. For benchmarks and tests.
    read fn census() -> Census;
}

/// Batch sizes with which a store reaches its highest throughput.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BatchSizing {
    /// Maximum number of rows in a batch.
    pub batch: usize,
    /// Number of batches of the same store operation that run concurrently.
    pub parallel_batches: usize,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// Jobs that are not deleted.
    pub jobs: u64,
    /// Attempts and skip records in the history.
    pub runs: u64,
    pub running: u64,
    /// Attempts that wait for a worker.
    pub ready: u64,
    /// Retries and triggers that wait for their due time.
    pub delayed: u64,
    /// Scheduled times that are recorded as skipped.
    pub skipped_times: u64,
    /// Total number of active runs, summed over the counters of all jobs.
    pub live: u64,
    /// At-risk jobs.
    pub at_risk: u64,
}
