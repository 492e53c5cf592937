//! Evaluates whether jobs keep their deadline promise.

use evenkeel_core::condition::{Condition, Facts, condition};
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::{Job, JobState, Now, Scope, WaitsFor};

use super::Jobs;
use crate::Result;

#[derive(Clone, PartialEq, Debug)]
pub struct JobCondition {
    pub job: Job,
    pub now: Timestamp,
    pub condition: Condition,
    /// Expected duration of a successful run: the duration set in the job, or else the measured
    /// average, or else zero.
    pub average: Span,
    /// Earliest time at which the next run can start, given retries, blackouts and cooldowns;
    /// `None` if that depends on when an active run finishes.
    pub can_start_by: Option<Timestamp>,
    /// Latest time at which the next run can start and still keep its deadline.
    pub should_start_by: Option<Timestamp>,
}

pub fn condition_of(job: &Job, now: Timestamp) -> Condition {
    let facts = Facts {
        definition: &job.definition,
        history: &job.history,
        since: job.since,
        active: job.state == JobState::Active,
        next_at: job.next_at,
        last_fired_at: job.last_fired_at,
        live: job.live > 0,
        running_since: job.running_since,
    };
    condition(&facts, now)
}

impl Jobs {
    pub async fn condition(&self, scope: &Scope, id: JobId) -> Result<JobCondition> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let condition = condition_of(&job, now);
        let average = job.definition.average(job.history.average_good_duration);
        let waiting = self.store.waiting_attempts(scope, id, None, Now::Database).await?;
        // Attempts that already wait start before the next scheduled run.
        let waits = waiting.iter().map(|attempt| match attempt.waits_for {
            WaitsFor::Time(due) => job.definition.may_start_from(due, average),
            WaitsFor::Worker { since, window, .. } => window.from.unwrap_or(since),
            WaitsFor::Permit { since, .. } => since,
        });
        // The next start time of a periodic job is unknown until its active run finishes.
        let unknown = job.definition.schedule.follows_its_end() && job.live > 0;
        let next = condition.window.and_then(|_| job.next_start(now)).filter(|_| !unknown);
        let can_start_by = waits.min().or(next);
        let unpromised = condition.window.map(|window| window.should_start_by);
        let should_start_by = condition.should_start_by.or(unpromised);
        Ok(JobCondition { job, now, condition, average, can_start_by, should_start_by })
    }
}
