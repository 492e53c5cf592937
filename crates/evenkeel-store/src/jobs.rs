//! Verbs on jobs, reached by users.

use async_trait::async_trait;
use evenkeel_core::run::Outcome;
use evenkeel_core::status::{JobFacts, JobStatus};
use evenkeel_core::{About, Definition, History, JobId, JobNo, RunKey, Slot, TenantNo, Timestamp};

use crate::{Now, Page, PageRequest, Scope, StoreError};

/// Whether a job takes part.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Standing {
    /// It fires.
    Active,
    /// It waits to be resumed.
    Paused,
    /// Somebody ended it for good.
    Cancelled,
    /// It is gone but for its history.
    Deleted,
}

impl Standing {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 4] = [Self::Active, Self::Paused, Self::Cancelled, Self::Deleted];
}

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
    /// Whose it is.
    pub tenant: TenantNo,
    /// What people know about it.
    pub about: About,
    /// What it does.
    pub definition: Definition,
    /// Whether it takes part.
    pub standing: Standing,
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
    /// How the last one ended.
    pub last_outcome: Option<Outcome>,
    /// What is remembered of the past.
    pub history: History,
    /// Since when its promise counts: its creation, its last change of schedule, its last resume.
    pub since: Timestamp,
    /// How many of its regular times have been fired.
    pub fired: u64,
    /// Since when the newest attempt of its newest chain runs, if it does.
    pub running_since: Option<Timestamp>,
}

impl Job {
    /// The state users see.
    pub fn status(&self) -> JobStatus {
        JobFacts {
            cancelled: matches!(self.standing, Standing::Cancelled | Standing::Deleted),
            paused: self.standing == Standing::Paused,
            running: self.live.saturating_sub(self.waiting),
            live: self.live,
            has_next: self.next_at.is_some(),
            last_outcome: self.last_outcome,
        }
        .status()
    }
}

/// What became of a new job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Registered {
    /// It has this number now.
    Created(JobNo),
    /// This job of the tenant has the same name and configuration.
    NameTaken(JobId),
}

/// A change of a job. What is `None` stays.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobChange {
    /// Only if this is still the job's generation.
    pub expect_generation: Option<i32>,
    /// What people know about it.
    pub about: Option<About>,
    /// What it does.
    pub definition: Option<Definition>,
    /// Its next regular time, or that it has none. Its promise counts anew from now on.
    pub next_at: Option<Option<Timestamp>>,
}

/// What became of a change.
#[derive(Clone, PartialEq, Debug)]
pub enum Changed {
    /// The job is like this now.
    Done(Box<Job>),
    /// There is no such job in the scope.
    NotFound,
    /// Its generation was another, or its next time would not be after its last fired one;
    /// nothing was changed. This is what it is like.
    Conflict(Box<Job>),
    /// Another job of the tenant has the name.
    NameTaken(JobId),
}

/// What became of a request to run now.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Triggered {
    /// It will run under this key.
    Accepted(RunKey),
    /// There is no such job in the scope.
    NotFound,
    /// A run goes on and the overlap policy allows no other.
    Busy,
    /// The job was cancelled.
    Cancelled,
}

/// What became of a deletion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deleted {
    /// It is gone; these attempts still run and were asked to end.
    Done(Vec<RunKey>),
    /// There is no such job in the scope.
    NotFound,
}

/// Which jobs to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    /// Those whose name starts with this.
    pub name_prefix: Option<String>,
    /// Those about this source.
    pub source_id: Option<String>,
}

/// How many jobs have their next time in a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotLoad {
    /// The scope's own among those that were looked at.
    pub jobs: u32,
    /// All of the slot were looked at; else there may be more.
    pub counted_all: bool,
}

/// What users do with jobs.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Registers jobs, all in one transaction; a name that is taken leaves out that job alone,
    /// whether the other one is stored or earlier in the batch. Answers are in the order given.
    ///
    /// The store tells the scheduler about jobs that are due before the end of the next slot.
    async fn register(
        &self,
        scope: &Scope,
        jobs: Vec<NewJob>,
        now: Now,
    ) -> Result<Vec<Registered>, StoreError>;

    /// Changes a job and raises its generation, so that no stale copy of it can fire. With another
    /// definition, what waits of it in the queue may be claimed when and where that one says.
    async fn update(
        &self,
        scope: &Scope,
        id: JobId,
        change: JobChange,
        now: Now,
    ) -> Result<Changed, StoreError>;

    /// Deletes a job. What waits of it is recorded as cancelled, what runs is asked to end, its
    /// name is free, its history stays.
    async fn delete(&self, scope: &Scope, id: JobId, now: Now) -> Result<Deleted, StoreError>;

    /// The job with this id.
    async fn get(&self, scope: &Scope, id: JobId) -> Result<Option<Job>, StoreError>;

    /// The scope's jobs, oldest first.
    async fn list_jobs(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        page: PageRequest<JobNo>,
    ) -> Result<Page<Job, JobNo>, StoreError>;

    /// Asks for a run now, beside the schedule, whose rhythm it does not disturb. The chain is
    /// live from here on. `n` tells triggers of one microsecond apart.
    async fn trigger(
        &self,
        scope: &Scope,
        id: JobId,
        n: u32,
        now: Now,
    ) -> Result<Triggered, StoreError>;

    /// How many of the scope's jobs have their next time in each of these slots. In each, at most
    /// `limit` jobs are looked at, whoever's they are: what one tenant asks for costs no more if
    /// another has many. Which ones, if there are more, is not said.
    async fn slot_loads(
        &self,
        scope: &Scope,
        slots: &[Slot],
        limit: u32,
    ) -> Result<Vec<SlotLoad>, StoreError>;
}
