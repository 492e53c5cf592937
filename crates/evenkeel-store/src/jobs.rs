//! Store operations on jobs for API users.

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

/// Maximum number of characters of the last error that a job shows. The stored attempt keeps the
/// whole error text.
pub const LAST_ERROR_MAX: usize = 4096;

#[derive(Clone, PartialEq, Debug)]
pub struct NewJob {
    pub id: JobId,
    /// Description of the job for users; the store does not act on it.
    pub about: About,
    pub definition: Definition,
    /// The first scheduled time.
    pub next_at: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    pub no: JobNo,
    pub id: JobId,
    /// Public number of the job, counted 1, 2, … within its tenant in the order of registration.
    /// Job numbers are not reused.
    pub number: i64,
    pub tenant: TenantNo,
    pub about: About,
    pub definition: Definition,
    pub state: JobState,
    /// A number that every command increments, so that a command based on an outdated copy of the
    /// job can be rejected.
    pub generation: i32,
    pub created_at: Timestamp,
    /// When a command last changed the job.
    pub updated_at: Timestamp,
    /// The next scheduled time.
    pub next_at: Option<Timestamp>,
    /// The last scheduled time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// Number of active runs, waiting or running.
    pub live: u32,
    /// Number of active runs that wait for a worker or for the due time of a retry or trigger.
    pub waiting: u32,
    /// Number of attempts since the job was registered.
    pub executions: u64,
    /// Outcome of the last attempt that finished or was cancelled.
    pub last_outcome: Option<Outcome>,
    pub history: History,
    /// When the job was last registered, rescheduled, moved to another start time, or resumed.
    /// Deadlines that the job missed before `since` are ignored.
    pub since: Timestamp,
    /// Number of scheduled times that have been fired.
    pub fired: u64,
    /// When the newest attempt of the newest run started; `None` if that attempt is not running.
    pub running_since: Option<Timestamp>,
    /// The attempt that started at `running_since`.
    pub running: Option<AttemptKey>,
    /// Number of retries of the newest active run.
    pub retry_count: u16,
    /// When the job was paused or cancelled.
    pub stopped_at: Option<Timestamp>,
    /// The note of the [command](crate::Action::Suspend) that paused the job.
    pub note: Option<String>,
    /// Number of successful attempts.
    pub succeeded_runs: u64,
    /// Number of attempts that failed or timed out.
    pub failed_runs: u64,
    /// Error of the last attempt, if it failed or timed out, cut to [`LAST_ERROR_MAX`] characters.
    pub last_error: Option<String>,
}

impl Job {
    /// Returns the status of the job that users see at `now`.
    pub fn status(&self, now: Timestamp) -> JobStatus {
        JobFacts { is_due: self.is_due(now), ..self.facts() }.status()
    }

    /// Returns when the next scheduled run can start, given the blackouts and other rules of the
    /// job; see [`Definition::next_start`].
    pub fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        let average = self.definition.average(self.history.average_good_duration);
        self.next_at.map(|next| self.definition.next_start(next, average, now))
    }

    /// Returns true if the next scheduled run of the job may start and only needs a worker.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state == JobState::Active && self.next_start(now).is_some_and(|start| start <= now)
    }

    /// Returns the stop time to store for a job that is paused or cancelled at `now`. The stop time
    /// is never before the job's last fired time, even if the clock was set back.
    pub fn stop_at(&self, now: Timestamp) -> Timestamp {
        let running = self.running.map(|key| key.scheduled_at);
        [Some(now), self.last_fired_at, running].into_iter().flatten().max().unwrap_or(now)
    }

    /// Returns the facts that decide which commands the job allows and which status it has.
    /// [`is_due`](Self::is_due) is not included.
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
        /// The job number that stores and nodes use internally.
        no: JobNo,
        /// See [`Job::number`].
        number: i64,
    },
    /// Contains the tenant's other job with the same name and configuration.
    NameTaken(JobId),
    /// Contains the tenant's other job that holds the deduplication key.
    Duplicate(JobId),
}

/// A change of a job; a field that is `None` keeps its stored value.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobChange {
    pub about: Option<About>,
    pub definition: Option<Definition>,
    /// `Some(None)` removes the next scheduled time. If a new scheduled time is set, deadlines that
    /// were missed before are ignored. The store ignores `next_at` if the job is paused, since a
    /// paused job gets its next scheduled time when it is resumed.
    pub next_at: Option<Option<Timestamp>>,
}

impl JobChange {
    /// Returns the description and the definition of `job` after the change.
    pub(crate) fn applied_to<'a>(&'a self, job: &'a Job) -> (&'a About, &'a Definition) {
        let about = self.about.as_ref().unwrap_or(&job.about);
        (about, self.definition.as_ref().unwrap_or(&job.definition))
    }
}

/// A request to run a job outside its schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// Distinguishes triggers of a job in the same microsecond.
    pub n: u32,
    /// Priority of this run, if it differs from the priority of the job.
    pub priority: Option<Priority>,
    /// True if the run is rejected as [busy](Triggered::Busy) when the job has an active run, even
    /// if the job's overlap policy allows a second run.
    pub idle_only: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Triggered {
    /// Key of the new run.
    Accepted(AttemptKey),
    NotFound,
    /// The job has an active run, and its overlap policy or [`Trigger::idle_only`] does not allow a
    /// second run.
    Busy,
    /// The state of the job does not allow a run.
    NotAllowed(NotAllowed),
    /// The job `job` holds the deduplication key and prevents the run; it may be the triggered job
    /// itself.
    Duplicate {
        job: JobId,
        /// The run of `job` that replaces the requested run: a waiting run, else a running run,
        /// else the run at the next scheduled time, else the last run. If `job` has no such run,
        /// for example because it is paused, `run` is `None`.
        run: Option<AttemptKey>,
    },
}

/// Number of jobs whose next scheduled time is in one time slot of 15 minutes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotLoad {
    /// Number of the tenant's jobs among the jobs of the time slot that were read.
    pub jobs: u32,
    /// True if all jobs of the time slot were read, so that `jobs` is exact.
    pub counted_all: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedJob {
    pub id: JobId,
    /// Distinguishes jobs with the same name.
    pub configuration: Option<String>,
}

verbs! {
    /// Store operations on jobs for API users.
    trait JobStore {}

    /// Registers jobs in one transaction. Returns the results in the order of `jobs`. A job is not
    /// registered if its name is used by a stored job or by an earlier job of the batch.
    ///
    /// Each job gets a [number](Job::number). Job numbers increase within a batch and from batch to
    /// batch. Job numbers can have gaps.
    ///
    /// A job is not registered if another job holds its [deduplication key](evenkeel_core::dedup)
    /// and [blocks it](evenkeel_core::dedup::DedupScope::blocks_others). If both the deduplication
    /// key and the name of a job are taken, the result is [`Registered::Duplicate`]. A registered
    /// job holds its deduplication key.
    ///
    /// The store notifies the scheduler of jobs that are due before the end of the next time slot.
    write fn register(scope: &Scope, jobs: Vec<NewJob>, now: Now) -> Vec<Registered>;

    /// Registers a job in the paused state, so no reader ever sees it active. A job that is
    /// registered as paused has no scheduled time and cannot fire before it is resumed.
    write fn register_paused(scope: &Scope, job: NewJob, now: Now) -> Registered;

    read fn get(scope: &Scope, id: JobId) -> Option<Job>;

    /// Returns the job and the time of the store's clock in one round trip, because reading a job
    /// is the most frequent request.
    read fn get_with_now(scope: &Scope, id: JobId) -> Option<(Job, Timestamp)>;

    /// Applies commands to existing jobs in one transaction. A rejected command does not affect the
    /// other commands of the batch. A batch has at most [`COMMANDS_MAX`](crate::COMMANDS_MAX)
    /// commands and at most one command per job.
    ///
    /// [`JobFacts::apply`](evenkeel_core::status::JobFacts::apply) decides whether a command is
    /// allowed, from the job's state in the same transaction. An accepted command therefore stays
    /// in effect if the job is fired, claimed or finished at the same time. Each accepted command
    /// increments the generation of the job.
    ///
    /// - A new priority also applies to the job's queued attempts, except for runs that were
    ///   triggered with their own priority. Queued attempts keep the waiting time that counts for
    ///   priority aging.
    /// - A command that changes the state of the job resets its count of [consecutive
    ///   failures](crate::DeadStore::list_failing).
    /// - A command that starts a run, resumes the job, sets a new scheduled time of an active job
    ///   or changes the [deduplication key](evenkeel_core::dedup) of the job takes the key, unless
    ///   the current holder blocks the job. A deduplication key that the job no longer uses is
    ///   released.
    write fn apply_commands(scope: &Scope, commands: Vec<JobCommand>, now: Now) -> Vec<Applied>;

    /// Deletes up to `limit` dead letters and attempts of a deleted job of the tenant, with their
    /// logs, checkpoints and other data. Returns the number of deleted dead letters and attempts. A
    /// result below `limit` means that only active runs are left. All attempts of a run are deleted
    /// together, so the number can be slightly above `limit`.
    write fn purge(scope: &Scope, id: JobId, limit: u32) -> u64;

    /// Returns those of the given jobs that exist, in any order. Takes at most
    /// [`COMMANDS_MAX`](crate::COMMANDS_MAX) ids.
    read fn get_jobs(scope: &Scope, ids: &[JobId]) -> Vec<Job>;

    /// Returns the ids of the jobs with the given [numbers](Job::number), in the same order.
    /// Returns `None` for a job that is deleted or belongs to another tenant. Takes at most
    /// [`COMMANDS_MAX`](crate::COMMANDS_MAX) numbers.
    read fn ids_of_numbers(scope: &Scope, numbers: &[i64]) -> Vec<Option<JobId>>;

    /// Returns up to `limit` jobs of the tenant with this name, ordered by configuration. A deleted
    /// job has no name.
    read fn jobs_named(scope: &Scope, name: &str, limit: u32) -> Vec<NamedJob>;

    /// Returns the tenant's jobs that pass the filter, ordered by `sort`. Jobs with equal sort
    /// values are ordered by creation; jobs with the same name by configuration. Descending order
    /// is the exact reverse of ascending order.
    ///
    /// The cost of a page does not depend on its position in the list or on the number of jobs. If
    /// an index for the filter finds at most [`JobFilter::sorted_max`] jobs, all these jobs are
    /// read and the total is exact. If no index is selective enough, the list is scanned in sort
    /// order, up to [`LIST_SCAN_MAX`](crate::LIST_SCAN_MAX) jobs per page. A scanned page can have
    /// fewer jobs than requested, even none, although a next page exists. The total of a scanned
    /// list can be an estimate. In a scanned list, `offset` can skip only jobs that the scan of one
    /// page reads. Without a filter, the total of a list in order of creation or update is a stored
    /// count. Without a filter, the total of a list by name or next run time is exact if the tenant
    /// has at most [`LIST_SCAN_MAX`](crate::LIST_SCAN_MAX) jobs, else an estimate.
    ///
    /// A filter with a search finds a new or changed job once [`index_jobs`](Self::index_jobs) has
    /// indexed it. The jobs of the last [`UNINDEXED_SEARCHED`](crate::UNINDEXED_SEARCHED) calls
    /// that registered or changed jobs are found at once, up to the same number of jobs. A job is
    /// never found by a text that it no longer has.
    ///
    /// In a list by next run time, jobs are ordered exactly unless more than
    /// [`LIST_SCAN_MAX`](crate::LIST_SCAN_MAX) jobs have their next scheduled time in the same time
    /// slot of 15 minutes.
    read fn list_jobs(
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Page<Job, JobCursor>;

    /// Adds new and changed jobs of all tenants to the search index: about `limit` jobs, and no
    /// fewer than one call registered. Jobs of a renamed target and jobs that were stored before
    /// the index existed come last. Returns false if all jobs were indexed already.
    write fn index_jobs(limit: u32) -> bool;

    /// Counts the tenant's jobs by status.
    read fn job_counts(scope: &Scope) -> JobCounts;

    /// Counts the jobs of all tenants by status. For the statuses "running" and "pending", attempts
    /// are counted, so a job with several active attempts counts several times.
    read fn all_job_counts() -> JobCounts;

    /// Starts a run outside the schedule; the scheduled times of the job do not change. The run is
    /// active immediately and keeps its requested priority even if the job's priority changes.
    ///
    /// A paused job can be triggered as well. A pause stops every run with a scheduled time up to
    /// the pause, so a run of a paused job gets a later scheduled time. A triggered job with a
    /// [deduplication key](evenkeel_core::dedup) takes the key, unless the current holder of the
    /// key, which may be the job itself, prevents the run.
    write fn trigger(scope: &Scope, id: JobId, trigger: Trigger, now: Now) -> Triggered;

    /// For each given time slot, counts the tenant's jobs whose next scheduled time is in the slot.
    /// Reads at most `limit` jobs per time slot, of any tenant, so the cost for one tenant does not
    /// grow with the jobs of other tenants. If a time slot has more than `limit` jobs, it is not
    /// specified which of them are read.
    read fn slot_loads(scope: &Scope, slots: &[Slot], limit: u32) -> Vec<SlotLoad>;
}
