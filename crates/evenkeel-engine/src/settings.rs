//! How an engine is set up.

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

/// All that can be set about an engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What people call the node.
    pub node_name: String,
    /// Kept in the node's locked data directory.
    pub identity: Uuid,
    /// What it does.
    pub roles: Roles,
    /// How many bodies run at once.
    pub workers: usize,
    /// The pools it works for.
    pub pools: Vec<String>,
    /// The rhythm of leases.
    pub leases: LeaseTimings,
    /// A lost wake-up costs no more than this.
    pub poll: Duration,
    /// Retries and triggers are known this long before their time.
    pub look_ahead: Span,
    /// Under load a batch waits this long for company.
    pub linger: Duration,
    /// Without a place coming free for this long, what is due goes into the queue.
    pub stall: Duration,
    /// Weight of the newest duration in a job's average.
    pub alpha: f64,
    /// What bodies say while they run is stored this often.
    pub note_every: Duration,
    /// Of what a body prints about so many bytes are kept.
    pub run_log_bytes: usize,
    /// Sums over runs are written down this often.
    pub metrics_interval: Duration,
    /// An attempt that runs for longer is written down as a long one.
    pub long_run_after: Duration,
    /// What history is kept.
    pub retention: Retention,
    /// How load is spread.
    pub balance: BalanceSettings,
    /// How evenly it is spread is looked at this often.
    pub score_every: Duration,
    /// How waiting for a worker counts.
    pub aging: Aging,
    /// What each lane gets of the room before earlier ones take it all.
    pub shares: Shares,
    /// How many runs of a tenant, and in a lane, may go on at once in the whole cluster.
    pub limits: Limits,
    /// How much waits is looked at this often.
    pub survey_every: Duration,
    /// What is done about targets without success.
    pub stale: Staleness,
}

/// What is done about targets without success.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Staleness {
    /// Without a success for this long, a target is run; `None`: never.
    pub after: Option<Span>,
    /// How often targets are looked at.
    pub every: Span,
    /// The priority of runs that are asked for then.
    pub priority: Priority,
    /// So many runs are asked for at a time.
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

/// What history is kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The newest of each job.
    pub per_job: u32,
    /// For this long.
    pub age: Span,
    /// How often the pruner goes round.
    pub every: Duration,
    /// Rows it looks at in one step.
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
    /// A node that does everything, with all else as by default.
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
            note_every: Duration::from_secs(1),
            run_log_bytes: LOG_BYTES_DEFAULT,
            metrics_interval: Duration::from_secs(5),
            long_run_after: Duration::from_secs(30),
            retention: Retention::default(),
            balance: BalanceSettings::default(),
            score_every: Duration::from_secs(60),
            aging: Aging::default(),
            shares: Shares::default(),
            limits: Limits::default(),
            survey_every: Duration::from_secs(15),
            stale: Staleness::default(),
        }
    }
}
