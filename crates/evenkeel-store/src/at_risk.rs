//! Finds and lists jobs that miss or may miss their deadlines.
//!
//! The condition of a job is OK, WARNING or ERROR. To "judge" a job means to evaluate its
//! condition. A job is marked as at risk after a failure, a skipped scheduled time, or a late or
//! long run. The at-risk mark is removed when the condition of the job is OK again. The conditions
//! of jobs without the at-risk mark are not evaluated, so jobs that run on time cost nothing.

use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{AttemptKey, History, JobId, JobNo, Shard, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// Current data of an at-risk job, from which its condition is evaluated.
#[derive(Clone, PartialEq, Debug)]
pub struct JobToJudge {
    pub no: JobNo,
    pub tenant: TenantNo,
    /// A number that changes with every event of the job and every evaluation of its condition, so
    /// that the store can reject an outdated judgement.
    pub touched: i32,
    /// The last evaluated condition of the job; `None` if there was no evaluation since the job was
    /// marked as at risk.
    pub before: Option<Level>,
    /// True if the job is neither paused nor cancelled.
    pub active: bool,
    /// The next scheduled time.
    pub next_at: Option<Timestamp>,
    /// The last scheduled time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// True if the job has a waiting or running attempt.
    pub live: bool,
    /// When the newest attempt of the job's newest run started; `None` if that attempt is not
    /// running.
    pub running_since: Option<Timestamp>,
    pub history: History,
    /// Deadlines that the job missed before this time are ignored.
    pub since: Timestamp,
    /// The stored job definition, not parsed.
    pub definition: String,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    pub job: JobNo,
    /// The value of [`JobToJudge::touched`] that this judgement is based on.
    pub touched: i32,
    pub reason: Reason,
    /// When the condition of the job becomes, or became, ERROR.
    pub error_at: Timestamp,
    /// Time at which to evaluate the job's condition again, unless an event causes an earlier
    /// evaluation; `None` if the job is no longer at risk.
    pub again_at: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ToJudge {
    /// Current time of the store's clock.
    pub now: Timestamp,
    pub jobs: Vec<JobToJudge>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OverdueInQueue {
    /// Contains each job once.
    pub jobs: Vec<JobNo>,
    /// The next call continues after this attempt; `None` if all queued attempts were read.
    pub next: Option<AttemptKey>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ConditionCounts {
    /// Number of all jobs that are not deleted.
    pub jobs: u64,
    pub warning: u64,
    pub error: u64,
    /// Number of jobs in ERROR that cannot run because of a
    /// [blackout](evenkeel_core::condition::Reason::HeldByBlackout), counted up to 10,000.
    pub held: u64,
}

/// A job whose condition is WARNING or ERROR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtRisk {
    pub no: JobNo,
    pub job: JobId,
    /// Name of the job, or of its source if the job has no name.
    pub name: Option<String>,
    pub reason: Reason,
    /// When the condition of the job becomes, or became, ERROR.
    pub error_at: Timestamp,
    /// Time since which the job has had its current condition.
    pub since: Timestamp,
}

/// A position in the list of at-risk jobs, which is ordered by [`AtRisk::error_at`].
pub type RiskCursor = (Timestamp, JobNo);

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RiskFilter {
    pub level: Option<Level>,
}

verbs! {
    trait AtRiskStore {}

    /// Marks jobs as at risk, so that their conditions are evaluated immediately, even if they were
    /// marked before. Skips cancelled and deleted jobs.
    ///
    /// [`finish`](crate::AttemptStore::finish) also marks a job as at risk if its attempt did not
    /// succeed, if [`Finish::judge`](crate::Finish::judge) is set, or if the job is already at
    /// risk. Store operations that cancel waiting attempts also mark the job of these attempts as
    /// at risk. A command on an at-risk job marks the job again, so that its condition is evaluated
    /// immediately.
    write fn mark_at_risk(jobs: &[JobNo]) -> ();

    /// Returns up to `limit` jobs of these shards whose condition is due to be evaluated, in any
    /// order. Reads at most `limit` rows.
    read fn to_judge(shards: &[Shard], limit: u32, now: Now) -> ToJudge;

    /// Stores the evaluated condition of each job (its judgement) and updates the counts by
    /// condition. A judgement is dropped if the job has had another event or judgement since its
    /// data was read. A stored judgement changes [`JobToJudge::touched`].
    write fn judge(batch: Vec<Judgement>, now: Now) -> ();

    /// Finds jobs of these shards that are not marked as at risk, although a queued attempt of the
    /// job has missed its deadline for starting. Reads up to `limit` queued attempts in key order,
    /// starting after the attempt `after`.
    read fn overdue_in_queue(shards: &[Shard], after: Option<AttemptKey>, limit: u32, now: Now)
        -> OverdueInQueue;

    /// Returns how many jobs of the tenant are in each condition, from stored counts.
    read fn condition_counts(scope: &Scope) -> ConditionCounts;

    /// Returns how many jobs of all tenants are in each condition, from stored counts.
    read fn all_condition_counts() -> ConditionCounts;

    /// Returns the tenant's jobs in WARNING or ERROR, ordered by [`AtRisk::error_at`], earliest
    /// first.
    read fn list_at_risk(scope: &Scope, filter: RiskFilter, page: PageRequest<RiskCursor>)
        -> Page<AtRisk, RiskCursor>;
}
