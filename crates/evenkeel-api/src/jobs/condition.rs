//! `GET /api/v1/jobs/{id}/condition`

use axum::Json;
use evenkeel_commands::{JobCondition, condition_advice, condition_text};
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::Job;

use crate::call::{Answer, Call};
use crate::params::{NoParams, PathJob};
use crate::view::view;

view! {
    /// History of a job's executions.
    HistoryView::new(job: &Job) {
        let history = &job.history;
    }

    /// Time when the last execution started.
    last_start_at: Option<Timestamp> = history.last_start_at,
    /// Time when the last execution finished.
    last_end_at: Option<Timestamp> = history.last_end_at,
    /// Time when the last successful execution started.
    last_good_start_at: Option<Timestamp> = history.last_good_start_at,
    /// Time when the last successful execution finished.
    last_good_end_at: Option<Timestamp> = history.last_good_end_at,
    /// Number of failed executions since the last successful execution.
    consecutive_failures: u32 = history.consecutive_failures,
    /// Moving average of the duration of successful executions, in milliseconds.
    average_duration_ms: Option<u64> = history.average_good_duration.map(Span::as_millis),
    /// Standard deviation of the duration of successful executions, in milliseconds.
    duration_deviation_ms: Option<u64> = history.duration_deviation().map(Span::as_millis),
    /// Configured duration that replaces the measured average, in milliseconds.
    average_duration_override_ms: Option<u64> = job.definition.average_override.map(Span::as_millis),
}

view! {
    /// Whether a job keeps its deadline promise, and the times from which this follows.
    ConditionView::new(judged: JobCondition) {
        let JobCondition { job, now, condition, can_start_by, should_start_by, .. } = judged;
        let history = HistoryView::new(&job);
        let advice = condition_advice(&job, &condition, now);
    }

    /// Id of the job.
    job_id: JobId as uuid::Uuid = job.id,
    /// Name of the job.
    name: Option<String> = job.about.name.or(job.about.source_name),
    /// `OK`, `WARNING` or `ERROR`.
    condition: &'static str = condition.level().as_str(),
    /// Reason: `on_time`, `never_ran`, `paused`, `over`, `last_run_failed`,
    /// `likely_violated_running`, `likely_violated_waiting`, `violated`, `given_up`,
    /// `held_by_blackout` or `finished_failed`.
    reason: &'static str = condition.reason.as_str(),
    /// Explanation of the reason, as plain text.
    explanation: String = condition_text(&condition, &job.definition),
    /// What would make the job OK again, as plain text; null if it is OK.
    advice: Option<String> = advice,
    /// Time at which the condition was evaluated.
    as_of: Timestamp = now,
    /// Earliest time at which the next run can start. Retries, blackouts and pauses can delay
    /// `can_start_by`. Null for a periodic job while it runs, because the next start depends on
    /// when the active run finishes.
    can_start_by: Option<Timestamp> = can_start_by,
    /// Latest time at which the next run can start and still keep the deadline promise.
    /// Retries, blackouts and pauses do not change `should_start_by`.
    should_start_by: Option<Timestamp> = should_start_by,
    /// Time by which a successful run must have finished; for a job that runs once, the time by
    /// which it must have started. Null if the schedule promises no deadline.
    deadline: Option<Timestamp> = condition.deadline,
    /// Time at which the condition will change if the job does not run before that time.
    changes_at: Option<Timestamp> = condition.changes_at,
    /// With the reason `held_by_blackout`: end of the blackout that made the job miss its deadline.
    blackout_ends_at: Option<Timestamp> = condition.blackout_ends_at,
    /// Time when the running execution started; null if no execution is running.
    running_since: Option<Timestamp> = job.running_since,
    /// History of the job's executions.
    history: HistoryView = history,
}

/// Evaluates whether a job keeps its deadline promise at the moment.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/condition", tag = "conditions",
    params(("id" = String, Path, description = "The job's id or name")),
    responses((status = 200, description = "The condition of the job", body = ConditionView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn condition_of_job(
    call: Call,
    PathJob(id): PathJob,
    _: NoParams,
) -> Answer<ConditionView> {
    Ok(Json(ConditionView::new(call.jobs.condition(call.scope(), id).await?)))
}
