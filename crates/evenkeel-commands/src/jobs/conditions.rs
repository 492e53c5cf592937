//! Evaluates whether jobs keep their deadline promise.

use std::collections::HashMap;

use evenkeel_core::condition::{Condition, Facts, condition};
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::{
    AtRisk, ConditionCounts, Job, JobState, Now, Page, PageRequest, RiskCursor, RiskFilter, Scope,
    WaitsFor,
};
use futures::future::try_join3;

use super::Jobs;
use crate::{Result, condition_advice, condition_text};

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

/// An at-risk job, with its condition in sentences.
#[derive(Clone, PartialEq, Debug)]
pub struct JobAtRisk {
    pub at_risk: AtRisk,
    /// The present condition, which can be newer than the one in `at_risk`; `None` if the job was
    /// deleted since it was listed.
    pub explanation: Option<String>,
    /// What would make the job OK again.
    pub advice: Option<String>,
    /// Error of the last attempt, if it failed.
    pub error: Option<String>,
}

impl Jobs {
    /// Lists the jobs in WARNING or ERROR, with the number of all jobs by condition. Takes at most
    /// [`COMMANDS_MAX`](evenkeel_store::COMMANDS_MAX) jobs per page.
    pub async fn at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Result<(ConditionCounts, Page<JobAtRisk, RiskCursor>)> {
        let (counts, listed, now) = try_join3(
            self.store.condition_counts(scope),
            self.store.list_at_risk(scope, filter, page),
            self.store.now(),
        )
        .await?;
        let Page { items, total, total_is_estimate, next } = listed;
        let ids: Vec<JobId> = items.iter().map(|item| item.job).collect();
        let mut jobs: HashMap<JobId, Job> = HashMap::new();
        if !ids.is_empty() {
            let found = self.store.get_jobs(scope, &ids).await?;
            jobs.extend(found.into_iter().map(|job| (job.id, job)));
        }
        let explained = |at_risk: AtRisk| {
            let Some(job) = jobs.remove(&at_risk.job) else {
                return JobAtRisk { at_risk, explanation: None, advice: None, error: None };
            };
            let condition = condition_of(&job, now);
            JobAtRisk {
                at_risk,
                explanation: Some(condition_text(&condition, &job.definition)),
                advice: condition_advice(&job, &condition, now),
                error: job.last_error,
            }
        };
        let items = items.into_iter().map(explained).collect();
        Ok((counts, Page { items, total, total_is_estimate, next }))
    }

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
