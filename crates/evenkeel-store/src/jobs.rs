//! Verbs on jobs that users reach.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::order::Priority;
use evenkeel_core::status::{JobFacts, JobState, JobStatus, NotAllowed};
use evenkeel_core::{
    About, AttemptKey, Definition, History, JobId, JobNo, Slot, TenantNo, Timestamp,
};

use crate::verbs::verbs;
use crate::{
    Applied, JobCommand, JobCounts, JobCursor, JobFilter, JobSort, Now, Page, PageRequest, Scope,
};

/// The number of characters of the last error that a job shows. Its attempt has the whole text.
pub const LAST_ERROR_MAX: usize = 4096;

#[derive(Clone, PartialEq, Debug)]
pub struct NewJob {
    pub id: JobId,
    /// What describes the job to users; the store does not act on it.
    pub about: About,
    pub definition: Definition,
    /// The first regular time.
    pub next_at: Option<Timestamp>,
}

/// A job as stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    pub no: JobNo,
    pub id: JobId,
    /// The public number of the job: 1, 2, … within its tenant, in the order of registration.
    /// Numbers are not reused.
    pub number: i64,
    pub tenant: TenantNo,
    pub about: About,
    pub definition: Definition,
    pub state: JobState,
    /// Raised by every command, so that a command on an outdated copy can be refused.
    pub generation: i32,
    pub created_at: Timestamp,
    /// When a command last changed the job.
    pub updated_at: Timestamp,
    /// The next regular time.
    pub next_at: Option<Timestamp>,
    /// The last regular time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// The number of active runs.
    pub live: u32,
    /// The number of active runs that wait, for a worker or for the time of their retry.
    pub waiting: u32,
    /// The number of attempts since the job was registered.
    pub executions: u64,
    /// The outcome of the last attempt that ended or was withdrawn.
    pub last_outcome: Option<Outcome>,
    pub history: History,
    /// Since when the deadline promise counts: the last of registration, change of schedule, move
    /// and resume.
    pub since: Timestamp,
    /// The number of regular times that have been fired.
    pub fired: u64,
    /// Since when the newest attempt of the newest run is running.
    pub running_since: Option<Timestamp>,
    /// The attempt that `running_since` is about.
    pub running: Option<AttemptKey>,
    /// The number of retries of the newest active run.
    pub retry_count: u16,
    /// Since when the job is paused or cancelled.
    pub stopped_at: Option<Timestamp>,
    /// The note of the [command](crate::Action::Suspend) that paused the job.
    pub note: Option<String>,
    /// The number of attempts that succeeded.
    pub succeeded_runs: u64,
    /// The number of attempts that failed or timed out.
    pub failed_runs: u64,
    /// The error of the last attempt, if that failed or timed out: the first [`LAST_ERROR_MAX`]
    /// characters.
    pub last_error: Option<String>,
}

impl Job {
    /// Returns the status that users see at `now`.
    pub fn status(&self, now: Timestamp) -> JobStatus {
        JobFacts { is_due: self.is_due(now), ..self.facts() }.status()
    }

    /// Returns when the next regular time starts, as far as the job's own rules decide: see
    /// [`Definition::next_start`].
    pub fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        let average = self.definition.average(self.history.average_good_duration);
        self.next_at.map(|next| self.definition.next_start(next, average, now))
    }

    /// Returns true if the next regular time has come, so that only a worker is missing.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state == JobState::Active && self.next_start(now).is_some_and(|start| start <= now)
    }

    /// Returns the time of a stop at `now`. It is not before any time that was fired, even if the
    /// clock was set back since.
    pub fn stop_at(&self, now: Timestamp) -> Timestamp {
        let running = self.running.map(|key| key.scheduled_at);
        [Some(now), self.last_fired_at, running].into_iter().flatten().max().unwrap_or(now)
    }

    /// Returns the facts that decide which commands the job allows, and its status except for
    /// whether the job [is due](Self::is_due).
    pub fn facts(&self) -> JobFacts {
        JobFacts {
            state: self.state,
            running: self.live.saturating_sub(self.waiting),
            live: self.live,
            has_next: self.next_at.is_some(),
            is_due: false,
            last_outcome: self.last_outcome,
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Registered {
    Created {
        /// The number by which stores and nodes know the job.
        no: JobNo,
        /// See [`Job::number`].
        number: i64,
    },
    /// This job of the tenant has the same name and configuration.
    NameTaken(JobId),
    /// This job of the tenant holds the deduplication key.
    Duplicate(JobId),
}

/// A change of a job. Fields that are `None` stay as they are.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobChange {
    pub about: Option<About>,
    pub definition: Option<Definition>,
    /// `Some(None)` removes the next regular time. A new time restarts the deadline promise.
    /// Ignored if the job is paused: a paused job gets its next time when it is resumed.
    pub next_at: Option<Option<Timestamp>>,
}

/// A request for a run outside the schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// Distinguishes triggers of the same microsecond.
    pub n: u32,
    /// The priority of this run, if it differs from the job's.
    pub priority: Option<Priority>,
    /// Refuses the run as [busy](Triggered::Busy) if the job has an active run, even if its overlap
    /// policy would allow another.
    pub idle_only: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Triggered {
    /// The run will have this key.
    Accepted(AttemptKey),
    /// The scope has no such job.
    NotFound,
    /// The job has an active run, and its overlap policy or the request allows no other.
    Busy,
    /// The state of the job does not allow a run.
    NotAllowed(NotAllowed),
    /// The holder of the deduplication key, which may be the job itself, keeps the job from
    /// running.
    Duplicate {
        /// The holder of the key.
        job: JobId,
        /// The run of the holder that stands in for the requested one: a waiting run, else a
        /// running one, else the next regular time, else the last run. A paused job may have none
        /// of these.
        run: Option<AttemptKey>,
    },
}

/// The number of jobs whose next time is in a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotLoad {
    /// The jobs of the scope among those that were read.
    pub jobs: u32,
    /// All jobs of the slot were read; otherwise there may be more.
    pub counted_all: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedJob {
    pub id: JobId,
    /// Distinguishes jobs of the same name.
    pub configuration: Option<String>,
}

verbs! {
    /// The verbs on jobs that users reach.
    trait JobStore {}

    /// Registers jobs in one transaction. Returns the results in the order of `jobs`. A job whose
    /// name is taken is left out, whether the other job is stored or comes earlier in the batch.
    ///
    /// Each job gets a [number](Job::number). Numbers rise within a batch, and later batches get
    /// higher ones. There may be gaps.
    ///
    /// A job whose [deduplication key](evenkeel_core::dedup) is held by a job that [keeps it
    /// out](evenkeel_core::dedup::DedupScope::blocks_others) is left out, too. This is reported before
    /// a name that is taken. Otherwise the job holds the key from then on.
    ///
    /// The store notifies the scheduler of jobs that are due before the end of the next slot.
    write fn register(scope: &Scope, jobs: Vec<NewJob>, now: Now) -> Vec<Registered>;

    /// Registers a job that is paused from the start: no reader ever sees it active. It has no
    /// first time, so it cannot fire before it is resumed.
    write fn register_paused(scope: &Scope, job: NewJob, now: Now) -> Registered;

    read fn get(scope: &Scope, id: JobId) -> Option<Job>;

    /// Returns the job and the time of the store's clock, in one round trip: this is the most
    /// frequent request.
    read fn get_with_now(scope: &Scope, id: JobId) -> Option<(Job, Timestamp)>;

    /// Applies commands to existing jobs in one transaction. A refused command does not affect the
    /// others. A batch has at most [`COMMANDS_MAX`](crate::COMMANDS_MAX) commands, and each job at
    /// most once.
    ///
    /// [`JobFacts::apply`](evenkeel_core::status::JobFacts::apply) decides each command from the
    /// facts that are true in this transaction. So an acknowledged command holds against a fire, a
    /// claim or an end at the same time. Each applied command raises the generation of the job.
    ///
    /// - A new priority also applies to queued attempts, except runs with a priority of their own.
    ///   The time they have waited still counts.
    /// - A command that changes the state of the job resets its count of [consecutive
    ///   failures](crate::DeadStore::list_failing).
    /// - A command that starts a run, resumes the job or changes its [deduplication
    ///   key](evenkeel_core::dedup) takes the key, unless the holder keeps the job out. A key that
    ///   the job no longer has is released.
    write fn apply_commands(scope: &Scope, commands: Vec<JobCommand>, now: Now) -> Vec<Applied>;

    /// Deletes up to `limit` dead letters and attempts of a deleted job of the scope, with
    /// everything that belongs to them. Returns their number. Fewer than `limit` means that only
    /// active runs are left. A run is deleted whole, so the number can be slightly above `limit`.
    write fn purge(scope: &Scope, id: JobId, limit: u32) -> u64;

    /// Returns those of these jobs that exist, in any order. At most
    /// [`COMMANDS_MAX`](crate::COMMANDS_MAX) ids.
    read fn get_jobs(scope: &Scope, ids: &[JobId]) -> Vec<Job>;

    /// Returns the ids of the jobs with these [numbers](Job::number), in the order of `numbers`.
    /// `None` for a job that is deleted or not of the scope. At most
    /// [`COMMANDS_MAX`](crate::COMMANDS_MAX) numbers.
    read fn ids_of_numbers(scope: &Scope, numbers: &[i64]) -> Vec<Option<JobId>>;

    /// Returns up to `limit` jobs of the scope with this name, ordered by configuration. A deleted
    /// job has no name.
    read fn jobs_named(scope: &Scope, name: &str, limit: u32) -> Vec<NamedJob>;

    /// Returns the jobs of the scope that pass the filter, ordered by `sort` and then by creation
    /// (in a list by name, by configuration). A descending list is the exact reverse.
    ///
    /// The cost of a page does not depend on its depth or on the number of jobs. If an index leads
    /// from the filter to few jobs ([`JobFilter::sorted_max`]), all of them are read and the total
    /// is exact. Otherwise the list is walked in its order, up to
    /// [`LIST_SCAN_MAX`](crate::LIST_SCAN_MAX) jobs for a page. Then the page may have fewer jobs
    /// than requested, even none, although a next page exists; the offset reaches no further; and
    /// the total may be an estimate. Without a filter, the total is a stored count.
    ///
    /// In a list by next times, the jobs of one slot of 15 minutes are in order unless more than
    /// [`LIST_SCAN_MAX`](crate::LIST_SCAN_MAX) jobs have their next time in it.
    read fn list_jobs(
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Page<Job, JobCursor>;

    /// Counts the jobs of the scope by status.
    read fn job_counts(scope: &Scope) -> JobCounts;

    /// Counts the jobs of all tenants by status. Running and waiting attempts are counted instead
    /// of their jobs, so a job with several counts several times.
    read fn all_job_counts() -> JobCounts;

    /// Starts a run outside the schedule, without changing the schedule's phase. The run is active
    /// from then on and keeps its requested priority to its end, even if the job's priority
    /// changes.
    ///
    /// A paused job runs, too. A run for a time up to the moment of the pause would be stopped by
    /// it, so the run gets a later time. A job with a [deduplication key](evenkeel_core::dedup)
    /// takes the key, unless the holder, which may be the job itself, keeps the job from running.
    write fn trigger(scope: &Scope, id: JobId, trigger: Trigger, now: Now) -> Triggered;

    /// Counts the scope's jobs whose next time is in each of these slots. At most `limit` jobs of
    /// each slot are read, of any tenant, so the cost for one tenant does not grow with the jobs of
    /// others. Which jobs are read, if there are more, is not specified.
    read fn slot_loads(scope: &Scope, slots: &[Slot], limit: u32) -> Vec<SlotLoad>;
}
