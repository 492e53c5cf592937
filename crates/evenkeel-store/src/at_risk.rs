//! Verbs of the judge, which finds the jobs that do not keep their deadline promise.
//!
//! A job that runs well costs nothing here. A job with a failure, a skipped time, or a late or long
//! run is marked as at risk and stays so until it is well again. Counts and lists of endangered
//! jobs read the at-risk jobs, not all jobs.

use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{AttemptKey, History, JobId, JobNo, Shard, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// An at-risk job as it is now.
#[derive(Clone, PartialEq, Debug)]
pub struct JobToJudge {
    pub no: JobNo,
    pub tenant: TenantNo,
    /// Changes whenever something happens to the job or it is judged, so that an outdated judgement
    /// is recognized.
    pub touched: i32,
    /// The last judgement; `None` if the job has not been judged since it was marked.
    pub before: Option<Level>,
    /// True if the job is neither paused nor cancelled.
    pub active: bool,
    /// The next regular time.
    pub next_at: Option<Timestamp>,
    /// The last regular time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// True if a run is active.
    pub live: bool,
    /// Since when the newest attempt of the newest run is running.
    pub running_since: Option<Timestamp>,
    pub history: History,
    /// Since when the deadline promise counts.
    pub since: Timestamp,
    /// The stored definition, not parsed.
    pub definition: String,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    pub job: JobNo,
    /// The value of [`JobToJudge::touched`] that the judgement is about.
    pub touched: i32,
    pub reason: Reason,
    /// When the condition becomes, or became, ERROR.
    pub error_at: Timestamp,
    /// When to judge again if nothing happens; `None` if the job is no longer at risk.
    pub again_at: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ToJudge {
    /// The time of the store's clock.
    pub now: Timestamp,
    pub jobs: Vec<JobToJudge>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OverdueInQueue {
    /// Each job once.
    pub jobs: Vec<JobNo>,
    /// Where the next scan starts; `None` at the end.
    pub next: Option<AttemptKey>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ConditionCounts {
    /// All jobs that are not deleted.
    pub jobs: u64,
    pub warning: u64,
    pub error: u64,
    /// The jobs in ERROR that a blackout [holds](evenkeel_core::condition::Reason::HeldByBlackout),
    /// counted up to 10,000.
    pub held: u64,
}

/// A job whose condition is not OK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtRisk {
    pub no: JobNo,
    pub job: JobId,
    /// The name of the job or of its source.
    pub name: Option<String>,
    pub reason: Reason,
    /// When the condition becomes, or became, ERROR.
    pub error_at: Timestamp,
    /// When the job was judged to be of this level.
    pub since: Timestamp,
}

/// A position in the list, which is ordered by the time of the ERROR.
pub type RiskCursor = (Timestamp, JobNo);

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RiskFilter {
    pub level: Option<Level>,
}

verbs! {
    trait AtRiskStore {}

    /// Marks jobs as at risk, to be judged at once, also if they are marked already. Skips deleted
    /// jobs.
    ///
    /// [`finish`](crate::AttemptStore::finish) does the same for jobs whose attempt did not
    /// succeed, for ends that ask for it, and for jobs that are at risk. Verbs that withdraw
    /// waiting attempts do it for their job, and commands for jobs that are at risk.
    write fn mark_at_risk(jobs: &[JobNo]) -> ();

    /// Returns up to `limit` jobs of the shards that are due to be judged, in any order. Reads no
    /// more rows than that.
    read fn to_judge(shards: &[Shard], limit: u32, now: Now) -> ToJudge;

    /// Stores judgements, each if nothing has happened to the job since and it was not judged
    /// meanwhile, and updates the counts. A stored judgement changes `touched`.
    write fn judge(batch: Vec<Judgement>, now: Now) -> ();

    /// Returns jobs of the shards that are not at risk although an attempt of theirs is still
    /// queued after its deadline. Reads up to `limit` attempts in key order after `after`.
    read fn overdue_in_queue(shards: &[Shard], after: Option<AttemptKey>, limit: u32, now: Now)
        -> OverdueInQueue;

    /// Returns the stored counts of the scope's jobs by condition.
    read fn condition_counts(scope: &Scope) -> ConditionCounts;

    /// Returns the stored counts of all tenants' jobs by condition.
    read fn all_condition_counts() -> ConditionCounts;

    /// Returns the scope's jobs that are not OK, soonest ERROR first.
    read fn list_at_risk(scope: &Scope, filter: RiskFilter, page: PageRequest<RiskCursor>)
        -> Page<AtRisk, RiskCursor>;
}
