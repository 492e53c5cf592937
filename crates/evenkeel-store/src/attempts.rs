//! Store operations on attempts: workers claim, finish and requeue them; users list and cancel
//! them.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::{Limit, LimitKey, Limits};
use evenkeel_core::on_failure::Hook;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{AttemptKey, JobId, NodeNo, Progress, RunLog, Span, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{
    Attachments, CheckpointDisposition, ClaimWindow, Now, Page, PageRequest, Requeue, Scope, Then,
};

/// A worker's request for queued attempts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    pub node: NodeNo,
    /// Name of the worker's node; a job can exclude nodes by name.
    pub node_name: String,
    pub pools: Vec<String>,
    /// Maximum number of attempts that this request claims.
    pub capacity: usize,
    /// Number of attempts of each lane that are claimed first, before the more urgent lanes fill
    /// the remaining capacity.
    pub guaranteed: [usize; Lane::ALL.len()],
    pub aging: Aging,
    /// Concurrency limits of tenants and lanes.
    pub limits: Limits,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueuePosition {
    pub lane: Lane,
    /// Rank of a new attempt; queued attempts with the same or a higher rank count as ahead of it.
    pub rank: Rank,
    pub aging: Aging,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ClaimedAttempt {
    pub key: AttemptKey,
    /// Only the holder of this fence may store the result of the attempt.
    pub fence: Fence,
    pub tenant: TenantNo,
    /// The stored job definition, not parsed.
    pub definition: String,
    /// Checkpoint that an earlier attempt of the run saved.
    pub checkpoint: Option<Vec<u8>>,
    /// When the attempt became claimable by workers.
    pub since: Timestamp,
    /// Priority of this run, if it differs from the priority of the job.
    pub priority: Option<Priority>,
    /// Concurrency limits under which the attempt holds a permit.
    pub permits: Vec<LimitKey>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Claimed {
    /// Time of the store's clock, which is the start time of the claimed attempts.
    pub now: Timestamp,
    /// In dispatch order.
    pub attempts: Vec<ClaimedAttempt>,
    /// True if the search for attempts stopped because concurrency limits blocked too many of them,
    /// so a worker with free capacity should claim again.
    pub again: bool,
}

/// What the program, HTTP call or crawl of an attempt returned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    pub error: Option<String>,
    /// Encoded output; decode it with [`RunLog::decode`].
    pub output: Option<String>,
    pub items_crawled: Option<i64>,
    pub items_indexed: Option<i64>,
    pub cpu_time: Option<Span>,
    pub memory_peak_kb: Option<i64>,
}

/// The result of a finished attempt.
#[derive(Clone, PartialEq, Debug)]
pub struct Finish {
    pub key: AttemptKey,
    pub fence: Fence,
    pub tenant: TenantNo,
    pub outcome: Outcome,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    pub results: Results,
    /// Whether a retry follows the attempt, and the job's next scheduled time.
    pub then: Then,
    /// Priority of the run, which also applies to its retries.
    pub priority: Option<Priority>,
    pub attachments: Attachments,
    /// True if the condition of the job is evaluated immediately, even if the attempt succeeded.
    pub judge: bool,
    /// Dead letter or failure count that the store writes together with a failed result.
    pub hook: Hook,
    /// Earliest time at which the attempt may have finished, if the node could not store the result
    /// immediately.
    pub unstored_since: Option<Timestamp>,
}

impl Finish {
    /// Returns the failed result of an attempt that ended at `at` without a report of its executor.
    pub fn without_report(
        (key, fence, tenant): (AttemptKey, Fence, TenantNo),
        error: Option<String>,
        at: Timestamp,
    ) -> Self {
        Self {
            key,
            fence,
            tenant,
            outcome: Outcome::Failed,
            started_at: at,
            finished_at: at,
            results: Results { error, ..Results::default() },
            then: Then::END,
            priority: None,
            attachments: Attachments { has_notes: true, checkpoint: CheckpointDisposition::Delete },
            judge: true,
            hook: Hook::None,
            unstored_since: None,
        }
    }

    /// True if the run succeeds and leaves nothing to store but its end: no results, no
    /// attachments, no next run time, nothing to evaluate and nothing to correct. Most results are
    /// plain, so stores have a short path for them.
    pub fn is_plain(&self) -> bool {
        self.outcome.is_success()
            && self.then == Then::END
            && self.results == Results::default()
            && self.attachments == Attachments::default()
            && self.hook == Hook::None
            && self.unstored_since.is_none()
            && !self.judge
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FinishResult {
    Done,
    /// The node has already stored this result with the same fence.
    AlreadyDone,
    /// The fence is outdated because the attempt now belongs to another worker; nothing changed.
    LeaseLost,
}

/// An attempt that a node runs according to the store.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnedAttempt {
    pub key: AttemptKey,
    pub fence: Fence,
    pub tenant: TenantNo,
    pub started_at: Timestamp,
    /// Number of times that the attempt has lost its worker.
    pub crashes: u16,
    /// The stored job definition, not parsed.
    pub definition: String,
    /// Priority of this run, if it differs from the priority of the job.
    pub priority: Option<Priority>,
}

/// A long-running attempt; the store records its node separately, see
/// [`NodeStore::ping`](crate::NodeStore::ping).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LongAttempt {
    pub key: AttemptKey,
    pub fence: Fence,
    pub started_at: Timestamp,
}

/// A stored attempt, or a record of skipped scheduled times.
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt {
    pub key: AttemptKey,
    pub job: JobId,
    pub status: AttemptStatus,
    /// Current fence of the attempt.
    pub fence: Fence,
    /// Number of times that the attempt has lost its worker.
    pub crashes: u16,
    /// Number and name of the node that runs or ran the attempt.
    pub node: Option<(NodeNo, String)>,
    /// Position of the attempt among all attempts of the job, counted from 1.
    pub number: Option<u64>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub results: Results,
    /// The skipped scheduled times that a skip record covers.
    pub skipped: Option<SkippedTimes>,
    /// Progress of a running attempt; lists of attempts do not contain it.
    pub progress: Option<Progress>,
    /// Output so far of a running attempt, for [`RunLog::decode`]; lists of attempts do not contain
    /// it.
    pub log: Option<String>,
}

/// Maximum number of output characters per attempt in a list, so that a page fits into memory.
pub const LISTED_OUTPUT_CHARS: usize = 65_536;

impl Attempt {
    /// Returns the output of the attempt, or its output so far if it is running.
    pub fn printed(&self) -> Option<RunLog> {
        self.results.output.as_deref().or(self.log.as_deref()).map(RunLog::decode)
    }

    /// Cuts the output to [`LISTED_OUTPUT_CHARS`] characters.
    #[must_use]
    pub fn for_list(mut self) -> Self {
        if let Some(output) = &mut self.results.output
            && let Some((cut, _)) = output.char_indices().nth(LISTED_OUTPUT_CHARS)
        {
            output.truncate(cut);
        }
        self
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AttemptFilter {
    pub job: Option<JobId>,
}

/// Maximum number of runs that one call of [`AttemptStore::attempts_of_runs`] reads.
pub const RUNS_MAX: usize = 1000;

/// An attempt as part of its run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunAttempt {
    pub attempt: Attempt,
    /// The time for which a retry or trigger waits.
    pub due: Option<Timestamp>,
}

/// Maximum number of jobs that one call of [`AttemptStore::recent_runs`] reads.
pub const RECENT_JOBS_MAX: usize = 100;
/// Maximum number of runs of each job that one call of [`AttemptStore::recent_runs`] reads.
pub const RECENT_RUNS_MAX: u32 = 20;

/// One of the newest runs of a job, without its attempts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RecentRun {
    pub job: JobId,
    /// The key of the first attempt.
    pub key: AttemptKey,
    /// The status of the newest attempt.
    pub status: AttemptStatus,
    /// When the first attempt started.
    pub started_at: Option<Timestamp>,
    /// When the newest attempt finished.
    pub finished_at: Option<Timestamp>,
}

/// A running attempt that was asked to stop.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cancellation {
    pub key: AttemptKey,
    /// True if a newer scheduled time of the job replaces the attempt; false if a user or a command
    /// cancelled it.
    pub superseded: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingAttempt {
    pub key: AttemptKey,
    /// Priority of this run, if it differs from the priority of the job.
    pub priority: Option<Priority>,
    pub waits_for: WaitsFor,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// A retry or trigger waits until this time.
    Time(Timestamp),
    Worker {
        /// When the attempt became claimable by workers.
        since: Timestamp,
        /// Number of attempts of the same tenant that would be claimed before this attempt, counted
        /// up to 1,000; `None` if the caller did not request queue positions. Only attempts among
        /// the first 10,000 of the pool by priority, or among the first 10,000 of their lane by
        /// waiting time, are counted.
        ahead: Option<u32>,
        /// The period in which the attempt may be claimed.
        window: ClaimWindow,
    },
    /// The attempt waits for a permit because the maximum number of attempts under a concurrency
    /// limit is running.
    Permit {
        /// When the attempt became claimable by workers.
        since: Timestamp,
        limit: Limit,
        /// Number of permits of the concurrency limit that are in use; `None` if the caller did not
        /// request queue positions. For the concurrency limit of a lane, `running` is always
        /// `None`, because all tenants share the lane.
        running: Option<u32>,
    },
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RunCancelled {
    /// The attempt was waiting and is now recorded as cancelled.
    Withdrawn(AttemptKey),
    /// The attempt is running and was asked to stop.
    Asked(AttemptKey),
    /// The run was already finished.
    Over,
    NotFound,
}

/// One step of pruning old attempts, which reads at most `limit` attempts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Prune {
    /// The last attempt that the previous pruning step read.
    pub after: Option<AttemptKey>,
    pub limit: u32,
    /// Maximum number of attempts that are kept of each job.
    pub keep_per_job: u32,
    /// Deletes attempts that finished before this time.
    pub keep_since: Timestamp,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pruned {
    /// Number of attempts that the pruning step read.
    pub seen: u64,
    pub deleted: u64,
    /// The next pruning step continues after this attempt; `None` if all attempts were read.
    pub next: Option<AttemptKey>,
}

verbs! {
    trait AttemptStore {}

    /// Lets a worker claim queued attempts of its pools. The worker first gets its guaranteed
    /// number of attempts of each lane, then further attempts in dispatch order. Attempts are
    /// dispatched by lane, then by rank, then by deadline, then by waiting time. The
    /// [rank](evenkeel_core::aging) of an attempt is its priority, or a higher priority that it has
    /// reached by waiting.
    ///
    /// An attempt is claimed only once, only within its claim window, and never by a node that its
    /// job excludes. The attempt starts when the claim is committed. A node that has lost its lease
    /// or is draining gets no attempts.
    ///
    /// Concurrency limits apply across all workers: no more attempts run at once than
    /// [`Claim::limits`] and the limits of the job allow. An attempt that gets no permit moves to
    /// the queue of the exhausted concurrency limit (see [`LimitStore`](crate::LimitStore)), and
    /// the search continues with the next attempt.
    write fn claim(claim: &Claim, now: Now) -> Claimed;

    /// Stores the results of finished attempts of `node`. If the fence is current, one transaction
    /// stores the result, the retry and the job's history.
    /// [`History::after`](evenkeel_core::History::after) updates the job's history with weight
    /// `alpha`. A rejected result does not affect the other results of the batch. A batch can
    /// contain several attempts of the same job.
    ///
    /// The run is finished without a retry if the job was cancelled or deleted, or if the job is
    /// paused and the run was scheduled at or before the pause.
    ///
    /// For a schedule whose [next run time depends on the end of a
    /// run](evenkeel_core::Schedule::follows_its_end), the time in [`Then::EndRun`] becomes the
    /// next scheduled time. The time in `Then::EndRun` is ignored if the job has no next scheduled
    /// time, or has already fired that time or a later time. The store notifies the scheduler of
    /// the job's new scheduled time, and of every job whose run failed. An attempt that started
    /// before [`Job::since`](crate::Job::since) does not change the next scheduled time and does
    /// not stop the job, because its result was decided under an older schedule.
    ///
    /// [`Finish::hook`] is applied in the transaction that stores the result, except for a run that
    /// was asked to stop. [`Hook::CountFailure`] increments the job's count of consecutive
    /// failures; the count restarts at 1 if an attempt has succeeded since the last counted
    /// failure. When the count of consecutive failures reaches the number given in the hook,
    /// [`list_failing`](crate::DeadStore::list_failing) returns the job so that it is paused.
    /// Failures of a cancelled or deleted job are not counted.
    ///
    /// If [`Finish::unstored_since`] is set, records of scheduled times that the job skipped from
    /// then on change their reason from [`Overlap`](evenkeel_core::advance::SkipReason::Overlap) to
    /// [`EndNotStored`](evenkeel_core::advance::SkipReason::EndNotStored).
    ///
    /// The condition of the job (OK, WARNING or ERROR) is computed again immediately if its attempt
    /// did not succeed, if [`Finish::judge`] is set, or if the job may miss its deadline.
    write fn finish(node: NodeNo, batch: Vec<Finish>, alpha: f64) -> Vec<FinishResult>;

    /// Takes attempts away from `node`, each only if its fence is current. Returns true for each
    /// attempt that was taken away from `node`. An attempt that goes [back to the
    /// queue](crate::AfterLoss::Queue) gets a higher fence and keeps its attempt number. A requeued
    /// attempt still shows its former node until another node claims it.
    ///
    /// If the job was cancelled or deleted, or is paused and the run was scheduled at or before the
    /// pause, the attempt is recorded as cancelled, which finishes the run. An attempt that is
    /// recorded as cancelled also counts as taken away from `node`.
    ///
    /// An attempt that [fails](crate::AfterLoss::Fail) is stored in the same way as by
    /// [`finish`](Self::finish), and its crash count is incremented.
    write fn requeue(node: NodeNo, batch: Vec<Requeue>, now: Now) -> Vec<bool>;

    /// Returns those of the given attempts that run on `node`, in any order.
    read fn find_owned(node: NodeNo, keys: &[AttemptKey]) -> Vec<OwnedAttempt>;

    /// Returns up to `limit` attempts that run on `node`.
    read fn list_owned(node: NodeNo, limit: u32) -> Vec<OwnedAttempt>;

    /// Returns the running attempts of `node` that were asked to stop. Every call returns the stop
    /// request of an attempt again until the attempt is finished.
    read fn cancellations(node: NodeNo) -> Vec<Cancellation>;

    /// Cancels the run of the attempt, without retries. A running attempt is asked to stop;
    /// [`cancellations`](Self::cancellations) returns it until it is finished. A waiting attempt is
    /// recorded as cancelled, which finishes the run. The job keeps its schedule.
    write fn cancel_run(scope: &Scope, key: AttemptKey, now: Now) -> RunCancelled;

    /// Returns up to 100 waiting attempts of a job of the tenant, ordered by scheduled time, oldest
    /// first.
    ///
    /// With `ahead`, also counts the attempts that would be claimed before each waiting attempt of
    /// the job. To count the attempts ahead, at most 10,000 attempts of a pool are read by
    /// priority, and 10,000 of each lane by waiting time. The counts reveal nothing about other
    /// tenants unless more than 10,000 attempts wait in the pool. Counting is expensive, so callers
    /// that do not show queue positions pass `None`; then only the job's own attempts are read.
    read fn waiting_attempts(scope: &Scope, job: JobId, ahead: Option<Aging>, now: Now)
        -> Vec<WaitingAttempt>;

    /// Counts the attempts in these pools that wait for a worker, up to `limit`. An attempt is not
    /// counted if its claim window had not begun when the window was set.
    read fn count_queued(pools: &[String], limit: u32) -> u32;

    /// Counts the queued attempts of these pools and of the lane of `place` that would be claimed
    /// before an attempt queued now at `place`, up to `limit`. An attempt is not counted if its
    /// claim window had not begun when the window was set. Other lanes are not counted because each
    /// lane has its own guaranteed capacity.
    read fn count_queued_ahead(pools: &[String], place: QueuePosition, limit: u32, now: Now) -> u32;

    /// Returns the attempt with this key. For attempt number 0, returns the run's newest attempt
    /// that is queued or has started. A retry or trigger that waits for its due time has the status
    /// PENDING. A waiting retry or trigger is returned for its own key, and for attempt number 0 if
    /// the run has no other attempt.
    read fn get_attempt(scope: &Scope, key: AttemptKey) -> Option<Attempt>;

    /// Returns the tenant's attempts and skip records, newest scheduled time first, or newest run
    /// first if the filter names a job. The list includes queued attempts, but not retries and
    /// triggers that wait for their due time. Outputs are cut to [`LISTED_OUTPUT_CHARS`]
    /// characters.
    read fn list_attempts(scope: &Scope, filter: AttemptFilter, page: PageRequest<AttemptKey>)
        -> Page<Attempt, AttemptKey>;

    /// Returns the attempts of these runs of the tenant, ordered by key. Takes at most [`RUNS_MAX`]
    /// runs, each once; the attempt numbers of the keys are ignored. Of each run, returns the first
    /// attempt, the `newest` newest attempts that have started or finished, and the attempt that
    /// waits for a worker or for its due time. A skip record counts as a run with one finished
    /// attempt. The attempts have no output and no progress, and errors are cut to
    /// [`LAST_ERROR_MAX`](crate::LAST_ERROR_MAX) characters.
    read fn attempts_of_runs(scope: &Scope, runs: &[AttemptKey], newest: u32) -> Vec<RunAttempt>;

    /// Returns the newest `each` runs of each of these jobs of the tenant, in the order of `jobs`,
    /// and of one job the newest run first. Takes each job once. Only the first [`RECENT_JOBS_MAX`]
    /// jobs and at most [`RECENT_RUNS_MAX`] runs of each job are read. Deleted jobs and jobs of
    /// other tenants have no runs.
    ///
    /// A run with several attempts is one run, and so is a skip record. A run that waits for a
    /// worker, or whose retry waits, is PENDING. A triggered run is returned as soon as it is
    /// queued. Runs older than a run whose first attempt was pruned are not returned.
    read fn recent_runs(scope: &Scope, jobs: &[JobId], each: u32) -> Vec<RecentRun>;

    /// Deletes finished attempts and skip records, in key order after [`Prune::after`]. An attempt
    /// is kept if it is among the job's newest [`Prune::keep_per_job`] attempts and finished at or
    /// after [`Prune::keep_since`]. The newest successful and the newest failed attempt of a job
    /// are always kept.
    write fn prune(prune: Prune) -> Pruned;
}
