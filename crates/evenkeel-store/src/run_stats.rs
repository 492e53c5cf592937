//! Totals of attempts by outcome, and activity per time slot, stored separately because attempts
//! are pruned.
//!
//! Nodes count attempts in memory and store the totals every five seconds, not when they fire or
//! finish attempts. A crash loses the counts since the last report of the node. If the answer to a
//! report is lost, the node reports the same counts again, so they may count twice. The totals are
//! only shown to users; no decision depends on them.

use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, NodeNo, Slot, Span, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Page, PageRequest, Scope};

/// Attempts that a node has counted for one tenant since its last report.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RunStatsDelta {
    pub tenant: TenantNo,
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    /// Number of cancelled and superseded attempts.
    pub cancelled: u64,
    /// Number of counted attempts that were retries.
    pub retries: u64,
    /// Number of attempts taken over from a lost node.
    pub stolen: u64,
    /// Total duration of the successful attempts.
    pub success_duration: Span,
    /// Number of attempts that currently run on the node.
    pub running: u32,
}

impl RunStatsDelta {
    pub const fn none(tenant: TenantNo) -> Self {
        Self {
            tenant,
            completed: 0,
            failed: 0,
            timed_out: 0,
            cancelled: 0,
            retries: 0,
            stolen: 0,
            success_duration: Span::ZERO,
            running: 0,
        }
    }

    pub fn add_ended(&mut self, attempt: AttemptNo, outcome: Outcome, took: Span) {
        match outcome {
            Outcome::Completed | Outcome::PartlyFailed => {
                self.completed += 1;
                self.success_duration = self.success_duration.saturating_add(took);
            }
            Outcome::Failed => self.failed += 1,
            Outcome::TimedOut => self.timed_out += 1,
            Outcome::Cancelled | Outcome::Superseded => self.cancelled += 1,
        }
        self.retries += u64::from(attempt > AttemptNo::FIRST);
    }
}

impl RunStatsDelta {
    /// Adds the counts of another delta of the same tenant, except `running`.
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

/// Failures with the same fingerprint that a node has counted since its last report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureDelta {
    pub tenant: TenantNo,
    /// Errors that differ only in details such as numbers have the same fingerprint.
    pub fingerprint: Fingerprint,
    pub count: u64,
    pub newest: AttemptKey,
    /// When the newest failed attempt finished.
    pub at: Timestamp,
    /// Error of the newest failed attempt.
    pub error: String,
}

/// Activity of one tenant in one time slot that a node has counted since its last report.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ActivityDelta {
    pub tenant: TenantNo,
    pub slot: Slot,
    pub counts: ActivityCounts,
}

/// Activity of a tenant in one time slot that all nodes have counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotActivity {
    pub slot: Slot,
    pub counts: ActivityCounts,
}

/// Attempts of a tenant that all nodes have counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RunTotals {
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    /// Number of cancelled and superseded attempts.
    pub cancelled: u64,
    pub retries: u64,
    /// Number of attempts taken over from a lost node.
    pub stolen: u64,
    pub success_duration: Span,
    pub running: u64,
    /// When a node last reported its counts.
    pub at: Option<Timestamp>,
}

/// Failures of a tenant with the same fingerprint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureGroup {
    pub fingerprint: Fingerprint,
    pub count: u64,
    /// When the first failure of the group was stored.
    pub first_at: Timestamp,
    /// When the newest failure of the group finished.
    pub last_at: Timestamp,
    /// Error of the newest failure.
    pub error: String,
    pub newest: AttemptKey,
    /// Job of the newest failure, if it still exists.
    pub job: Option<JobId>,
    pub job_name: Option<String>,
}

/// A position in the list of failure groups, which is ordered newest first.
pub type FailureCursor = (Timestamp, Fingerprint);

verbs! {
    trait RunStatsStore {}

    /// Adds the counts that `node` reports. Each tenant, each failure group, and each time slot of
    /// a tenant may occur only once in a report. A tenant that is not in `tallies` has no running
    /// attempts on the node. Activity of the same tenant and time slot adds up, whichever nodes
    /// report it.
    write fn add_run_stats(
        node: NodeNo,
        tallies: Vec<RunStatsDelta>,
        failures: Vec<FailureDelta>,
        activity: Vec<ActivityDelta>,
        at: Timestamp,
    ) -> ();

    /// Returns the totals of the tenant over all nodes. Running attempts of a node that is no
    /// longer live are not counted.
    read fn run_totals(scope: &Scope) -> RunTotals;

    /// Returns the tenant's failure groups, newest first.
    read fn list_failures(scope: &Scope, page: PageRequest<FailureCursor>)
        -> Page<FailureGroup, FailureCursor>;

    /// Deletes up to `limit` failure groups whose newest failure finished before `before`. Returns
    /// the number of deleted groups.
    write fn prune_failures(before: Timestamp, limit: u32) -> u64;

    /// Returns the activity of the tenant from the time slot `from` up to, but not including,
    /// `until`, oldest first. Time slots without activity are left out, and at most `limit` time
    /// slots are returned.
    read fn list_activity(scope: &Scope, from: Slot, until: Slot, limit: u32) -> Vec<SlotActivity>;

    /// Deletes the activity of up to `limit` time slots of any tenant that are before `before`, the
    /// oldest time slots first. Returns the number of deleted time slots.
    write fn prune_activity(before: Slot, limit: u32) -> u64;
}
