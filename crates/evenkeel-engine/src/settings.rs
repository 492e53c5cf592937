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

#[derive(Clone, Debug)]
pub struct Settings {
    pub node_name: String,
    /// Identifies the node across restarts; stored in its locked data directory.
    pub identity: Uuid,
    pub roles: Roles,
    /// Bodies that may run at once.
    pub workers: usize,
    /// Pools whose attempts this node claims.
    pub pools: Vec<String>,
    pub leases: LeaseTimings,
    /// Interval of polling the store. A lost wake-up signal delays work by at most this.
    pub poll: Duration,
    /// Retries and triggers are loaded this long before they are due.
    pub look_ahead: Span,
    /// Under load, a batch waits this long for more entries.
    pub linger: Duration,
    /// If no slot is freed for this long, due jobs go into the queue.
    pub stall: Duration,
    /// Weight of the newest duration in a job's average, from 0 to 1.
    pub alpha: f64,
    /// Interval of storing progress and output of running bodies.
    pub progress_every: Duration,
    /// Approximate limit of stored output per attempt, in bytes.
    pub run_log_bytes: usize,
    /// Interval of storing run totals.
    pub metrics_interval: Duration,
    /// An attempt that runs for longer is reported as long with each ping.
    pub long_run_after: Duration,
    pub retention: Retention,
    pub balance: BalanceSettings,
    /// Interval of computing the balance score.
    pub balance_score_every: Duration,
    /// How waiting raises an attempt's rank.
    pub aging: Aging,
    /// The share of slots that each lane is guaranteed.
    pub shares: Shares,
    /// Runs per tenant and per lane that may be active at once in the whole cluster.
    pub limits: Limits,
    /// Interval of computing queue metrics.
    pub queue_metrics_every: Duration,
    pub stale: Staleness,
}

/// How targets without a recent success are handled.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Staleness {
    /// A target without a success for this long is run; `None`: never.
    pub after: Option<Span>,
    /// Interval of checking targets.
    pub every: Span,
    /// Priority of the triggered runs.
    pub priority: Priority,
    /// Runs triggered per tenant and check.
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
    /// Newest runs kept per job.
    pub per_job: u32,
    /// Runs of this age or younger are kept.
    pub age: Span,
    pub every: Duration,
    /// Rows checked in one step.
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
    /// Default settings, with all roles.
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
