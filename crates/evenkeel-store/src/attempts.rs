//! Verbs on attempts: claim, finish and hand back for workers; lists and pruning.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::{Limit, LimitKey, Limits};
use evenkeel_core::on_failure::Hook;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{AttemptKey, JobId, NodeNo, Progress, RunLog, Span, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Attachments, ClaimWindow, Now, Page, PageRequest, Requeue, Scope, Then};

/// A worker's request for attempts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    pub node: NodeNo,
    /// Some jobs exclude nodes by name.
    pub node_name: String,
    pub pools: Vec<String>,
    /// The maximum number of attempts.
    pub capacity: usize,
    /// For each lane, the number of attempts that it gets before earlier lanes take the rest.
    pub guaranteed: [usize; Lane::ALL.len()],
    pub aging: Aging,
    /// The concurrency limits of tenants and lanes.
    pub limits: Limits,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueuePosition {
    pub lane: Lane,
    /// Higher ranks of the lane go first; among equals, the attempt that came earlier.
    pub rank: Rank,
    pub aging: Aging,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ClaimedAttempt {
    pub key: AttemptKey,
    /// Allows the worker to write the results.
    pub fence: Fence,
    pub tenant: TenantNo,
    /// The stored definition of the job.
    pub definition: String,
    /// The checkpoint that an earlier attempt of the run saved.
    pub checkpoint: Option<Vec<u8>>,
    /// Since when the attempt could have been claimed.
    pub since: Timestamp,
    /// The priority of this run, if it differs from the job's.
    pub priority: Option<Priority>,
    /// The limits of which the attempt holds a permit.
    pub permits: Vec<LimitKey>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Claimed {
    /// The time of the store's clock: the start of the attempts.
    pub now: Timestamp,
    /// In dispatch order.
    pub attempts: Vec<ClaimedAttempt>,
    /// There may be more although the capacity is not used up: limits stood in the way and the
    /// search was ended.
    pub again: bool,
}

/// What the body of an attempt returned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    pub error: Option<String>,
    /// A text that [`RunLog::decode`] reads.
    pub output: Option<String>,
    pub items_crawled: Option<i64>,
    pub items_indexed: Option<i64>,
    pub cpu_time: Option<Span>,
    pub memory_peak_kb: Option<i64>,
}

/// The end of an attempt.
#[derive(Clone, PartialEq, Debug)]
pub struct Finish {
    pub key: AttemptKey,
    pub fence: Fence,
    pub tenant: TenantNo,
    pub outcome: Outcome,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    pub results: Results,
    /// Whether a retry follows, and the job's next time.
    pub then: Then,
    /// The priority of this run, which a retry keeps.
    pub priority: Option<Priority>,
    pub attachments: Attachments,
    /// The job is judged at once even if the attempt succeeded.
    pub judge: bool,
    /// What is stored in the same transaction because of a failure.
    pub hook: Hook,
    /// Set if the node could not store the end at once: since when the attempt may have ended
    /// without the store's knowledge.
    pub unstored_since: Option<Timestamp>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FinishResult {
    Done,
    /// The same owner stored this end before, with the same fence.
    AlreadyDone,
    /// The fence is not current; nothing changed.
    LeaseLost,
}

/// A running attempt of a node, according to the store.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnedAttempt {
    pub key: AttemptKey,
    pub fence: Fence,
    pub tenant: TenantNo,
    pub started_at: Timestamp,
    /// The number of workers that the attempt has lost before.
    pub crashes: u16,
    /// The stored definition of the job.
    pub definition: String,
    /// The priority of this run, if it differs from the job's.
    pub priority: Option<Priority>,
}

/// An attempt that has run for long, so that the store records its owner separately: see
/// [`NodeStore::ping`](crate::NodeStore::ping).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LongAttempt {
    pub key: AttemptKey,
    pub fence: Fence,
    pub started_at: Timestamp,
}

/// An attempt, or a record of skipped times, as users see it.
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt {
    pub key: AttemptKey,
    pub job: JobId,
    pub status: AttemptStatus,
    /// The current fence.
    pub fence: Fence,
    /// The number of workers that the attempt has lost.
    pub crashes: u16,
    /// The number and name of the node that runs or ran the attempt.
    pub node: Option<(NodeNo, String)>,
    /// The attempt is the job's `number`-th, counted from 1.
    pub number: Option<u64>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub results: Results,
    /// The skipped times that the record stands for.
    pub skipped: Option<SkippedTimes>,
    /// Of a running attempt. Not in lists.
    pub progress: Option<Progress>,
    /// The output so far of a running attempt: a text that [`RunLog::decode`] reads. Not in lists.
    pub log: Option<String>,
}

/// The number of characters of an output that a list returns, so that a page fits into memory.
pub const LISTED_OUTPUT_CHARS: usize = 65_536;

impl Attempt {
    /// Returns the output, or the output so far.
    pub fn printed(&self) -> Option<RunLog> {
        self.results.output.as_deref().or(self.log.as_deref()).map(RunLog::decode)
    }

    /// Shortens the output as lists do.
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

/// A running attempt that is asked to end.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cancellation {
    pub key: AttemptKey,
    /// True if a newer scheduled time replaces the attempt; false if a user or a command ended it.
    pub superseded: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingAttempt {
    pub key: AttemptKey,
    /// The priority of this run, if it differs from the job's.
    pub priority: Option<Priority>,
    pub waits_for: WaitsFor,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// The due time of a retry or trigger.
    Time(Timestamp),
    Worker {
        /// Since when the attempt could have been claimed.
        since: Timestamp,
        /// The number of attempts of the same tenant that would be claimed first, up to 1,000.
        /// Counted among the first 10,000 of the pool by priority and of each of its lanes by
        /// waiting time. `None` if the caller did not ask.
        ahead: Option<u32>,
        /// When the attempt may be claimed.
        window: ClaimWindow,
    },
    /// A permit: as many attempts run as the limit allows.
    Permit {
        /// Since when the attempt could have been claimed.
        since: Timestamp,
        limit: Limit,
        /// The number of permits in use. `None` if the caller did not ask for positions, and for
        /// the limit of a lane, which all tenants share.
        running: Option<u32>,
    },
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RunCancelled {
    /// The attempt waited and is recorded as cancelled.
    Withdrawn(AttemptKey),
    /// The attempt runs and was asked to end.
    Asked(AttemptKey),
    /// The run had ended before.
    Over,
    /// The scope has no such run.
    NotFound,
}

/// One bounded step of pruning.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Prune {
    /// Where the last step ended.
    pub after: Option<AttemptKey>,
    /// The number of attempts to read.
    pub limit: u32,
    /// Keep at most this many attempts of each job.
    pub keep_per_job: u32,
    /// Keep no attempt that ended before this.
    pub keep_since: Timestamp,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pruned {
    /// The number of attempts that were read.
    pub seen: u64,
    /// The number of attempts that were deleted.
    pub deleted: u64,
    /// Where the next step starts; `None` at the end.
    pub next: Option<AttemptKey>,
}

verbs! {
    trait AttemptStore {}

    /// Gives a worker the first attempts of its pools in dispatch order, after the guaranteed
    /// attempts of each lane. Dispatch order is by lane; then by rank, which is the higher of the
    /// priority and of what the waiting time has made of it; then by deadline; then by waiting
    /// time.
    ///
    /// No attempt is given twice, outside its claim window, or to a node that its job excludes. The
    /// committed claim is the start of the attempt. A node that is not live gets nothing.
    ///
    /// Limits hold across all workers: no more attempts run at once than a [limit](Claim::limits),
    /// or a limit of the job, allows. An attempt that finds no permit moves to the queue of that
    /// limit (see [`LimitStore`](crate::LimitStore)), and the next attempt is considered.
    write fn claim(claim: &Claim, now: Now) -> Claimed;

    /// Stores the ends of attempts of `node`. Each end with the current fence is stored whole:
    /// results, the job's history (by [`History::after`](evenkeel_core::History::after) with
    /// `alpha`) and the retry. An end that is refused does not affect the others. A job can occur
    /// several times in a batch.
    ///
    /// A job that was cancelled or deleted is not retried, nor is a run for a time up to the moment
    /// of a pause that still lasts: the run ends.
    ///
    /// If [`Then::EndRun`] has a next time and the schedule [follows the
    /// end](evenkeel_core::Schedule::follows_its_end), it replaces the next regular time, unless
    /// the job has no next time or the new time is not after the last fired time. The scheduler is
    /// notified of the change, and also of a job whose run failed. An attempt that started before
    /// the job's promise began to count neither moves nor stops the job: its end was decided under
    /// an older schedule.
    ///
    /// The [`Finish::hook`] is carried out in the same transaction, unless the run was asked to
    /// end: then its failure means nothing. A [counted failure](Hook::CountFailure) adds to the
    /// consecutive failures if no attempt of the job has succeeded since the last counted failure,
    /// and else starts at 1. At the given number the job is [to be
    /// paused](crate::DeadStore::list_failing). A job that is cancelled or deleted is not counted.
    ///
    /// An end with [`Finish::unstored_since`] corrects skip records of the job from that time on:
    /// those with the reason [`Overlap`](evenkeel_core::advance::SkipReason::Overlap) get
    /// [`EndNotStored`](evenkeel_core::advance::SkipReason::EndNotStored).
    ///
    /// Jobs whose attempt did not succeed, jobs of ends with [`Finish::judge`], and jobs that are
    /// at risk are judged at once.
    write fn finish(node: NodeNo, batch: Vec<Finish>, alpha: f64) -> Vec<FinishResult>;

    /// Takes attempts from `node`, each if the fence is current. Returns which were taken. An
    /// attempt that goes [back to the queue](crate::AfterLoss::Queue) gets a higher fence and keeps
    /// its attempt number. Until another node claims it, it shows its former node.
    ///
    /// If the job was cancelled or deleted, or the run is for a time up to the moment of a pause
    /// that still lasts, the attempt is recorded as cancelled instead, which ends the run. It
    /// counts as taken.
    ///
    /// An attempt that [fails](crate::AfterLoss::Fail) ends as by [`finish`](Self::finish), and its
    /// crash is counted.
    write fn requeue(node: NodeNo, batch: Vec<Requeue>, now: Now) -> Vec<bool>;

    /// Returns those of the attempts that run on `node`, in any order.
    read fn find_owned(node: NodeNo, keys: &[AttemptKey]) -> Vec<OwnedAttempt>;

    /// Returns up to `limit` attempts that run on `node`.
    read fn list_owned(node: NodeNo, limit: u32) -> Vec<OwnedAttempt>;

    /// Returns the attempts of `node` that are asked to end, in each call until they have ended.
    read fn cancellations(node: NodeNo) -> Vec<Cancellation>;

    /// Ends the run of the attempt for good. A running attempt is asked to end and is returned by
    /// [`cancellations`](Self::cancellations) until it has ended. A waiting attempt (queued, or
    /// delayed as a retry or trigger) is recorded as cancelled, which ends the run. The job
    /// continues with its next time.
    write fn cancel_run(scope: &Scope, key: AttemptKey, now: Now) -> RunCancelled;

    /// Returns up to 100 waiting attempts of a job of the scope, oldest time first.
    ///
    /// With `ahead`, also counts what is ahead of them in the queue. The counts reveal nothing
    /// about other tenants as long as at most 10,000 attempts wait in a pool; no more than that are
    /// read. This is still expensive, so callers that do not show positions pass `None`, and then
    /// only the job's own attempts are read.
    read fn waiting_attempts(scope: &Scope, job: JobId, ahead: Option<Aging>, now: Now)
        -> Vec<WaitingAttempt>;

    /// Counts the attempts of these pools that wait for a worker, up to `limit`. Leaves out
    /// attempts whose claim window was not open when they were queued, since no worker could take
    /// them.
    read fn count_queued(pools: &[String], limit: u32) -> u32;

    /// Counts the attempts of these pools and the lane that would be claimed before one that is
    /// queued now at `place`, up to `limit`. Leaves out attempts whose claim window was not open
    /// when they were queued, and other lanes, which have their own guarantees.
    read fn count_queued_ahead(pools: &[String], place: QueuePosition, limit: u32, now: Now) -> u32;

    /// Returns the attempt with this key. For attempt 0, returns the latest attempt of the run that
    /// has started or is queued. A delayed retry or trigger is pending: it is returned for its own
    /// key, and for attempt 0 if the run has no other attempt.
    read fn get_attempt(scope: &Scope, key: AttemptKey) -> Option<Attempt>;

    /// Returns the scope's attempts and skip records: for all jobs by newest scheduled time, for
    /// one job by newest run. Includes attempts that wait for their first worker, not delayed
    /// retries and triggers. Outputs are cut after [`LISTED_OUTPUT_CHARS`].
    read fn list_attempts(scope: &Scope, filter: AttemptFilter, page: PageRequest<AttemptKey>)
        -> Page<Attempt, AttemptKey>;

    /// Deletes ended attempts and skip records in key order from `after` on. An attempt is kept
    /// while it is both among the newest of its job and recent enough. The job's newest successful
    /// and newest failed attempt are always kept.
    write fn prune(prune: Prune) -> Pruned;
}
