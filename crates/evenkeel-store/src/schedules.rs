//! Store operations of the scheduler: load jobs, look ahead, and fire runs.

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

/// Points to a run of a job. A job points to its newest run, and each run points to the previous
/// run of the job. The history of a job is read along these links from run to run, so firing needs
/// no additional index.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunLink {
    pub scheduled_at: Timestamp,
    pub sequence: Sequence,
}

/// The data of a job that the scheduler keeps in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct DueJob {
    pub no: JobNo,
    pub tenant: TenantNo,
    /// The next scheduled time; `None` if the job has none or is not active.
    pub next_at: Option<Timestamp>,
    pub generation: i32,
    /// Number of active runs, waiting or running.
    pub live: u32,
    pub head: Option<RunLink>,
    pub history: History,
    /// When the job was last registered, rescheduled, moved to another start time, or resumed.
    /// Deadlines that the job missed before `since` are ignored.
    pub since: Timestamp,
    /// Number of scheduled times that have been fired.
    pub fired: u64,
    /// The stored job definition, not parsed. Two definitions are equal if their texts are equal.
    pub definition: String,
}

/// A retry or trigger that waits for its due time.
#[derive(Clone, PartialEq, Debug)]
pub struct DelayedAttempt {
    /// When the attempt may start.
    pub due: Timestamp,
    pub key: AttemptKey,
    /// True if an earlier attempt of the run has saved a checkpoint. Only a claim returns the
    /// checkpoint itself.
    pub has_checkpoint: bool,
    /// Priority of this run, if it differs from the priority of the job.
    pub priority: Option<Priority>,
    pub job: DueJob,
}

#[derive(Clone, PartialEq, Debug)]
pub struct LookAhead {
    /// Time of the store's clock.
    pub now: Timestamp,
    /// Jobs that are new or were changed since the last call. A changed job is returned only once.
    pub changed: Vec<DueJob>,
    /// Retries and triggers that are due up to the requested time. Every call returns a due retry
    /// or trigger again until it is fired.
    pub delayed: Vec<DelayedAttempt>,
}

/// The queue data of an attempt: which worker may claim it, when, and in which order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueEntry {
    /// Only workers that serve this pool may claim the attempt.
    pub pool: String,
    pub lane: Lane,
    pub priority: Priority,
    /// True if the priority was set for this run, so that a new priority of the job does not change
    /// it.
    pub is_own_priority: bool,
    /// When the attempt became claimable by workers.
    pub since: Timestamp,
    /// Effect of the attempt's waiting time on its rank.
    pub rise: Rise,
    /// The deadline for the start of the attempt.
    pub should_start_by: Timestamp,
    /// Concurrency limit of the job's concurrency key.
    pub limit: Option<KeyLimit>,
    /// The attempt may not be claimed before this time.
    pub open_from: Option<Timestamp>,
    /// The attempt may not be claimed from this time on, until it gets a new claim window.
    pub open_until: Option<Timestamp>,
    /// Names of the nodes that may not claim the attempt.
    pub forbidden_nodes: Vec<String>,
}

/// How long an attempt has waited, and how that affects its rank.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueWait<'a> {
    /// When the attempt became claimable by workers.
    pub since: Timestamp,
    /// Priority of this run, if it differs from the priority of the job.
    pub priority: Option<Priority>,
    pub aging: &'a Aging,
}

impl QueueEntry {
    /// Returns the queue entry of an attempt that is queued at `now`, must start by
    /// `should_start_by`, and is expected to take `average`.
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

/// The period in which a queued attempt may be claimed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ClaimWindow {
    /// Start of the claim window; `None` if the attempt may be claimed immediately.
    pub from: Option<Timestamp>,
    /// End of the claim window; `None` if it never ends.
    pub until: Option<Timestamp>,
}

impl ClaimWindow {
    /// Returns the current or else the next claim window at `now`, for an attempt with the expected
    /// duration `average`.
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
    /// Average duration of the job's successful runs.
    pub average_good_duration: Option<Span>,
    pub definition: String,
}

/// How a fired attempt starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// The node that fires the attempt also claims it, which saves a write.
    Claimed,
    Queued(QueueEntry),
}

/// Fires a scheduled time of a job. The job gets its next scheduled time, and the run or the
/// skipped times are recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Fire {
    pub job: JobNo,
    pub tenant: TenantNo,
    /// Expected generation of the job.
    pub generation: i32,
    /// Expected next scheduled time of the job.
    pub due: Timestamp,
    /// Expected newest run of the job.
    pub head: Option<RunLink>,
    /// Scheduled times to record as skipped.
    pub skip: Option<SkippedTimes>,
    /// The scheduled time to fire, and how its attempt starts.
    pub start: Option<(Timestamp, Start)>,
    /// True if the job fires only without an active run.
    pub idle_only: bool,
    /// The job's next scheduled time after this fire.
    pub next_at: Option<Timestamp>,
}

/// Ends the active runs of a job because a newer scheduled time of the job is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Supersede {
    pub job: JobNo,
    /// Expected generation of the job.
    pub generation: i32,
    /// Expected next scheduled time of the job.
    pub due: Timestamp,
}

/// Delays a retry or trigger that may not start at its due time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Postpone {
    /// The old due time.
    pub due: Timestamp,
    pub key: AttemptKey,
    /// The new due time.
    pub until: Timestamp,
}

/// Fires a retry or trigger that is due.
#[derive(Clone, PartialEq, Debug)]
pub struct FireDelayed {
    pub due: Timestamp,
    pub key: AttemptKey,
    pub tenant: TenantNo,
    pub start: Start,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FireResult {
    /// The fire took effect. Contains the fence of the attempt if it was claimed.
    Fired(Fence),
    /// The job or the delayed attempt has changed since the scheduler decided to fire it. Nothing
    /// changed; the scheduler must load the job or attempt again.
    Stale,
    /// The job has an active run; nothing changed.
    Busy {
        /// True if a retry waits for its due time.
        retry_pending: bool,
    },
    /// The scheduled time is in the future by the store's clock; nothing changed.
    Early,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fired {
    /// Time of the store's clock, which is the start time of the claimed attempts.
    pub now: Timestamp,
    /// One result per fire, in the order of the batch.
    pub results: Vec<FireResult>,
}

verbs! {
    trait ScheduleStore {}

    /// Returns active jobs of a shard whose next scheduled time is in the time slot `until` or
    /// earlier, ordered by number, starting after the job `after`.
    read fn load_due(shard: Shard, until: Slot, after: Option<JobNo>, limit: u32) -> Vec<DueJob>;

    /// Returns the current data of these jobs, without cancelled and deleted jobs.
    read fn load_jobs(jobs: &[JobNo]) -> Vec<DueJob>;

    /// Returns changed jobs of these shards, and retries and triggers that are due up to `until`,
    /// oldest first, at most `limit` of each. A changed job is returned only once, so a caller that
    /// does not receive the answer must load the shards again.
    write fn look_ahead(shards: &[Shard], until: Timestamp, limit: u32, now: Now) -> LookAhead;

    /// Fires jobs for `node`. A job fires only if its generation, next scheduled time and newest
    /// run are still those in its [`Fire`], it is active, and it is due by the store's clock. With
    /// [`Fire::idle_only`], the job must also have no active run. One transaction records the
    /// attempt or its queue entry, the skipped times, and the job's next scheduled time. A rejected
    /// fire does not affect the other fires of the batch. Each job may occur only once in the
    /// batch.
    ///
    /// A started run is active, and [`DueJob::fired`] counts its scheduled time. If the node is not
    /// live, all results are `Stale`.
    write fn fire(node: NodeNo, batch: Vec<Fire>, now: Now) -> Fired;

    /// Fires retries and triggers for `node`, each only if it still waits with the due time in its
    /// [`FireDelayed`]. The runs of retries and triggers are already active.
    write fn fire_delayed(node: NodeNo, batch: Vec<FireDelayed>, now: Now) -> Fired;

    /// Ends the active runs of jobs for which a newer scheduled time is due, each only if the
    /// generation and next scheduled time of the job are still those in its [`Supersede`]. Running
    /// attempts are asked to stop; [`cancellations`](crate::AttemptStore::cancellations) returns
    /// them until they are finished. Waiting attempts are recorded as superseded, which finishes
    /// their runs. The jobs keep their schedules.
    write fn supersede(batch: &[Supersede], now: Now) -> ();

    /// Changes the due time of retries and triggers, each only if it still waits with the old due
    /// time.
    write fn postpone(batch: &[Postpone]) -> ();

    /// Returns up to `limit` queued attempts of these shards whose claim window
    /// ([`QueueEntry::open_until`]) has ended.
    read fn find_closed_windows(shards: &[Shard], limit: u32, now: Now) -> Vec<ClosedAttempt>;

    /// Sets new claim windows of queued attempts. Attempts that are no longer queued are skipped.
    write fn set_claim_windows(batch: &[(AttemptKey, ClaimWindow)]) -> ();
}
