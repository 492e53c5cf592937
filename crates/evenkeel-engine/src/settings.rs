//! Settings of an engine, resolved from the configuration.

use std::time::Duration;

use evenkeel_core::Span;
use evenkeel_core::aging::Aging;
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::job::DEFAULT_POOL;
use evenkeel_core::lease::LeaseTimings;
use evenkeel_core::limit::Limits;
use evenkeel_core::order::{Priority, Shares};
use evenkeel_executors::LOG_BYTES_DEFAULT;
use evenkeel_store::Roles;
use uuid::Uuid;

/// A loop whose last batch had at least this many rows is under load, and waits for `linger` before
/// its next batch. A statement costs as much as five rows, so smaller batches would cost the store
/// several times the work.
pub const LINGER_FROM: usize = 5;

#[derive(Clone, Debug)]
pub struct Settings {
    pub node_name: String,
    /// Identifies the node across restarts. The node's identity is stored in its data directory.
    pub identity: Uuid,
    pub roles: Roles,
    /// Maximum number of attempts that run on this node at once.
    pub workers: usize,
    /// Pools whose attempts this node claims.
    pub pools: Vec<String>,
    pub leases: LeaseTimings,
    /// Interval at which loops poll the store. A lost wake-up signal delays work by at most one
    /// poll interval.
    pub poll: Duration,
    /// Retries and triggers are loaded into memory this long before they are due.
    pub look_ahead: Span,
    /// Delay before a loop under load sends a batch to the store, so that the batch gets larger.
    pub linger: Duration,
    /// Time without a free worker slot after which the scheduler queues due jobs instead of
    /// starting them on this node.
    pub stall: Duration,
    /// Weight of the newest duration in the average duration of a job, from 0 to 1.
    pub alpha: f64,
    /// Interval at which progress and output of running attempts are stored.
    pub progress_every: Duration,
    /// Approximate limit of stored output per attempt, in bytes.
    pub run_log_bytes: usize,
    /// Interval at which the totals of ended runs are stored.
    pub metrics_interval: Duration,
    /// Duration after which an attempt counts as long. Each ping to the store contains the long
    /// attempts of the node.
    pub long_run_after: Duration,
    pub retention: Retention,
    pub balance: BalanceSettings,
    pub balance_score_every: Duration,
    /// Settings for aging, which raises the rank of an attempt while it waits.
    pub aging: Aging,
    /// Guaranteed share of the worker slots per lane.
    pub shares: Shares,
    /// Maximum numbers of active runs in the cluster, per tenant and per lane.
    pub limits: Limits,
    pub queue_metrics_every: Duration,
    pub stale: Staleness,
}

/// Settings of the checks for targets without a recent successful run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Staleness {
    /// A run is triggered for a target that had no successful run for this time. With `None`, no
    /// runs are triggered for stale targets.
    pub after: Option<Span>,
    /// Interval between two checks of all targets.
    pub every: Span,
    /// Priority of the triggered runs.
    pub priority: Priority,
    /// Maximum number of runs that one check of the targets triggers per tenant.
    pub batch: u32,
}

impl Default for Staleness {
    fn default() -> Self {
        Self {
            after: Some(Span::from_secs(30 * 86_400)),
            every: Span::from_secs(6 * 3600),
            priority: Priority::default(),
            batch: 500,
        }
    }
}

/// How much history the pruner keeps.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Number of newest runs that are kept per job.
    pub per_job: u32,
    /// Runs younger than this age are never pruned.
    pub age: Span,
    pub every: Duration,
    /// Number of rows that one pruning statement checks.
    pub step: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            per_job: 100,
            age: Span::from_secs(30 * 86_400),
            every: Duration::from_secs(60),
            step: 2000,
        }
    }
}

impl Settings {
    /// Returns the default settings, with all roles.
    pub fn new(node_name: impl Into<String>, identity: Uuid) -> Self {
        Self {
            node_name: node_name.into(),
            identity,
            roles: Roles::ALL,
            workers: 4096,
            pools: vec![DEFAULT_POOL.into()],
            leases: LeaseTimings::default(),
            poll: Duration::from_secs(1),
            look_ahead: Span::from_secs(5),
            linger: Duration::from_millis(5),
            stall: Duration::from_millis(50),
            alpha: DEFAULT_ALPHA,
            progress_every: Duration::from_secs(1),
            run_log_bytes: LOG_BYTES_DEFAULT,
            metrics_interval: Duration::from_secs(5),
            long_run_after: Duration::from_secs(30),
            retention: Retention::default(),
            balance: BalanceSettings::default(),
            balance_score_every: Duration::from_secs(60),
            aging: Aging::default(),
            shares: Shares::default(),
            limits: Limits::default(),
            queue_metrics_every: Duration::from_secs(15),
            stale: Staleness::default(),
        }
    }
}
