//! Verbs on runs that have failed for good, and on jobs that too many did of.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::on_failure::DeathReason;
use evenkeel_core::status::NotAllowed;
use evenkeel_core::{AttemptKey, JobId, JobNo, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// Letters that one call may be about.
pub const DEAD_LETTERS_MAX: usize = 1000;

/// So many characters of what went wrong are kept in a letter; its execution has them all.
pub const DEAD_LETTER_ERROR_MAX: usize = 4096;

/// A run that failed for good, and waits for somebody to look at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetter {
    /// Its last attempt. A run has one letter at most.
    pub key: AttemptKey,
    /// Its job.
    pub job: JobId,
    /// What people call that.
    pub job_name: Option<String>,
    /// When the last attempt ended.
    pub died_at: Timestamp,
    /// Why it is not tried again.
    pub reason: DeathReason,
    /// How the last attempt ended.
    pub outcome: Outcome,
    /// What went wrong in it: the first [`DEAD_LETTER_ERROR_MAX`] characters.
    pub error: Option<String>,
    /// When it was taken up again, and the run that it became.
    pub redriven: Option<(Timestamp, AttemptKey)>,
}

impl DeadLetter {
    /// Its place in the list.
    pub fn place(&self) -> DeadCursor {
        DeadCursor { died_at: self.died_at, key: self.key }
    }
}

/// A letter's place in the list, which is in the order of time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeadCursor {
    /// When the last attempt ended.
    pub died_at: Timestamp,
    /// Tells those of one moment apart.
    pub key: AttemptKey,
}

/// Which letters to list.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct DeadFilter {
    /// Those of this job.
    pub job: Option<JobId>,
    /// Those that were taken up again, or those that were not.
    pub redriven: Option<bool>,
}

/// What became of the wish to take up a letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redriven {
    /// It will run again, under this key.
    Accepted(AttemptKey),
    /// There is no such letter in the scope.
    NotFound,
    /// It was taken up before, and became this run.
    Before(AttemptKey),
    /// Its job was deleted.
    JobGone,
    /// A run of its job goes on and the overlap policy allows no other.
    Busy,
    /// The job's state does not allow it.
    NotAllowed(NotAllowed),
    /// The holder of the job's key, itself or another, keeps it from running.
    Duplicate(JobId),
}

/// A job of which as many runs have failed in a row as it wants to be paused after.
#[derive(Clone, PartialEq, Debug)]
pub struct FailingJob {
    /// Its number.
    pub no: JobNo,
    /// Its public id.
    pub id: JobId,
    /// Whose it is.
    pub tenant: TenantNo,
    /// So many.
    pub failures: u32,
    /// Only if this is still its generation may anything be done about it.
    pub generation: i32,
    /// Its stored definition.
    pub definition: String,
}

verbs! {
    /// What becomes of runs that failed for good.
    ///
    /// A letter is written by [`finish`](crate::AttemptStore::finish), together with the end that it is
    /// about. It outlives the record of its run, and goes when its job is
    /// [purged](crate::JobStore::purge).
    trait DeadStore {}

    /// The scope's letters that pass the filter, newest first. The total is counted no further than
    /// [`COUNTED_MAX`](crate::COUNTED_MAX).
    read fn list_dead(scope: &Scope, filter: DeadFilter, page: PageRequest<DeadCursor>)
        -> Page<DeadLetter, DeadCursor>;

    /// The letter of a run of the scope, whichever attempt is named.
    read fn get_dead(scope: &Scope, run: AttemptKey) -> Option<DeadLetter>;

    /// Which of these runs of any tenant have letters, whichever attempts are named. Nodes ask, who
    /// have just stored their ends.
    read fn are_dead(runs: &[AttemptKey]) -> Vec<bool>;

    /// Takes up letters, at most [`DEAD_LETTERS_MAX`], each on its own and in their order, all in one
    /// transaction: a run of [`Origin::Redrive`](evenkeel_core::Origin) begins as if it was asked
    /// for [now](crate::JobStore::trigger), and the letter says which. A letter is taken up once.
    write fn redrive(scope: &Scope, runs: &[AttemptKey], now: Now) -> Vec<Redriven>;

    /// Throws letters away, at most [`DEAD_LETTERS_MAX`]. Says which were there.
    write fn delete_dead(scope: &Scope, runs: &[AttemptKey]) -> Vec<bool>;

    /// Forgets up to `limit` letters of runs that died before then, oldest first, and up to `limit`
    /// of those that are not among the newest `keep` of their tenant. Says how many.
    write fn prune_dead(before: Timestamp, keep: u32, limit: u32) -> u64;

    /// Jobs that are to be paused because of their failures, at most `limit`. They are told until an
    /// order makes them stand otherwise, or they are forgotten.
    read fn list_failing(limit: u32) -> Vec<FailingJob>;

    /// Forgets how many runs of these jobs have failed in a row.
    write fn prune_failing(jobs: &[JobNo]) -> ();
}
