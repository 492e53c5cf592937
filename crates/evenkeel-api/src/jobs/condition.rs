//! `GET /api/v1/jobs/{id}/condition`

use axum::Json;
use evenkeel_commands::{JobCondition, condition_text};
use evenkeel_core::{JobId, Span, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::call::{Answer, Call};
use crate::params::{NoParams, PathJob};

/// History of a job's executions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct HistoryView {
    /// Time when the last execution started.
    pub last_start_at: Option<Timestamp>,
    /// Time when the last execution finished.
    pub last_end_at: Option<Timestamp>,
    /// Time when the last successful execution started.
    pub last_good_start_at: Option<Timestamp>,
    /// Time when the last successful execution finished.
    pub last_good_end_at: Option<Timestamp>,
    /// Number of failed executions since the last successful execution.
    pub consecutive_failures: u32,
    /// Moving average of the duration of successful executions, in milliseconds.
    pub average_duration_ms: Option<u64>,
    /// Standard deviation of the duration of successful executions, in milliseconds.
    pub duration_deviation_ms: Option<u64>,
    /// Configured duration that replaces the measured average, in milliseconds.
    pub average_duration_override_ms: Option<u64>,
}

/// Whether a job keeps its deadline promise, and the times from which this follows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ConditionView {
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Name of the job.
    pub name: Option<String>,
    /// `OK`, `WARNING` or `ERROR`.
    pub condition: &'static str,
    /// Reason: `on_time`, `never_ran`, `paused`, `over`, `last_run_failed`,
    /// `likely_violated_running`, `likely_violated_waiting`, `violated`, `given_up`,
    /// `held_by_blackout` or `finished_failed`.
    pub reason: &'static str,
    /// Explanation of the reason, as plain text.
    pub explanation: String,
    /// Time at which the condition was evaluated.
    pub as_of: Timestamp,
    /// Earliest time at which the next run can start. Retries, blackouts and pauses can delay
    /// `can_start_by`. Null for a periodic job while it runs, because the next start depends on
    /// when the active run finishes.
    pub can_start_by: Option<Timestamp>,
    /// Latest time at which the next run can start and still keep the deadline promise.
    /// `should_start_by` depends only on the schedule.
    pub should_start_by: Option<Timestamp>,
    /// Time by which a successful run must have finished; for a job that runs once, the time by
    /// which it must have started. Null if the schedule promises no deadline.
    pub deadline: Option<Timestamp>,
    /// Time at which the condition will change if the job does not run before.
    pub changes_at: Option<Timestamp>,
    /// With the reason `held_by_blackout`: end of the blackout that made the job miss its deadline.
    pub blackout_ends_at: Option<Timestamp>,
    /// Time when the running execution started; null if no execution is running.
    pub running_since: Option<Timestamp>,
    /// History of the job's executions.
    pub history: HistoryView,
}

impl From<JobCondition> for ConditionView {
    fn from(judged: JobCondition) -> Self {
        let JobCondition { job, now, condition, can_start_by, should_start_by, .. } = judged;
        let history = job.history;
        Self {
            job_id: job.id,
            name: job.about.name.or(job.about.source_name),
            condition: condition.level().as_str(),
            reason: condition.reason.as_str(),
            explanation: condition_text(&condition, &job.definition),
            as_of: now,
            can_start_by,
            should_start_by,
            deadline: condition.deadline,
            changes_at: condition.changes_at,
            blackout_ends_at: condition.blackout_ends_at,
            running_since: job.running_since,
            history: HistoryView {
                last_start_at: history.last_start_at,
                last_end_at: history.last_end_at,
                last_good_start_at: history.last_good_start_at,
                last_good_end_at: history.last_good_end_at,
                consecutive_failures: history.consecutive_failures,
                average_duration_ms: history.average_good_duration.map(Span::as_millis),
                duration_deviation_ms: history.duration_deviation().map(Span::as_millis),
                average_duration_override_ms: job.definition.average_override.map(Span::as_millis),
            },
        }
    }
}

/// Evaluates whether a job keeps its deadline promise at the moment.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}/condition",
    tag = "conditions",
    params(("id" = String, Path, description = "The job's id or name")),
    responses((status = 200, description = "The condition of the job", body = ConditionView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn condition_of_job(
    call: Call,
    PathJob(id): PathJob,
    _: NoParams,
) -> Answer<ConditionView> {
    let judged = call.jobs.condition(call.scope(), id).await?;
    Ok(Json(judged.into()))
}
