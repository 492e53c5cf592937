//! Totals over attempts, stored because attempts are pruned.
//!
//! Nodes count in memory and store the totals from time to time, apart from firing and finishing. A
//! crash loses what was counted since then. The totals are for users only; nothing is decided by
//! them.

use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{AttemptKey, JobId, NodeNo, Span, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Page, PageRequest, Scope};

/// What a node has counted for one tenant since its last report.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RunStatsDelta {
    pub tenant: TenantNo,
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    /// Attempts that were cancelled or superseded.
    pub cancelled: u64,
    /// The retries among all of these.
    pub retries: u64,
    /// Attempts that were taken over from a lost node.
    pub stolen: u64,
    /// The total duration of the successful attempts.
    pub success_duration: Span,
    /// The number of attempts that run on the node now.
    pub running: u32,
}

impl RunStatsDelta {
    /// Adds the totals of another delta of the same tenant, except `running`.
    pub fn merge(&mut self, other: &Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.cancelled += other.cancelled;
        self.retries += other.retries;
        self.stolen += other.stolen;
        self.success_duration = self.success_duration.saturating_add(other.success_duration);
    }
}

/// Equal failures that a node has counted since its last report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureDelta {
    pub tenant: TenantNo,
    /// What the errors have in common.
    pub fingerprint: Fingerprint,
    pub count: u64,
    pub newest: AttemptKey,
    /// When the newest attempt ended.
    pub at: Timestamp,
    /// The error of the newest attempt.
    pub error: String,
}

/// What all nodes have counted for a tenant.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RunTotals {
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    /// Attempts that were cancelled or superseded.
    pub cancelled: u64,
    /// The retries among all of these.
    pub retries: u64,
    /// Attempts that were taken over from a lost node.
    pub stolen: u64,
    /// The total duration of the successful attempts.
    pub success_duration: Span,
    pub running: u64,
    /// When a node last reported.
    pub at: Option<Timestamp>,
}

/// Equal failures of a tenant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureGroup {
    pub fingerprint: Fingerprint,
    pub count: u64,
    /// When the first of them was stored.
    pub first_at: Timestamp,
    /// When the newest of them ended.
    pub last_at: Timestamp,
    /// The error of the newest.
    pub error: String,
    pub newest: AttemptKey,
    /// The job of the newest, if it still exists.
    pub job: Option<JobId>,
    pub job_name: Option<String>,
}

/// A position in the list of failures, newest first.
pub type FailureCursor = (Timestamp, Fingerprint);

verbs! {
    trait RunStatsStore {}

    /// Adds what `node` has counted. Each tenant and each group of failures occurs once. A tenant
    /// that does not occur has nothing running on the node.
    write fn add_run_stats(
        node: NodeNo,
        tallies: Vec<RunStatsDelta>,
        failures: Vec<FailureDelta>,
        at: Timestamp,
    ) -> ();

    /// Returns what all nodes have counted for the scope. Attempts that run on a node that is no
    /// longer live do not count.
    read fn run_totals(scope: &Scope) -> RunTotals;

    /// Returns the scope's groups of failures, newest first.
    read fn list_failures(scope: &Scope, page: PageRequest<FailureCursor>)
        -> Page<FailureGroup, FailureCursor>;

    /// Deletes up to `limit` groups whose newest failure ended before `before`. Returns their
    /// number.
    write fn prune_failures(before: Timestamp, limit: u32) -> u64;
}
