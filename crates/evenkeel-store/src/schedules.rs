//! Verbs of the scheduler: look ahead, and fire.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::KeyLimit;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{
    AttemptKey, Definition, History, JobNo, NodeNo, Sequence, Shard, Slot, Span, TenantNo,
    Timestamp,
};

use crate::Now;
use crate::verbs::verbs;

/// Points at a chain of a job: the newest one from the job, the one before from each chain. One
/// job's history is found along these links, so that firing needs no index for it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunLink {
    /// When the chain was for.
    pub scheduled_at: Timestamp,
    /// Which of the job's chains at that time.
    pub sequence: Sequence,
}

/// What the scheduler keeps of a job in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct DueJob {
    /// Its number.
    pub no: JobNo,
    /// Whose it is.
    pub tenant: TenantNo,
    /// Its next regular time; `None` if it has none or is not active.
    pub next_at: Option<Timestamp>,
    /// Its generation.
    pub generation: i32,
    /// Chains of it that are not over.
    pub live: u32,
    /// Its newest chain.
    pub head: Option<RunLink>,
    /// What is remembered of its past.
    pub history: History,
    /// Since when its promise counts: its creation, its last change of schedule, its last
    /// move or resume.
    pub since: Timestamp,
    /// How many of its regular times have been fired.
    pub fired: u64,
    /// Its stored definition, not yet read: equal texts are equal definitions.
    pub definition: String,
}

/// A retry or trigger and its job.
#[derive(Clone, PartialEq, Debug)]
pub struct DelayedAttempt {
    /// When it may start.
    pub due: Timestamp,
    /// The attempt it is.
    pub key: AttemptKey,
    /// Has an earlier attempt saved a checkpoint? Only a claim hands it over.
    pub has_checkpoint: bool,
    /// The priority that this run was given, whatever its job's is.
    pub priority: Option<Priority>,
    /// Its job.
    pub job: DueJob,
}

/// What a look ahead found.
#[derive(Clone, PartialEq, Debug)]
pub struct LookAhead {
    /// What the store's clock said.
    pub now: Timestamp,
    /// Jobs that are new or changed since the last look; they are not told again.
    pub changed: Vec<DueJob>,
    /// Retries and triggers due until then. They are told until they are fired.
    pub delayed: Vec<DelayedAttempt>,
}

/// Where an attempt stands in the queue for workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueEntry {
    /// The workers that may take it.
    pub pool: String,
    /// Its lane.
    pub lane: Lane,
    /// Its weight in the lane.
    pub priority: Priority,
    /// It was given to this run: a change of its job's does not change it.
    pub is_own_priority: bool,
    /// Since when it waits: when it could first have been claimed.
    pub since: Timestamp,
    /// What waiting does for it.
    pub rise: Rise,
    /// Its deadline.
    pub should_start_by: Timestamp,
    /// Only so many such may run.
    pub limit: Option<KeyLimit>,
    /// Nobody may claim it before.
    pub open_from: Option<Timestamp>,
    /// From then on nobody may claim it any more, until it is opened again.
    pub open_until: Option<Timestamp>,
    /// Names of nodes that may not claim it.
    pub forbidden_nodes: Vec<String>,
}

/// Since when an attempt waits, and what that counts for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueWait<'a> {
    /// When it could first have been claimed.
    pub since: Timestamp,
    /// The priority that this run was given, if it was.
    pub priority: Option<Priority>,
    /// How waiting counts.
    pub aging: &'a Aging,
}

impl QueueEntry {
    /// The place of an attempt of a job that must start by `should_start_by`, takes `average`, and
    /// comes into the queue at `now`.
    pub fn new(
        definition: &Definition,
        should_start_by: Timestamp,
        average: Span,
        now: Timestamp,
        waited: QueueWait<'_>,
    ) -> Self {
        let opening = ClaimWindow::of(definition, average, now);
        let priority = waited.priority.unwrap_or(definition.priority);
        let since = opening.from.map_or(waited.since, |from| waited.since.max(from));
        Self {
            is_own_priority: waited.priority.is_some(),
            since,
            rise: waited.aging.rise(priority, since),
            open_from: opening.from,
            open_until: opening.until,
            forbidden_nodes: definition.dont_run_on_nodes.clone(),
            pool: definition.pool.clone(),
            lane: definition.lane,
            priority,
            should_start_by,
            limit: definition.key_limit(),
        }
    }
}

/// When an attempt in the queue may be claimed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ClaimWindow {
    /// Not before; at once, if `None`.
    pub from: Option<Timestamp>,
    /// Not from then on; `None` if nothing closes it.
    pub until: Option<Timestamp>,
}

impl ClaimWindow {
    /// The first time from `now` on in which an attempt that takes `average` may start.
    pub fn of(definition: &Definition, average: Span, now: Timestamp) -> Self {
        let from = definition.may_start_from(now, average);
        Self {
            from: (from > now).then_some(from),
            until: definition.may_start_until(from, average),
        }
    }
}

/// An attempt in the queue that may not be claimed any more.
#[derive(Clone, PartialEq, Debug)]
pub struct ClosedAttempt {
    /// Which one.
    pub key: AttemptKey,
    /// How long its job's good runs take.
    pub average_good_duration: Option<Span>,
    /// The stored definition of its job.
    pub definition: String,
}

/// How a fired attempt begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// Already claimed by the node that fires it: one write fewer.
    Claimed,
    /// In the queue.
    Queued(QueueEntry),
}

/// A job whose regular time has come: it is advanced, and what the advance says is recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Fire {
    /// Which job.
    pub job: JobNo,
    /// Whose it is.
    pub tenant: TenantNo,
    /// The generation that was decided on.
    pub generation: i32,
    /// The next regular time that was decided on.
    pub due: Timestamp,
    /// The newest chain that was known.
    pub head: Option<RunLink>,
    /// Times to record as skipped.
    pub skip: Option<SkippedTimes>,
    /// The time to fire, if one is, and how.
    pub start: Option<(Timestamp, Start)>,
    /// Must the job be idle?
    pub idle_only: bool,
    /// The next regular time from now on.
    pub next_at: Option<Timestamp>,
}

/// A due time that takes the place of what goes on of its job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Supersede {
    /// Which job.
    pub job: JobNo,
    /// The generation that was decided on.
    pub generation: i32,
    /// The next regular time that was decided on.
    pub due: Timestamp,
}

/// A retry or trigger that may not start at its time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Postpone {
    /// When it was due.
    pub due: Timestamp,
    /// The attempt it is.
    pub key: AttemptKey,
    /// When it is due instead.
    pub until: Timestamp,
}

/// A retry or trigger whose time has come.
#[derive(Clone, PartialEq, Debug)]
pub struct FireDelayed {
    /// When it was due.
    pub due: Timestamp,
    /// The attempt it is.
    pub key: AttemptKey,
    /// Whose it is.
    pub tenant: TenantNo,
    /// How it begins.
    pub start: Start,
}

/// What became of one job or wake of a batch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FireResult {
    /// It took effect. A claimed attempt has this fence.
    Fired(Fence),
    /// The job or wake was not what was decided on; nothing was changed. Load it again.
    Stale,
    /// The job is not idle; nothing was changed.
    Busy {
        /// Does a retry of it wait for its time?
        retry_pending: bool,
    },
    /// It is not due by the store's clock; nothing was changed.
    Early,
}

/// What became of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fired {
    /// What the store's clock said: claimed attempts started then.
    pub now: Timestamp,
    /// In the order of the batch.
    pub results: Vec<FireResult>,
}

verbs! {
    /// What the scheduler does.
    trait ScheduleStore {}

    /// Active jobs of a shard whose next time lies in `until` or before, by number, after `after`.
    read fn load_due(shard: Shard, until: Slot, after: Option<JobNo>, limit: u32) -> Vec<DueJob>;

    /// These jobs as they are now. Those that are cancelled or deleted are left out.
    read fn load_jobs(jobs: &[JobNo]) -> Vec<DueJob>;

    /// What is new in the given shards: changed jobs, and wakes due until `until`, oldest first,
    /// at most `limit` of each.
    ///
    /// Who does not get the answer has lost what it told as changed, and must load the shards anew.
    write fn look_ahead(shards: &[Shard], until: Timestamp, limit: u32, now: Now) -> LookAhead;

    /// Fires jobs for `node`: for each whose generation, next time and head are as decided, that
    /// is active, due by the store's clock, and idle if it must be, the run or its ticket and the
    /// skipped times are recorded and the job is advanced, all or nothing. A started chain is live.
    /// Jobs do not spoil each other's chances. Each job is in the batch once.
    ///
    /// A regular time that is started counts in the job's [`DueJob::fired`].
    ///
    /// A node that is no longer alive fires nothing: all is `Stale`.
    write fn fire(node: NodeNo, batch: Vec<Fire>, now: Now) -> Fired;

    /// Fires retries and triggers for `node`, each as long as its wake is there. The chain they
    /// belong to is live already.
    write fn fire_delayed(node: NodeNo, batch: Vec<FireDelayed>, now: Now) -> Fired;

    /// Ends what goes on of jobs whose newer time takes its place, each if its generation and next
    /// time are as decided: what runs is asked to end (and told by
    /// [`cancellations`](crate::AttemptStore::cancellations) until it has), what waits is recorded as
    /// superseded, which ends its chain. The jobs go on.
    write fn supersede(batch: &[Supersede], now: Now) -> ();

    /// Puts retries and triggers off, each as long as its wake is there: `due` becomes the other
    /// moment.
    write fn postpone(batch: &[Postpone]) -> ();

    /// Attempts in the queue, of jobs of the given shards, that may not be claimed any more because
    /// their [`QueueEntry::open_until`] has passed; at most `limit`.
    read fn find_closed_windows(shards: &[Shard], limit: u32, now: Now) -> Vec<ClosedAttempt>;

    /// Gives attempts in the queue another time to be claimed in. Those that are there no more are
    /// left out.
    write fn set_claim_windows(batch: &[(AttemptKey, ClaimWindow)]) -> ();
}
