//! Verbs on dead letters, and on jobs with too many consecutive failures.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::on_failure::DeathReason;
use evenkeel_core::status::NotAllowed;
use evenkeel_core::{AttemptKey, JobId, JobNo, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// The maximum number of dead letters in one call.
pub const DEAD_LETTERS_MAX: usize = 1000;

/// The number of characters of the error that a dead letter keeps. Its attempt has the whole text.
pub const DEAD_LETTER_ERROR_MAX: usize = 4096;

/// A run that failed for good and waits for an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetter {
    /// The last attempt of the run. A run has at most one dead letter.
    pub key: AttemptKey,
    pub job: JobId,
    pub job_name: Option<String>,
    /// When the last attempt ended.
    pub died_at: Timestamp,
    /// Why the run is not retried.
    pub reason: DeathReason,
    /// The outcome of the last attempt.
    pub outcome: Outcome,
    /// The error of the last attempt: the first [`DEAD_LETTER_ERROR_MAX`] characters.
    pub error: Option<String>,
    /// When the run was redriven, and the new run.
    pub redriven: Option<(Timestamp, AttemptKey)>,
}

impl DeadLetter {
    pub fn cursor(&self) -> DeadCursor {
        DeadCursor { died_at: self.died_at, key: self.key }
    }
}

/// A position in the list, which is ordered by time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeadCursor {
    pub died_at: Timestamp,
    /// Distinguishes dead letters of the same moment.
    pub key: AttemptKey,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct DeadFilter {
    pub job: Option<JobId>,
    /// Only dead letters that were redriven, or only those that were not.
    pub redriven: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redriven {
    /// The new run has this key.
    Accepted(AttemptKey),
    /// The scope has no such dead letter.
    NotFound,
    /// It was redriven before, as this run.
    AlreadyRedriven(AttemptKey),
    /// The job was deleted.
    JobGone,
    /// The job has an active run, and its overlap policy allows no other.
    Busy,
    /// The state of the job does not allow a run.
    NotAllowed(NotAllowed),
    /// This holder of the deduplication key, which may be the job itself, keeps the job from
    /// running.
    Duplicate(JobId),
}

/// A job that has reached the number of consecutive failures after which it is to be paused.
#[derive(Clone, PartialEq, Debug)]
pub struct FailingJob {
    pub no: JobNo,
    pub id: JobId,
    pub tenant: TenantNo,
    pub failures: u32,
    /// The job may be changed only if it still has this generation.
    pub generation: i32,
    /// The stored definition.
    pub definition: String,
}

verbs! {
    /// Verbs on runs that failed for good.
    ///
    /// [`finish`](crate::AttemptStore::finish) stores a dead letter together with the end of the
    /// run. The dead letter outlives the attempt and is deleted when its job is
    /// [purged](crate::JobStore::purge).
    trait DeadStore {}

    /// Returns the scope's dead letters that pass the filter, newest first. The total is counted up
    /// to [`COUNTED_MAX`](crate::COUNTED_MAX).
    read fn list_dead(scope: &Scope, filter: DeadFilter, page: PageRequest<DeadCursor>)
        -> Page<DeadLetter, DeadCursor>;

    /// Returns the dead letter of a run of the scope; `run` may be any attempt of it.
    read fn get_dead(scope: &Scope, run: AttemptKey) -> Option<DeadLetter>;

    /// Returns which of these runs of any tenant have dead letters; each key may be any attempt.
    /// Nodes call this after they have stored the ends.
    read fn are_dead(runs: &[AttemptKey]) -> Vec<bool>;

    /// Redrives up to [`DEAD_LETTERS_MAX`] dead letters in one transaction, each on its own and in
    /// order: starts a run of [`Origin::Redrive`](evenkeel_core::Origin) as by
    /// [`trigger`](crate::JobStore::trigger) and records it in the dead letter. A dead letter is
    /// redriven once.
    write fn redrive(scope: &Scope, runs: &[AttemptKey], now: Now) -> Vec<Redriven>;

    /// Deletes up to [`DEAD_LETTERS_MAX`] dead letters. Returns which existed.
    write fn delete_dead(scope: &Scope, runs: &[AttemptKey]) -> Vec<bool>;

    /// Deletes up to `limit` dead letters of runs that died before `before`, oldest first, and up
    /// to `limit` that are not among the newest `keep` of their tenant. Returns their number.
    write fn prune_dead(before: Timestamp, keep: u32, limit: u32) -> u64;

    /// Returns up to `limit` jobs that are to be paused because of their failures, until a command
    /// changes their state or [`prune_failing`](Self::prune_failing) resets them.
    read fn list_failing(limit: u32) -> Vec<FailingJob>;

    /// Resets the count of consecutive failures of these jobs.
    write fn prune_failing(jobs: &[JobNo]) -> ();
}
