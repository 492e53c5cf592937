//! Store operations on dead letters, and on jobs with too many consecutive failures.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::on_failure::DeathReason;
use evenkeel_core::status::NotAllowed;
use evenkeel_core::{AttemptKey, JobId, JobNo, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// Maximum number of dead letters in one call.
pub const DEAD_LETTERS_MAX: usize = 1000;

/// Maximum number of error characters that a dead letter stores. The stored attempt keeps the whole
/// error text.
pub const DEAD_LETTER_ERROR_MAX: usize = 4096;

/// A run that failed, is not retried, and waits for an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetter {
    /// The last attempt of the run. A run has at most one dead letter.
    pub key: AttemptKey,
    pub job: JobId,
    pub job_name: Option<String>,
    /// When the last attempt of the run finished.
    pub died_at: Timestamp,
    pub reason: DeathReason,
    /// Outcome of the run's last attempt.
    pub outcome: Outcome,
    /// Error of the run's last attempt, cut to [`DEAD_LETTER_ERROR_MAX`] characters.
    pub error: Option<String>,
    /// When an operator redrove the run, and the key of the new run.
    pub redriven: Option<(Timestamp, AttemptKey)>,
}

impl DeadLetter {
    pub fn cursor(&self) -> DeadCursor {
        DeadCursor { died_at: self.died_at, key: self.key }
    }
}

/// A position in the list of dead letters, which is ordered by time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeadCursor {
    pub died_at: Timestamp,
    /// Distinguishes dead letters with the same timestamp.
    pub key: AttemptKey,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct DeadFilter {
    pub job: Option<JobId>,
    /// `true` lists only dead letters that were redriven, `false` only those that were not.
    pub redriven: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redriven {
    /// Key of the new run.
    Accepted(AttemptKey),
    NotFound,
    /// An operator has already redriven the dead letter; contains the key of the new run.
    AlreadyRedriven(AttemptKey),
    /// The job was deleted.
    JobGone,
    /// The job has an active run, and its overlap policy does not allow a second run.
    Busy,
    /// The state of the job does not allow a run.
    NotAllowed(NotAllowed),
    /// Contains the job that holds the deduplication key and prevents the run; it may be the job
    /// itself.
    Duplicate(JobId),
}

/// A job that has reached the number of consecutive failures after which it must be paused.
#[derive(Clone, PartialEq, Debug)]
pub struct FailingJob {
    pub no: JobNo,
    pub id: JobId,
    pub tenant: TenantNo,
    pub failures: u32,
    /// The command that pauses the job must require this generation.
    pub generation: i32,
    /// The stored job definition, not parsed.
    pub definition: String,
}

verbs! {
    /// Store operations on runs that failed and are not retried.
    ///
    /// [`finish`](crate::AttemptStore::finish) stores the dead letter in the same transaction as
    /// the result of the run. A dead letter is kept when its attempt is pruned, and is deleted when
    /// its job is [purged](crate::JobStore::purge).
    trait DeadStore {}

    /// Returns the tenant's dead letters that pass the filter, newest first. The total is counted
    /// up to [`COUNTED_MAX`](crate::COUNTED_MAX).
    read fn list_dead(scope: &Scope, filter: DeadFilter, page: PageRequest<DeadCursor>)
        -> Page<DeadLetter, DeadCursor>;

    /// Returns the dead letter of a run of the tenant; `run` may be the key of any attempt of the
    /// run.
    read fn get_dead(scope: &Scope, run: AttemptKey) -> Option<DeadLetter>;

    /// Returns true for each run that has a dead letter. Each key may name any attempt of its run,
    /// and the run may belong to any tenant. Nodes call `are_dead` after they have stored the
    /// results of attempts.
    read fn are_dead(runs: &[AttemptKey]) -> Vec<bool>;

    /// Redrives up to [`DEAD_LETTERS_MAX`] dead letters in one transaction, in the given order.
    /// Redriving [triggers](crate::JobStore::trigger) a new run with
    /// [`Origin::Redrive`](evenkeel_core::Origin) and records the new run in the dead letter. A
    /// dead letter can be redriven only once.
    write fn redrive(scope: &Scope, runs: &[AttemptKey], now: Now) -> Vec<Redriven>;

    /// Deletes up to [`DEAD_LETTERS_MAX`] dead letters. Returns true for each dead letter that
    /// existed.
    write fn delete_dead(scope: &Scope, runs: &[AttemptKey]) -> Vec<bool>;

    /// Deletes up to `limit` dead letters older than `before`, oldest first. Also deletes up to
    /// `limit` dead letters that are not among the newest `keep` of their tenant. Returns the
    /// number of deleted dead letters.
    write fn prune_dead(before: Timestamp, keep: u32, limit: u32) -> u64;

    /// Returns up to `limit` jobs that must be paused because of consecutive failures. Each call
    /// returns a failing job again until a command changes the job's state or
    /// [`prune_failing`](Self::prune_failing) resets its count of failures.
    read fn list_failing(limit: u32) -> Vec<FailingJob>;

    /// Resets the count of consecutive failures of these jobs.
    write fn prune_failing(jobs: &[JobNo]) -> ();
}
