//! Verbs of the scheduler: load jobs, look ahead, fire.

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

/// A link to a run of a job. The job links to its newest run, and each run to the run before. The
/// history of a job is read along these links, so that firing needs no index for it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunLink {
    pub scheduled_at: Timestamp,
    pub sequence: Sequence,
}

/// What the scheduler keeps of a job in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct DueJob {
    pub no: JobNo,
    pub tenant: TenantNo,
    /// The next regular time; `None` if there is none or the job is not active.
    pub next_at: Option<Timestamp>,
    pub generation: i32,
    /// The number of active runs.
    pub live: u32,
    /// The newest run.
    pub head: Option<RunLink>,
    pub history: History,
    /// Since when the deadline promise counts: the last of registration, change of schedule, move
    /// and resume.
    pub since: Timestamp,
    /// The number of regular times that have been fired.
    pub fired: u64,
    /// The stored definition, not parsed. Equal texts are equal definitions.
    pub definition: String,
}

/// A retry or trigger that waits for its time.
#[derive(Clone, PartialEq, Debug)]
pub struct DelayedAttempt {
    /// When the attempt may start.
    pub due: Timestamp,
    pub key: AttemptKey,
    /// An earlier attempt has saved a checkpoint. Only a claim returns it.
    pub has_checkpoint: bool,
    /// The priority of this run, if it differs from the job's.
    pub priority: Option<Priority>,
    pub job: DueJob,
}

#[derive(Clone, PartialEq, Debug)]
pub struct LookAhead {
    /// The time of the store's clock.
    pub now: Timestamp,
    /// Jobs that are new or changed since the last look. They are not returned again.
    pub changed: Vec<DueJob>,
    /// Attempts that are due until the given time. They are returned until they are fired.
    pub delayed: Vec<DelayedAttempt>,
}

/// The place of an attempt in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueEntry {
    /// The workers that may claim it.
    pub pool: String,
    pub lane: Lane,
    pub priority: Priority,
    /// The priority was given to this run, so a change of the job's priority does not affect it.
    pub is_own_priority: bool,
    /// Since when the attempt could have been claimed.
    pub since: Timestamp,
    /// What the waiting time does to the rank.
    pub rise: Rise,
    /// The deadline.
    pub should_start_by: Timestamp,
    /// The limit of the job's concurrency key.
    pub limit: Option<KeyLimit>,
    /// The attempt may not be claimed before this.
    pub open_from: Option<Timestamp>,
    /// The attempt may not be claimed from this time on, until it gets a new claim window.
    pub open_until: Option<Timestamp>,
    /// The names of nodes that may not claim it.
    pub forbidden_nodes: Vec<String>,
}

/// Since when an attempt waits, and how that counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueWait<'a> {
    /// Since when the attempt could have been claimed.
    pub since: Timestamp,
    /// The priority of this run, if it differs from the job's.
    pub priority: Option<Priority>,
    pub aging: &'a Aging,
}

impl QueueEntry {
    /// Returns the entry of an attempt that is queued at `now`, must start by `should_start_by` and
    /// takes `average`.
    pub fn new(
        definition: &Definition,
        should_start_by: Timestamp,
        average: Span,
        now: Timestamp,
        waited: QueueWait<'_>,
    ) -> Self {
        let window = ClaimWindow::of(definition, average, now);
        let priority = waited.priority.unwrap_or(definition.priority);
        let since = window.from.map_or(waited.since, |from| waited.since.max(from));
        Self {
            is_own_priority: waited.priority.is_some(),
            since,
            rise: waited.aging.rise(priority, since),
            open_from: window.from,
            open_until: window.until,
            forbidden_nodes: definition.dont_run_on_nodes.clone(),
            pool: definition.pool.clone(),
            lane: definition.lane,
            priority,
            should_start_by,
            limit: definition.key_limit(),
        }
    }
}

/// When a queued attempt may be claimed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ClaimWindow {
    /// Not before this; at once if `None`.
    pub from: Option<Timestamp>,
    /// Not from this time on; always if `None`.
    pub until: Option<Timestamp>,
}

impl ClaimWindow {
    /// Returns the first window from `now` on in which an attempt that takes `average` may start.
    pub fn of(definition: &Definition, average: Span, now: Timestamp) -> Self {
        let from = definition.may_start_from(now, average);
        Self {
            from: (from > now).then_some(from),
            until: definition.may_start_until(from, average),
        }
    }
}

/// A queued attempt whose claim window has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct ClosedAttempt {
    pub key: AttemptKey,
    /// The average duration of the job's successful runs.
    pub average_good_duration: Option<Span>,
    pub definition: String,
}

/// How a fired attempt starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// Claimed by the node that fires it, which saves a write.
    Claimed,
    Queued(QueueEntry),
}

/// A regular time of a job that has come. The job advances, and its run or skipped times are
/// recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Fire {
    pub job: JobNo,
    pub tenant: TenantNo,
    /// The generation that the decision is based on.
    pub generation: i32,
    /// The next regular time that the decision is based on.
    pub due: Timestamp,
    /// The newest run that the decision is based on.
    pub head: Option<RunLink>,
    /// Times to record as skipped.
    pub skip: Option<SkippedTimes>,
    /// The time to fire, and how the attempt starts.
    pub start: Option<(Timestamp, Start)>,
    /// The job must have no active run.
    pub idle_only: bool,
    /// The next regular time after this.
    pub next_at: Option<Timestamp>,
}

/// A due time that replaces the active runs of its job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Supersede {
    pub job: JobNo,
    /// The generation that the decision is based on.
    pub generation: i32,
    /// The next regular time that the decision is based on.
    pub due: Timestamp,
}

/// A retry or trigger that may not start at its time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Postpone {
    /// The old time.
    pub due: Timestamp,
    pub key: AttemptKey,
    /// The new time.
    pub until: Timestamp,
}

/// A retry or trigger whose time has come.
#[derive(Clone, PartialEq, Debug)]
pub struct FireDelayed {
    pub due: Timestamp,
    pub key: AttemptKey,
    pub tenant: TenantNo,
    pub start: Start,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FireResult {
    /// The fire took effect. A claimed attempt has this fence.
    Fired(Fence),
    /// The job or the delayed attempt is not as it was when the fire was decided. Nothing changed;
    /// load it again.
    Stale,
    /// The job has an active run; nothing changed.
    Busy {
        /// A retry waits for its time.
        retry_pending: bool,
    },
    /// The time has not come by the store's clock; nothing changed.
    Early,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fired {
    /// The time of the store's clock: the start of the claimed attempts.
    pub now: Timestamp,
    /// In the order of the batch.
    pub results: Vec<FireResult>,
}

verbs! {
    trait ScheduleStore {}

    /// Returns active jobs of a shard whose next time is in slot `until` or earlier, by number,
    /// after `after`.
    read fn load_due(shard: Shard, until: Slot, after: Option<JobNo>, limit: u32) -> Vec<DueJob>;

    /// Returns these jobs as they are now, without those that are cancelled or deleted.
    read fn load_jobs(jobs: &[JobNo]) -> Vec<DueJob>;

    /// Returns what is new in the shards: changed jobs, and delayed attempts that are due until
    /// `until`, oldest first, at most `limit` of each. A caller that does not receive the answer
    /// has lost the changed jobs and must load the shards again.
    write fn look_ahead(shards: &[Shard], until: Timestamp, limit: u32, now: Now) -> LookAhead;

    /// Fires jobs for `node`. A job fires if its generation, next time and head are as decided, if
    /// it is active and due by the store's clock, and if it has no active run where
    /// [`Fire::idle_only`] requires it. Then the attempt or queue entry and the skipped times are
    /// recorded and the job advances, all or nothing. A refused fire does not affect the others.
    /// Each job occurs once in the batch.
    ///
    /// A started run is active, and its time counts in [`DueJob::fired`]. If the node is not live,
    /// all results are `Stale`.
    write fn fire(node: NodeNo, batch: Vec<Fire>, now: Now) -> Fired;

    /// Fires retries and triggers for `node`, each if it still waits with this due time. Their runs
    /// are active already.
    write fn fire_delayed(node: NodeNo, batch: Vec<FireDelayed>, now: Now) -> Fired;

    /// Ends the active runs of jobs for which a newer time has come, each if the generation and
    /// next time are as decided. Running attempts are asked to end and are returned by
    /// [`cancellations`](crate::AttemptStore::cancellations) until they have ended. Waiting
    /// attempts are recorded as superseded, which ends their runs. The jobs continue.
    write fn supersede(batch: &[Supersede], now: Now) -> ();

    /// Changes the due time of retries and triggers, each if it still waits with the old time.
    write fn postpone(batch: &[Postpone]) -> ();

    /// Returns up to `limit` queued attempts of the shards whose [`QueueEntry::open_until`] has
    /// passed.
    read fn find_closed_windows(shards: &[Shard], limit: u32, now: Now) -> Vec<ClosedAttempt>;

    /// Gives queued attempts new claim windows. Attempts that are no longer queued are skipped.
    write fn set_claim_windows(batch: &[(AttemptKey, ClaimWindow)]) -> ();
}
