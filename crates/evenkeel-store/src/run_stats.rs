//! Sums over runs, which are kept because runs are not.
//!
//! Nodes add up in memory and write the sums now and then, apart from what they fire and finish. A
//! crash loses what was added since the last write: these are figures for people, nothing is
//! decided by them.

use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{AttemptKey, JobId, NodeNo, Span, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Page, PageRequest, Scope};

/// What a node has seen of one tenant's runs since it last said.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RunStatsDelta {
    /// Whose.
    pub tenant: TenantNo,
    /// Attempts that ended well.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts that took too long.
    pub timed_out: u64,
    /// Attempts that were cancelled or superseded.
    pub cancelled: u64,
    /// Of all those, the retries.
    pub retries: u64,
    /// Attempts that were taken over from a node that was lost.
    pub stolen: u64,
    /// How long the good ones took, together.
    pub good_duration: Span,
    /// How many run on the node right now.
    pub running: u32,
}

impl RunStatsDelta {
    /// Adds the sums of another of the same tenant. What runs is no sum.
    pub fn merge(&mut self, other: &Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.cancelled += other.cancelled;
        self.retries += other.retries;
        self.stolen += other.stolen;
        self.good_duration = self.good_duration.saturating_add(other.good_duration);
    }
}

/// Equal failures that a node has seen since it last said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureDelta {
    /// Whose.
    pub tenant: TenantNo,
    /// What they have in common.
    pub fingerprint: Fingerprint,
    /// How many.
    pub count: u64,
    /// The newest of them.
    pub newest: AttemptKey,
    /// When that ended.
    pub at: Timestamp,
    /// What it said.
    pub error: String,
}

/// What all nodes have seen of a tenant's runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RunTotals {
    /// Attempts that ended well.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts that took too long.
    pub timed_out: u64,
    /// Attempts that were cancelled or superseded.
    pub cancelled: u64,
    /// Of all those, the retries.
    pub retries: u64,
    /// Attempts that were taken over from a node that was lost.
    pub stolen: u64,
    /// How long the good ones took, together.
    pub good_duration: Span,
    /// How many run.
    pub running: u64,
    /// When a node last said something.
    pub at: Option<Timestamp>,
}

/// Failures of a tenant that have something in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureGroup {
    /// What.
    pub fingerprint: Fingerprint,
    /// How many.
    pub count: u64,
    /// When the first of them was written down.
    pub first_at: Timestamp,
    /// When the newest ended.
    pub last_at: Timestamp,
    /// What that said.
    pub error: String,
    /// Which one it was.
    pub newest: AttemptKey,
    /// The job of it, if it is still there.
    pub job: Option<JobId>,
    /// And its name, if it has one.
    pub job_name: Option<String>,
}

/// A place in a list of failures, newest first.
pub type FailureCursor = (Timestamp, Fingerprint);

verbs! {
    /// What is added up over runs.
    trait RunStatsStore {}

    /// Adds what `node` has seen; no tenant and no group is in it twice. A tenant that is not mentioned has nothing that runs on it.
    write fn add_run_stats(
        node: NodeNo,
        tallies: Vec<RunStatsDelta>,
        failures: Vec<FailureDelta>,
        at: Timestamp,
    ) -> ();

    /// What all nodes have seen of the scope's runs. What runs on a node that is no longer alive
    /// does not count.
    read fn run_totals(scope: &Scope) -> RunTotals;

    /// The scope's failures, grouped, newest first.
    read fn list_failures(scope: &Scope, page: PageRequest<FailureCursor>)
        -> Page<FailureGroup, FailureCursor>;

    /// Forgets up to `limit` groups whose newest failure ended before `before`; says how many.
    write fn prune_failures(before: Timestamp, limit: u32) -> u64;
}
