//! Verbs on jobs, reached by users.

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

/// So many characters of its last error are shown with a job; its execution has them all.
pub const LAST_ERROR_MAX: usize = 4096;

/// A job about to be registered.
#[derive(Clone, PartialEq, Debug)]
pub struct NewJob {
    /// Its public id.
    pub id: JobId,
    /// What people know about it.
    pub about: About,
    /// What it does.
    pub definition: Definition,
    /// Its first regular time.
    pub next_at: Option<Timestamp>,
}

/// A job as stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Its number.
    pub no: JobNo,
    /// Its public id.
    pub id: JobId,
    /// What people may call it instead: the jobs of a tenant are counted from 1 as they are
    /// registered, and no number comes back.
    pub number: i64,
    /// Whose it is.
    pub tenant: TenantNo,
    /// What people know about it.
    pub about: About,
    /// What it does.
    pub definition: Definition,
    /// Whether it takes part.
    pub state: JobState,
    /// Raised by every command, so that a stale copy can be told.
    pub generation: i32,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was last changed by a command.
    pub updated_at: Timestamp,
    /// Its next regular time.
    pub next_at: Option<Timestamp>,
    /// The last regular time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// Chains of attempts that are not over.
    pub live: u32,
    /// Of those, how many wait (for a worker, or for the time of their retry).
    pub waiting: u32,
    /// Attempts it has had in its life.
    pub executions: u64,
    /// How the last one ended, or that it was withdrawn while it waited.
    pub last_outcome: Option<Outcome>,
    /// What is remembered of the past.
    pub history: History,
    /// Since when its promise counts: its creation, its last change of schedule, its last
    /// move or resume.
    pub since: Timestamp,
    /// How many of its regular times have been fired.
    pub fired: u64,
    /// Since when the newest attempt of its newest chain runs, if it does.
    pub running_since: Option<Timestamp>,
    /// That attempt.
    pub running: Option<AttemptKey>,
    /// How many retries the newest chain that is not over has had.
    pub retry_count: u16,
    /// Since when it is paused or cancelled, if it is.
    pub stopped_at: Option<Timestamp>,
    /// Why it is paused, if somebody left a [note](crate::Action::Suspend).
    pub note: Option<String>,
    /// So many of its attempts ended well.
    pub good_runs: u64,
    /// So many failed or took too long.
    pub bad_runs: u64,
    /// What went wrong in its last attempt, if that failed or took too long: the first
    /// [`LAST_ERROR_MAX`] characters.
    pub last_error: Option<String>,
}

impl Job {
    /// The state users see at `now`.
    pub fn status(&self, now: Timestamp) -> JobStatus {
        JobFacts { is_due: self.is_due(now), ..self.facts() }.status()
    }

    /// When its next regular time starts as far as its own rules decide, seen at `now`: see
    /// [`Definition::next_start`].
    pub fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        let average = self.definition.average(self.history.average_good_duration);
        self.next_at.map(|next| self.definition.next_start(next, average, now))
    }

    /// Has its next regular time come, so that only a worker is missing?
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state == JobState::Active && self.next_start(now).is_some_and(|start| start <= now)
    }

    /// The moment of a stop at `now`: whatever has been fired of it is not after it, even if the
    /// clock was set back since.
    pub fn stop_at(&self, now: Timestamp) -> Timestamp {
        let running = self.running.map(|key| key.scheduled_at);
        [Some(now), self.last_fired_at, running].into_iter().flatten().max().unwrap_or(now)
    }

    /// What commands may do with it follows from this, and its status but for whether it
    /// [is due](Self::is_due).
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

/// What became of a new job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Registered {
    /// It is there now.
    Created {
        /// What the store calls it.
        no: JobNo,
        /// Its number within its tenant: see [`Job::number`].
        number: i64,
    },
    /// This job of the tenant has the same name and configuration.
    NameTaken(JobId),
    /// This job of the tenant has the same key, and keeps it from being there.
    Duplicate(JobId),
}

/// A change of a job. What is `None` stays.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobChange {
    /// What people know about it.
    pub about: Option<About>,
    /// What it does.
    pub definition: Option<Definition>,
    /// Its next regular time, or that it has none. Its promise counts anew from now on. A paused
    /// job has none, whatever is said here: it gets one when it is resumed.
    pub next_at: Option<Option<Timestamp>>,
}

/// A request to run now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// Tells triggers of one microsecond apart.
    pub n: u32,
    /// The priority of this run, if it is not to have its job's.
    pub priority: Option<Priority>,
    /// Only if nothing of the job waits or runs, whatever its overlap policy allows: else it is
    /// [busy](Triggered::Busy).
    pub idle_only: bool,
}

/// What became of a request to run now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Triggered {
    /// It will run under this key.
    Accepted(AttemptKey),
    /// There is no such job in the scope.
    NotFound,
    /// A run goes on, and the overlap policy or the request allows no other.
    Busy,
    /// The job's state does not allow it.
    NotAllowed(NotAllowed),
    /// The holder of the job's key, itself or another, keeps it from running.
    Duplicate {
        /// Who has the key.
        job: JobId,
        /// What is there of it instead: what waits, else what runs, else its next time, else its last
        /// run. A paused job may have none of these.
        run: Option<AttemptKey>,
    },
}

/// How many jobs have their next time in a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotLoad {
    /// The scope's own among those that were looked at.
    pub jobs: u32,
    /// All of the slot were looked at; else there may be more.
    pub counted_all: bool,
}

/// A job that has the name that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedJob {
    /// Its id.
    pub id: JobId,
    /// Tells it apart from other jobs with the same name.
    pub configuration: Option<String>,
}

verbs! {
    /// What users do with jobs.
    trait JobStore {}

    /// Registers jobs, all in one transaction; a name that is taken leaves out that job alone,
    /// whether the other one is stored or earlier in the batch. Answers are in the order given.
    ///
    /// Each gets a number of its own within the tenant: those of a batch rise in its order, and
    /// whatever is registered later has a higher one. Numbers may be left out.
    ///
    /// A job with a [key](evenkeel_core::dedup) that a stored job or an earlier one of the batch
    /// [keeps out](evenkeel_core::dedup::DedupScope::keeps_out) is left out, too; that is told before
    /// a name that is taken. Else it holds the key from here on.
    ///
    /// The store tells the scheduler about jobs that are due before the end of the next slot.
    write fn register(scope: &Scope, jobs: Vec<NewJob>, now: Now) -> Vec<Registered>;

    /// Registers a job that is paused from the start: nobody ever sees it active, whatever happens
    /// meanwhile. It has no first time, so it cannot fire before it is resumed.
    write fn register_paused(scope: &Scope, job: NewJob, now: Now) -> Registered;

    /// The job with this id.
    read fn get(scope: &Scope, id: JobId) -> Option<Job>;

    /// The job with this id, and what the store's clock said when it was looked for: in one go, since
    /// nothing is asked for as often.
    read fn get_with_now(scope: &Scope, id: JobId) -> Option<(Job, Timestamp)>;

    /// Does what people ask of jobs that exist, each order on its own: one that is refused does
    /// not spoil the others. A batch is one transaction, at most [`COMMANDS_MAX`] long; no job is in
    /// it twice. What an order may do was decided by
    /// [`JobFacts::apply`](evenkeel_core::status::JobFacts::apply) from what is true of the job
    /// in that transaction, so that whatever is acknowledged holds against a fire, a claim or an
    /// end that comes at the same time. Every order that is obeyed raises the job's generation. Another
    /// priority reaches what waits in the queue, but not what was given one of its own, and takes
    /// nothing of what was waited. One that makes a job stand otherwise forgets how many of its runs
    /// have [failed in a row](crate::DeadStore::list_failing). One that lets a job with a
    /// [key](evenkeel_core::dedup) begin or go on, or gives it another key, takes that key, unless its
    /// holder keeps it out; a key that a job has no more is let go.
    write fn apply_commands(scope: &Scope, orders: Vec<JobCommand>, now: Now) -> Vec<Applied>;

    /// Forgets up to `limit` dead letters and attempts of a deleted job of the scope, and all that
    /// belongs to them.
    /// Says how many it forgot; fewer than `limit` means that nothing is left but runs that still
    /// go on. A run is forgotten whole or not at all, so it may be a few more than `limit`.
    write fn purge(scope: &Scope, id: JobId, limit: u32) -> u64;

    /// Those of these jobs that exist, in any order; at most [`COMMANDS_MAX`] are asked for.
    read fn get_jobs(scope: &Scope, ids: &[JobId]) -> Vec<Job>;

    /// The ids of the jobs with these numbers (see [`Job::number`]), in the order asked for; at most
    /// [`COMMANDS_MAX`] are asked for. One that is deleted or not the scope's is not there.
    read fn ids_of_numbers(scope: &Scope, numbers: &[i64]) -> Vec<Option<JobId>>;

    /// The scope's jobs with this name, by configuration; at most `limit`. A deleted job has no name.
    read fn jobs_named(scope: &Scope, name: &str, limit: u32) -> Vec<NamedJob>;

    /// The scope's jobs that pass the filter, in the order of `sort`, then of their creation (by
    /// name, of their configurations); falling, all that the other way round.
    ///
    /// A page costs no more the deeper it is, nor the more jobs there are. If an index leads from
    /// the filter to few jobs ([`JobFilter::sorted_max`]), all of those are looked at, and the total
    /// is exact. Else the list is walked in its order, [`LIST_SCAN_MAX`](crate::LIST_SCAN_MAX) jobs
    /// for a page at most: then it may have fewer jobs than were asked for, even none, and still a
    /// next page; an offset reaches no further; and the total may be an estimate. Without a filter
    /// it is a kept count. By next times, jobs of one quarter of an hour are in their order unless more than
    /// [`LIST_SCAN_MAX`](crate::LIST_SCAN_MAX) have theirs in it.
    read fn list_jobs(
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Page<Job, JobCursor>;

    /// How many jobs of the scope are in which state.
    read fn job_counts(scope: &Scope) -> JobCounts;

    /// How many jobs of all tenants are in which state. Attempts that run or wait are counted
    /// for their jobs: a job that has several counts for each.
    read fn all_job_counts() -> JobCounts;

    /// Asks for a run now, beside the schedule, whose rhythm it does not disturb. The chain is
    /// live from here on, and has the priority that was asked for to its end, whatever becomes of
    /// its job's. A paused job runs, too, but not for the moment of its pause: then the run is for
    /// the one after. A job with a [key](evenkeel_core::dedup) takes it, unless its holder, which
    /// may be the job itself, keeps it from running.
    write fn trigger(scope: &Scope, id: JobId, ask: Trigger, now: Now) -> Triggered;

    /// How many of the scope's jobs have their next time in each of these slots. In each, at most
    /// `limit` jobs are looked at, whoever's they are: what one tenant asks for costs no more if
    /// another has many. Which ones, if there are more, is not said.
    read fn slot_loads(scope: &Scope, slots: &[Slot], limit: u32) -> Vec<SlotLoad>;
}
