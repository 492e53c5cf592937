//! Verbs of the judge: which jobs do not keep their promise.
//!
//! A job that runs well costs nothing here. Those that something happened to (a failure, a time that
//! was skipped, a run that is late or long) are put on the watch list, and stay on it until they are
//! well again. So how many jobs are in trouble, and which break their promise next, is told from the
//! list, not from the jobs.

use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{AttemptKey, History, JobId, JobNo, Shard, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// A job on the watch list, as it is now, that is to be judged.
#[derive(Clone, PartialEq, Debug)]
pub struct JobToJudge {
    /// Its number.
    pub no: JobNo,
    /// Whose it is.
    pub tenant: TenantNo,
    /// Another one whenever something happens to the job or it is judged, so that a judgement of
    /// what was before can be told.
    pub touched: i32,
    /// How it was judged last; `None` if it has not been judged since it was put on the list.
    pub before: Option<Level>,
    /// Is it neither paused nor cancelled?
    pub active: bool,
    /// Its next regular time.
    pub next_at: Option<Timestamp>,
    /// The last regular time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// Is a chain of attempts not over?
    pub live: bool,
    /// Since when the newest attempt of its newest chain runs, if it does.
    pub running_since: Option<Timestamp>,
    /// What is remembered of its past.
    pub history: History,
    /// Since when its promise counts.
    pub since: Timestamp,
    /// Its stored definition, not yet read.
    pub definition: String,
}

/// How a job on the watch list was judged.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// Which job.
    pub job: JobNo,
    /// As of this.
    pub touched: i32,
    /// How it is doing.
    pub reason: Reason,
    /// When it turns, or turned, to ERROR.
    pub error_at: Timestamp,
    /// When to judge it again if nothing happens; `None` takes it off the list.
    pub again_at: Option<Timestamp>,
}

/// What is to be judged.
#[derive(Clone, PartialEq, Debug)]
pub struct ToJudge {
    /// What the store's clock said.
    pub now: Timestamp,
    /// At most as many as were asked for.
    pub jobs: Vec<JobToJudge>,
}

/// What was found by looking at a part of the queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OverdueInQueue {
    /// These jobs, each once.
    pub jobs: Vec<JobNo>,
    /// Where the next look goes on; `None` when the end was reached.
    pub next: Option<AttemptKey>,
}

/// How many jobs there are in each condition.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ConditionCounts {
    /// All jobs that are not deleted.
    pub jobs: u64,
    /// Those judged WARNING.
    pub warning: u64,
    /// Those judged ERROR.
    pub error: u64,
    /// Of those in ERROR, the ones that a blackout
    /// [holds](evenkeel_core::condition::Reason::HeldByBlackout), counted up to 10,000.
    pub held: u64,
}

/// A job that is not OK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtRisk {
    /// Its number.
    pub no: JobNo,
    /// Its public id.
    pub job: JobId,
    /// Its name, or that of its source, if it has one.
    pub name: Option<String>,
    /// How it is doing.
    pub reason: Reason,
    /// When it turns, or turned, to ERROR.
    pub error_at: Timestamp,
    /// When it was judged to be of this level.
    pub since: Timestamp,
}

/// Where a list of jobs at risk goes on: they are ordered by when they turn to ERROR.
pub type RiskCursor = (Timestamp, JobNo);

/// Which jobs at risk to list.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RiskFilter {
    /// Those of this level.
    pub level: Option<Level>,
}

verbs! {
    /// What the judge does, and what people see of it.
    trait AtRiskStore {}

    /// Puts jobs on the watch list, to be judged at once; those that are on it are judged again.
    /// Deleted jobs are left out.
    ///
    /// [`finish`](crate::AttemptStore::finish) does the same by itself for jobs whose attempt did not end
    /// well, for those it is told to, and for those that are on the list. So do verbs that withdraw
    /// what waits, for its job; and commands, for jobs that are on the list.
    write fn mark_at_risk(jobs: &[JobNo]) -> ();

    /// Jobs of the given shards that are to be judged by now, in any order, at most `limit`. No more
    /// rows than that are read.
    read fn to_judge(shards: &[Shard], limit: u32, now: Now) -> ToJudge;

    /// Writes judgements down, each if nothing has happened to the job since and nobody else has
    /// judged it, and keeps the counts. What is written down is another `touched` from then on.
    write fn judge(batch: Vec<Judgement>, now: Now) -> ();

    /// Jobs, of the given shards, whose attempts wait in the queue though they should have started
    /// by `now`, and that are not on the watch list. At most `limit` attempts are looked at, in the
    /// order of their keys, after `after`.
    read fn overdue_in_queue(shards: &[Shard], after: Option<AttemptKey>, limit: u32, now: Now)
        -> OverdueInQueue;

    /// How many of the scope's jobs are in each condition, from counters.
    read fn condition_counts(scope: &Scope) -> ConditionCounts;

    /// How many jobs of all tenants are in each condition, from counters.
    read fn all_condition_counts() -> ConditionCounts;

    /// The scope's jobs that are not OK, soonest ERROR first.
    read fn list_at_risk(scope: &Scope, filter: RiskFilter, page: PageRequest<RiskCursor>)
        -> Page<AtRisk, RiskCursor>;
}
