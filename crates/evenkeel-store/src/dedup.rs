//! Keys that jobs hold so that they are not there twice.

use evenkeel_core::dedup::{DedupKey, DedupPurpose, DedupScope, KeyHolder};
use evenkeel_core::{JobId, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Action, Job, JobCommand, JobState, NewJob};

/// A key that a job wants.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DedupClaim {
    /// Which one.
    pub key: DedupKey,
    /// Who keeps the job out.
    pub scope: DedupScope,
    /// The job.
    pub job: JobId,
    /// What for.
    pub purpose: DedupPurpose,
    /// What it is like as soon as it has the key.
    pub after: KeyHolder,
}

impl DedupClaim {
    /// By a job that is about to be registered at `now`.
    pub fn by_new(job: &NewJob, now: Timestamp) -> Option<Self> {
        Some(Self {
            key: DedupKey::of_job(&job.about, &job.definition)?,
            scope: job.about.dedup.as_ref()?.scope,
            job: job.id,
            purpose: DedupPurpose::Exist,
            after: KeyHolder::new(&job.definition.schedule, job.next_at, now),
        })
    }

    /// By a run of a job that somebody asks for.
    pub fn by_run(job: &Job, purpose: DedupPurpose, now: Timestamp) -> Option<Self> {
        let after = KeyHolder {
            state: job.state,
            waits: true,
            live: job.live + 1,
            ..KeyHolder::new(&job.definition.schedule, job.next_at, now)
        };
        Some(Self {
            key: DedupKey::of_job(&job.about, &job.definition)?,
            scope: job.about.dedup.as_ref()?.scope,
            job: job.id,
            purpose,
            after,
        })
    }

    /// By an order that the job's state allows: if it begins something, lets the job go on or gives
    /// it another key.
    pub fn by_order(order: &JobCommand, job: &Job, now: Timestamp) -> Option<Self> {
        let (about, definition, next_at) = match &order.action {
            Action::Pause | Action::Suspend { .. } | Action::Cancel | Action::Delete => {
                return None;
            }
            Action::Retry { .. } => return Self::by_run(job, DedupPurpose::RunAgain, now),
            Action::Resume { next_at } => (&job.about, &job.definition, *next_at),
            Action::Change(change) => {
                let is_active = job.state == JobState::Active;
                let about = change.about.as_ref().unwrap_or(&job.about);
                let definition = change.definition.as_ref().unwrap_or(&job.definition);
                let next_at = change.next_at.unwrap_or(job.next_at).filter(|_| is_active);
                let is_placed = change.next_at.flatten().is_some_and(|_| is_active);
                if Self::let_go(order, job).is_none()
                    && DedupKey::of_job(&job.about, &job.definition).is_some()
                    && !is_placed
                {
                    return None;
                }
                (about, definition, next_at)
            }
        };
        let state = match order.action {
            Action::Resume { .. } => JobState::Active,
            _ => job.state,
        };
        let after = KeyHolder {
            state,
            waits: job.waiting > 0,
            live: job.live,
            ..KeyHolder::new(&definition.schedule, next_at, now)
        };
        Some(Self {
            key: DedupKey::of_job(about, definition)?,
            scope: about.dedup.as_ref()?.scope,
            job: job.id,
            purpose: DedupPurpose::Exist,
            after,
        })
    }

    /// The key that a job has no more once it has obeyed an order.
    pub fn let_go(order: &JobCommand, job: &Job) -> Option<DedupKey> {
        let old = DedupKey::of_job(&job.about, &job.definition)?;
        match &order.action {
            Action::Delete => Some(old),
            Action::Change(change) => {
                let about = change.about.as_ref().unwrap_or(&job.about);
                let definition = change.definition.as_ref().unwrap_or(&job.definition);
                (DedupKey::of_job(about, definition) != Some(old)).then_some(old)
            }
            _ => None,
        }
    }

    /// Does the holder of the key keep the job out?
    pub fn is_kept_out(&self, by: JobId, holder: &KeyHolder, now: Timestamp) -> bool {
        if by == self.job {
            self.scope.keeps_itself_out(holder, self.purpose, now)
        } else {
            self.scope.keeps_out(holder, now)
        }
    }

    /// A job that holds its key and goes on to be there took it when it did.
    pub fn keeps(&self, by: JobId) -> bool {
        by == self.job && matches!(self.purpose, DedupPurpose::Exist | DedupPurpose::Requeue)
    }
}

/// What was found by looking at some keys.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PrunedDedup {
    /// So many were forgotten.
    pub forgotten: u64,
    /// Where the next look goes on; `None` when the end was reached.
    pub next: Option<(TenantNo, DedupKey)>,
}

verbs! {
    /// What is done with keys that jobs hold, beside what the verbs on jobs do.
    ///
    /// Whether a holder counts is looked at when somebody else wants its key. Claims and ends of runs
    /// write nothing.
    trait DedupStore {}

    /// Looks at up to `limit` keys of all tenants, by tenant and key, after `after`, and forgets those
    /// that keep nobody out any more: of jobs that were deleted, and those taken before `before` by jobs
    /// of which nothing is to come, waits or runs, and which are not paused.
    write fn prune_dedup(before: Timestamp, after: Option<(TenantNo, DedupKey)>, limit: u32)
        -> PrunedDedup;
}
