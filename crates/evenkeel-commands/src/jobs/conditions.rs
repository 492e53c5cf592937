//! Judges whether jobs keep their deadline promise.

use evenkeel_core::condition::{Condition, Facts, condition};
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::{
    AtRisk, ConditionCounts, Job, JobState, Now, Page, PageRequest, RiskCursor, RiskFilter, Scope,
    WaitsFor,
};

use super::Jobs;
use crate::CommandError;

#[derive(Clone, PartialEq, Debug)]
pub struct JobCondition {
    pub job: Job,
    pub now: Timestamp,
    pub condition: Condition,
    /// The duration of a successful run: the override, else the measured average, else zero.
    pub average: Span,
    /// When the job may start next, given retries, blackouts and cooldowns; `None` if that depends
    /// on the end of an active run.
    pub can_start_by: Option<Timestamp>,
    /// When the job must start to keep its promise. Only a change of the schedule moves this time.
    pub should_start_by: Option<Timestamp>,
}

/// Returns the condition of a job at `now`.
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
    pub async fn condition(&self, scope: &Scope, id: JobId) -> Result<JobCondition, CommandError> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let condition = condition_of(&job, now);
        let average = job.definition.average(job.history.average_good_duration);
        let waiting = self.store.waiting_attempts(scope, id, None, Now::Database).await?;
        // Waiting attempts start before the next scheduled time.
        let waits = waiting.iter().map(|attempt| match attempt.waits_for {
            WaitsFor::Time(due) => job.definition.may_start_from(due, average),
            WaitsFor::Worker { since, window, .. } => window.from.unwrap_or(since),
            WaitsFor::Permit { since, .. } => since,
        });
        // The next start of a periodic job is unknown until its active run ends.
        let unknown = job.definition.schedule.follows_its_end() && job.live > 0;
        let next = condition.window.and_then(|_| job.next_start(now)).filter(|_| !unknown);
        let can_start_by = waits.min().or(next);
        let unpromised = condition.window.map(|window| window.should_start_by);
        let should_start_by = condition.should_start_by.or(unpromised);
        Ok(JobCondition { job, now, condition, average, can_start_by, should_start_by })
    }

    /// Counts the scope's jobs by condition, and lists those at risk, soonest ERROR first.
    pub async fn at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Result<(ConditionCounts, Page<AtRisk, RiskCursor>), CommandError> {
        let counts = self.store.condition_counts(scope).await?;
        let page = self.store.list_at_risk(scope, filter, page).await?;
        Ok((counts, page))
    }
}
