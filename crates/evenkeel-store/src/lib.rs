//! The store interface: the operations that Evenkeel needs from a database.
//!
//! A store operation is called a verb in the code; it is one transaction and works on a batch.
//! Stores only carry out decisions that `evenkeel-core` makes. Every sentence in the doc comment of
//! a store operation has a conformance test in `evenkeel-store-testkit`, which all stores must
//! pass.
//!
//! Store operations for API users take a [`Scope`], so that a request without a tenant does not
//! compile. Every write for a worker contains the worker's node number and
//! [`Fence`](evenkeel_core::lease::Fence). A write with an outdated fence changes nothing, and the
//! result of the store operation reports that.
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

pub use access::*;
pub use at_risk::*;
pub use attempts::*;
pub use balance::*;
pub use codes::*;
pub use commands::*;
pub use dead_letters::*;
pub use dedup::*;
pub use error::*;
pub use event_ring::*;
pub use events::*;
pub use jobs::*;
pub use limits::*;
pub use lists::*;
pub use load_profiles::*;
pub use nodes::*;
pub use overrides::*;
pub use page::*;
pub use pages::*;
pub use progress::*;
pub use queue::*;
pub use reprioritize::*;
pub use requests::*;
pub use requeue::*;
pub use row::*;
pub use run_events::*;
pub use run_stats::*;
pub use schedules::*;
pub use scope::*;
pub use secrets::*;
pub use signal::*;
pub use targets::*;
pub use verbs::{Intercept, Intercepted, OwnedAnswer, OwnedCall, Relay, Relayed, Verb};

pub use evenkeel_core::after_attempt::Then;
pub use evenkeel_core::on_failure::Hook;
pub use evenkeel_core::status::JobState;

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
    /// Number of jobs that are not deleted.
    pub jobs: u64,
    /// Number of attempts and of records of skipped times in the history.
    pub runs: u64,
    pub running: u64,
    /// Number of attempts that wait for a worker.
    pub ready: u64,
    /// Number of retries and triggers that wait for their due time.
    pub delayed: u64,
    /// Number of scheduled times that are recorded as skipped.
    pub skipped_times: u64,
    /// Total number of active runs, summed over the counters of all jobs.
    pub live: u64,
    /// Number of at-risk jobs.
    pub at_risk: u64,
}
