//! Deduplication keys. While a job holds a deduplication key, no duplicate of the job can be
//! registered or run.

use evenkeel_core::dedup::{DedupKey, DedupPurpose, DedupScope, KeyHolder};
use evenkeel_core::{About, Definition, JobId, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Action, Job, JobCommand, JobState, NewJob};

/// A job's request to hold a deduplication key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DedupClaim {
    pub key: DedupKey,
    /// In which state another holder of the deduplication key blocks the job.
    pub scope: DedupScope,
    pub job: JobId,
    pub purpose: DedupPurpose,
    /// State of the job once it holds the deduplication key.
    pub after: KeyHolder,
}

impl DedupClaim {
    fn new(
        (about, definition): (&About, &Definition),
        job: JobId,
        purpose: DedupPurpose,
        after: KeyHolder,
    ) -> Option<Self> {
        let key = DedupKey::of_job(about, definition)?;
        Some(Self { key, scope: about.dedup.as_ref()?.scope, job, purpose, after })
    }

    /// Returns the request for the deduplication key of a job that is registered at `now`.
    pub fn by_new(job: &NewJob, now: Timestamp) -> Option<Self> {
        let after = KeyHolder::new(&job.definition.schedule, job.next_at, now);
        Self::new((&job.about, &job.definition), job.id, DedupPurpose::Exist, after)
    }

    /// Returns the request for the job's deduplication key when a user starts a run outside the
    /// schedule.
    pub fn by_run(job: &Job, purpose: DedupPurpose, now: Timestamp) -> Option<Self> {
        let after = KeyHolder {
            state: job.state,
            waits: true,
            live: job.live + 1,
            ..KeyHolder::new(&job.definition.schedule, job.next_at, now)
        };
        Self::new((&job.about, &job.definition), job.id, purpose, after)
    }

    /// Returns the request for the job's deduplication key if the command starts a run, resumes the
    /// job, sets a new scheduled time or changes the key. The caller must have checked that the
    /// job's state allows the command.
    pub fn by_command(command: &JobCommand, job: &Job, now: Timestamp) -> Option<Self> {
        let (about, definition, next_at) = match &command.action {
            Action::Pause | Action::Suspend { .. } | Action::Cancel | Action::Delete => {
                return None;
            }
            Action::Retry { .. } => return Self::by_run(job, DedupPurpose::RunAgain, now),
            Action::Resume { next_at } => (&job.about, &job.definition, *next_at),
            Action::Change(change) => {
                let is_active = job.state == JobState::Active;
                let (about, definition) = change.applied_to(job);
                let next_at = change.next_at.unwrap_or(job.next_at).filter(|_| is_active);
                let is_placed = change.next_at.flatten().is_some_and(|_| is_active);
                if Self::released_key(command, job).is_none()
                    && DedupKey::of_job(&job.about, &job.definition).is_some()
                    && !is_placed
                {
                    return None;
                }
                (about, definition, next_at)
            }
        };
        let state = match command.action {
            Action::Resume { .. } => JobState::Active,
            _ => job.state,
        };
        let after = KeyHolder {
            state,
            waits: job.waiting > 0,
            live: job.live,
            ..KeyHolder::new(&definition.schedule, next_at, now)
        };
        Self::new((about, definition), job.id, DedupPurpose::Exist, after)
    }

    /// Returns the current deduplication key of the job, if the command deletes the job or changes
    /// the key.
    pub fn released_key(command: &JobCommand, job: &Job) -> Option<DedupKey> {
        let old = DedupKey::of_job(&job.about, &job.definition)?;
        match &command.action {
            Action::Delete => Some(old),
            Action::Change(change) => {
                let (about, definition) = change.applied_to(job);
                (DedupKey::of_job(about, definition) != Some(old)).then_some(old)
            }
            _ => None,
        }
    }

    /// Returns true if the current holder `by` of the deduplication key blocks the job.
    pub fn is_kept_out(&self, by: JobId, holder: &KeyHolder, now: Timestamp) -> bool {
        if by == self.job {
            self.scope.blocks_itself(holder, self.purpose, now)
        } else {
            self.scope.blocks_others(holder, now)
        }
    }

    /// Returns true if the holder `by` is the job itself and the stored time at which it took the
    /// deduplication key must not change.
    pub fn keeps(&self, by: JobId) -> bool {
        by == self.job && matches!(self.purpose, DedupPurpose::Exist | DedupPurpose::Requeue)
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PrunedDedup {
    pub deleted: u64,
    /// The next call continues after this key; `None` if all deduplication keys were read.
    pub next: Option<(TenantNo, DedupKey)>,
}

verbs! {
    /// Store operations on deduplication keys; operations on jobs also take and release keys.
    ///
    /// Whether the holder of a deduplication key still blocks other jobs is decided only when
    /// another job needs the key. Operations that claim or finish attempts therefore do not write
    /// deduplication keys.
    trait DedupStore {}

    /// Reads up to `limit` deduplication keys of all tenants, ordered by tenant and key, starting
    /// after `after`, and deletes those that no longer block any job. A deduplication key no longer
    /// blocks any job if its holder was deleted. A deduplication key also blocks no job if it was
    /// taken before `before` by a job that is not paused and has neither a next scheduled time nor
    /// an active run.
    write fn prune_dedup(before: Timestamp, after: Option<(TenantNo, DedupKey)>, limit: u32)
        -> PrunedDedup;
}
