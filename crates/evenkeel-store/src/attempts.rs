//! Verbs of the workers: claim, finish, hand back; and of those who look at runs.

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

/// What a worker wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Who.
    pub node: NodeNo,
    /// What people call it: some jobs may not run on it.
    pub node_name: String,
    /// From these pools.
    pub pools: Vec<String>,
    /// At most this many.
    pub capacity: usize,
    /// Of each lane, this many before an earlier lane takes the rest.
    pub guaranteed: [usize; Lane::ALL.len()],
    /// How waiting counts.
    pub aging: Aging,
    /// How many may run of a tenant and in a lane.
    pub limits: Limits,
}

/// A place in the queue, at some moment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueuePosition {
    /// In this lane.
    pub lane: Lane,
    /// At this rank. Higher ones of the lane go before, and of equal ones whoever came earlier.
    pub rank: Rank,
    /// How waiting counts.
    pub aging: Aging,
}

/// An attempt that a worker has got.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimedAttempt {
    /// Which one.
    pub key: AttemptKey,
    /// The right to write its results.
    pub fence: Fence,
    /// Whose it is.
    pub tenant: TenantNo,
    /// The stored definition of its job.
    pub definition: String,
    /// What an earlier attempt has saved.
    pub checkpoint: Option<Vec<u8>>,
    /// Since when it waited.
    pub since: Timestamp,
    /// The priority that this run was given, whatever its job's is.
    pub priority: Option<Priority>,
    /// The limits of which it has a place.
    pub permits: Vec<LimitKey>,
}

/// What a worker has got.
#[derive(Clone, PartialEq, Debug)]
pub struct Claimed {
    /// What the store's clock said: they started then.
    pub now: Timestamp,
    /// In the order of dispatch.
    pub attempts: Vec<ClaimedAttempt>,
    /// There may be more, though the room is not full: limits stood in the way, and the search for
    /// others was ended.
    pub again: bool,
}

/// What a body left behind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    /// What went wrong.
    pub error: Option<String>,
    /// What it printed: a text that [`RunLog::decode`] reads.
    pub output: Option<String>,
    /// Items it found.
    pub items_crawled: Option<i64>,
    /// Items it kept.
    pub items_indexed: Option<i64>,
    /// CPU time it took.
    pub cpu_time: Option<Span>,
    /// The most memory it had.
    pub memory_peak_kb: Option<i64>,
}

/// The end of an attempt.
#[derive(Clone, PartialEq, Debug)]
pub struct Finish {
    /// Which one.
    pub key: AttemptKey,
    /// The right to say so.
    pub fence: Fence,
    /// Whose it is.
    pub tenant: TenantNo,
    /// How it ended.
    pub outcome: Outcome,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
    /// What it left behind.
    pub results: Results,
    /// What follows.
    pub then: Then,
    /// The priority that this run was given: if it is tried again, it keeps it.
    pub priority: Option<Priority>,
    /// What becomes of what it said while it ran.
    pub attachments: Attachments,
    /// Its job is to be judged, even if it ended well.
    pub judge: bool,
    /// What is done together with it.
    pub hook: Hook,
    /// Since when the attempt may have been over without the store's knowledge, if its node could
    /// not store its end at once.
    pub unstored_since: Option<Timestamp>,
}

/// What became of a finish.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FinishResult {
    /// It is recorded.
    Done,
    /// It had been recorded before, by the same owner with the same fence.
    AlreadyDone,
    /// Somebody else has the attempt; nothing was changed.
    LeaseLost,
}

/// An attempt that the store says a node has.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnedAttempt {
    /// Which one.
    pub key: AttemptKey,
    /// With this fence.
    pub fence: Fence,
    /// Whose it is.
    pub tenant: TenantNo,
    /// Since when.
    pub started_at: Timestamp,
    /// How many workers it has lost before.
    pub crashes: u16,
    /// The stored definition of its job.
    pub definition: String,
    /// The priority that its run was given, whatever its job's is.
    pub priority: Option<Priority>,
}

/// An attempt that has run for so long that its owner is written down beside it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LongAttempt {
    /// Which one.
    pub key: AttemptKey,
    /// With this fence.
    pub fence: Fence,
    /// Since when.
    pub started_at: Timestamp,
}

/// An attempt, or a record of skipped times, as people see it.
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt {
    /// Which one.
    pub key: AttemptKey,
    /// Its job.
    pub job: JobId,
    /// Where it stands.
    pub status: AttemptStatus,
    /// Its latest fence.
    pub fence: Fence,
    /// How many workers it has lost.
    pub crashes: u16,
    /// The number and name of the node that has or had it.
    pub node: Option<(NodeNo, String)>,
    /// It was the job's attempt number so and so, counted from 1.
    pub number: Option<u64>,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// What it left behind.
    pub results: Results,
    /// The times it stands for, if they were skipped.
    pub skipped: Option<SkippedTimes>,
    /// How far it has come, if it runs and has said so. Lists leave it out.
    pub progress: Option<Progress>,
    /// What it has printed so far, if it runs: a text that [`RunLog::decode`] reads. Lists leave it
    /// out.
    pub log: Option<String>,
}

/// Lists show so many characters of an output, so that a page of runs that print a lot fits into memory.
pub const LISTED_OUTPUT_CHARS: usize = 65_536;

impl Attempt {
    /// What it printed, or has printed so far.
    pub fn printed(&self) -> Option<RunLog> {
        self.results.output.as_deref().or(self.log.as_deref()).map(RunLog::decode)
    }

    /// As lists show it: with the beginning of its output.
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

/// Which runs to list.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AttemptFilter {
    /// Those of this job.
    pub job: Option<JobId>,
}

/// A running attempt that is to end.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cancellation {
    /// Which one.
    pub key: AttemptKey,
    /// A newer time takes its place; else somebody wants it ended.
    pub superseded: bool,
}

/// An attempt of a job that waits, for its time or for a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingAttempt {
    /// Which one.
    pub key: AttemptKey,
    /// The priority that its run was given, whatever its job's is.
    pub priority: Option<Priority>,
    /// For what.
    pub waits_for: WaitsFor,
}

/// What an attempt waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// This moment.
    Time(Timestamp),
    /// A worker of its pool.
    Worker {
        /// It could first have been claimed then.
        since: Timestamp,
        /// So many of its own tenant's would be claimed before it, of those that are among the first
        /// ten thousand of its pool by priority or of a lane of it by what they have waited,
        /// counted no further than a thousand; none if nobody asked for that.
        ahead: Option<u32>,
        /// When it may be claimed.
        opening: ClaimWindow,
    },
    /// A place: as many as may run do.
    Permit {
        /// It could first have been claimed then.
        since: Timestamp,
        /// Of this limit.
        limit: Limit,
        /// So many have one; none if nobody asked what is before it, and of a lane's limit, since
        /// those are all tenants'.
        running: Option<u32>,
    },
}

/// What became of the wish to end a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RunCancelled {
    /// It waited, and is recorded as cancelled.
    Withdrawn(AttemptKey),
    /// This attempt of it runs and was asked to end.
    Asked(AttemptKey),
    /// It had ended before.
    Over,
    /// There is no such run in the scope.
    NotFound,
}

/// One bounded step of forgetting.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Prune {
    /// Where the last step stopped.
    pub after: Option<AttemptKey>,
    /// Look at this many.
    pub limit: u32,
    /// Keep this many of each job.
    pub keep_per_job: u32,
    /// Keep nothing that ended before.
    pub keep_since: Timestamp,
}

/// What a step of forgetting did.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pruned {
    /// Looked at this many.
    pub seen: u64,
    /// Forgot this many.
    pub forgotten: u64,
    /// Where the next step goes on; `None` when the end was reached.
    pub next: Option<AttemptKey>,
}

verbs! {
    /// What workers and onlookers do with runs.
    trait AttemptStore {}

    /// Gives a worker the first attempts of its pools in the order of dispatch, a lane's guaranteed
    /// places first: by lane, then by what they rank at now (the higher of their priority and of what
    /// their waiting makes of it), then by deadline, then by since when they wait. No attempt is given twice, nor outside of the time in which it may be claimed,
    /// nor to a node that it forbids. The committed claim is the start. A node that is no longer
    /// alive gets nothing.
    ///
    /// Of attempts under a [limit](Claim::limits), or under one of their job's own, no more run at
    /// once, whoever claims, than it allows. One that finds no place is moved into the waiting room
    /// of that limit (see [`LimitStore`](crate::LimitStore)), and another one has its turn.
    write fn claim(claim: &Claim, now: Now) -> Claimed;

    /// Ends attempts that `node` has, each if the fence is the current one: its results, the
    /// job's history (by [`History::after`](evenkeel_core::History::after) with `alpha`), and its
    /// retry if it has one, all or nothing. Attempts do not spoil each other's chances. A job
    /// may be in the batch several times.
    ///
    /// A job that was cancelled or deleted is not tried again, nor a run for a time up to the
    /// moment of a pause that still lasts: its chain is over.
    ///
    /// If [`Then::EndRun`] brings a next time and the job's schedule
    /// [follows its end](evenkeel_core::Schedule::follows_its_end), that takes the place of its
    /// next regular time, unless it has none any more or the other is not after its last fired one;
    /// the scheduler is told as of a changed job. It is also told of a job whose chain did not end
    /// well. An end neither moves nor stops a job whose promise counts only since after the
    /// attempt began: it was decided under an older schedule.
    ///
    /// What an end that is recorded has for a [`Finish::hook`] is done in the same transaction, unless
    /// somebody wants the run ended: then its failure says nothing. A
    /// [failure that counts](Hook::CountFailure) is one more in a row if no attempt of the job has
    /// ended well since the last one that counted, else the first; when there are as many as named,
    /// the job is one to be [paused](crate::DeadStore::list_failing). Of a job that is over none counts.
    ///
    /// An end with [`Finish::unstored_since`] corrects what was recorded meanwhile: skip records of the
    /// job for times from then on that say [`Overlap`](evenkeel_core::advance::SkipReason::Overlap)
    /// say [`EndNotStored`](evenkeel_core::advance::SkipReason::EndNotStored).
    ///
    /// Jobs whose attempt did not end well, those of ends with [`Finish::judge`], and those on the
    /// watch list are to be judged at once.
    write fn finish(node: NodeNo, batch: Vec<Finish>, alpha: f64) -> Vec<FinishResult>;

    /// Takes attempts from `node`, each if the fence is the current one. Says which were. An attempt
    /// that goes [back into the queue](crate::AfterLoss::Queue) has a higher fence and the same attempt
    /// number; until another node claims it, it shows the node that had it.
    ///
    /// An attempt that would go back into the queue, but whose job was cancelled or deleted, is
    /// recorded as cancelled instead, which ends its chain; it counts as put back. So does one for a
    /// time up to the moment of a pause that still lasts.
    ///
    /// An attempt that [fails](crate::AfterLoss::Fail) ends as by [`finish`](Self::finish), and the crash is
    /// counted with it.
    write fn requeue(node: NodeNo, batch: Vec<Requeue>, now: Now) -> Vec<bool>;

    /// Of these attempts, those that run on `node`, in any order.
    read fn find_owned(node: NodeNo, keys: &[AttemptKey]) -> Vec<OwnedAttempt>;

    /// All attempts that run on `node`, at most `limit`.
    read fn list_owned(node: NodeNo, limit: u32) -> Vec<OwnedAttempt>;

    /// Attempts of `node` that are to end. They are told until they have ended.
    read fn cancellations(node: NodeNo) -> Vec<Cancellation>;

    /// Ends the run that the attempt belongs to, for good: what runs of it is asked to end (and
    /// told by [`cancellations`](Self::cancellations) until it has), what waits (in the queue, for
    /// the time of its retry, or as a trigger) is recorded as cancelled, which ends the chain. The
    /// job goes on with its next time.
    write fn cancel_run(scope: &Scope, key: AttemptKey, now: Now) -> RunCancelled;

    /// What waits of a job, oldest time first, at most a hundred. Nothing of a job that is not in the
    /// scope.
    ///
    /// With `ahead` also what is before it, if waiting counts as that says: nothing that depends on
    /// how much other tenants have in the queue, as long as no more than ten thousand wait in a pool,
    /// since nobody is made to look at more. That is still a lot: who need not know leaves it out,
    /// and then nothing is looked at but the job's own.
    read fn waiting_attempts(scope: &Scope, job: JobId, ahead: Option<Aging>, now: Now)
        -> Vec<WaitingAttempt>;

    /// How many attempts of these pools wait for a worker, counted no further than `limit`. Those
    /// that were not open when they came are left out: no worker could take them.
    read fn count_queued(pools: &[String], limit: u32) -> u32;

    /// How many attempts of these pools, and of that lane, would be claimed before one that comes now
    /// and stands there, counted no further than `limit`. Those that were not open when they came
    /// are left out; and so are other lanes, which have their own places.
    read fn count_queued_ahead(pools: &[String], place: QueuePosition, limit: u32, now: Now) -> u32;

    /// The attempt with this key, or for attempt 0 the latest attempt of its run that has started
    /// or is in the queue. A retry or trigger that waits for its time is pending: it is shown to
    /// those who ask for its key, and for attempt 0 if there is nothing else of its run.
    read fn get_attempt(scope: &Scope, key: AttemptKey) -> Option<Attempt>;

    /// The scope's attempts and skip records, newest scheduled time first for all jobs, newest
    /// chain first for one job. Attempts that wait for their first worker are included, retries and
    /// triggers that wait for their time are not. Of each output the first [`LISTED_OUTPUT_CHARS`] are
    /// there.
    read fn list_attempts(scope: &Scope, filter: AttemptFilter, page: PageRequest<AttemptKey>)
        -> Page<Attempt, AttemptKey>;

    /// Forgets ended attempts and skip records in key order from `after`. One is kept only while it
    /// is both among the newest of its job and young; the job's newest good and newest failed
    /// attempt are always kept.
    write fn prune(prune: Prune) -> Pruned;
}
