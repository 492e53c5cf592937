//! `GET /api/v1/jobs/{id}/explain`

use axum::Json;
use evenkeel_commands::{JobExplanation, PastAnswer, read_past_time, reason_text};
use evenkeel_core::explain::{Busy, EarlierRun, Why};
use evenkeel_core::limit::LimitScope;
use evenkeel_core::order::Lane;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobId, RunIds, Span, Timestamp};
use evenkeel_store::Role;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::explain_past::PastView;
use crate::call::{Answer, Call};
use crate::params::{Params, PathJob};
use crate::view::view;

/// A reason why a job does not run now, or the fact that it runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, ToSchema)]
pub struct ReasonView {
    /// Reason code: `running`, `not_due`, `cooling_down`, `after_this_run`, `blackout`,
    /// `retry_pending`, `trigger_pending`, `waiting_in_queue`, `no_node_allowed`, `no_worker`,
    /// `no_worker_for_pool`, `no_executor`, `no_capacity`, `previous_run_going_on`, `starting`,
    /// `paused`, `cancelled`, `over`, `given_up` or `limited`.
    pub code: &'static str,
    /// Explanation of the reason, as plain text.
    pub message: String,
    /// Latest time at which the reason ends; null if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Time since which the reason applies, if relevant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Number of the tenant's runs that are ahead of the queued run, counted up to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
    /// Priority of the queued run, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
    /// Priority of the queued run, including the increase for its waiting time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub effective_priority: Option<u8>,
    /// Scheduled time of the queued run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// Number of the pending retry, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<u16>,
    /// Names of the nodes that must not run the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<Vec<String>>,
    /// Name of the worker pool that has no worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Minimum pause after the active run, as a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cooldown: Option<Span>,
    /// Overlap policy that applies, because an earlier run is still active.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub overlap: Option<OverlapPolicy>,
    /// State of the earlier run: `goes_on` (running), `waits` (queued) or `is_retried` (waits for a
    /// retry).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub earlier: Option<EarlierRun>,
    /// Note of the job, if repeated failures paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Kind of the limit that is reached: the limit of a concurrency `key`, of the `tenant`, or of
    /// a `lane`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub scope: Option<LimitScope>,
    /// The `concurrency_key` whose limit is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The lane whose limit is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub lane: Option<Lane>,
    /// Maximum number of active runs that the limit allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Number of active runs that count for the limit. `running` is omitted for a lane, because its
    /// count would reveal runs of other tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
}

impl ReasonView {
    /// Adds the note of a paused job to the reason `paused`.
    fn noted(self, note: Option<&str>) -> Self {
        match note.filter(|_| self.code == "paused") {
            Some(note) => Self {
                message: format!(
                    "It is {}. Resume it to give it a next time.",
                    note.trim_end_matches('.')
                ),
                note: Some(note.into()),
                ..self
            },
            None => self,
        }
    }

    fn busy(self, busy: Option<Busy>) -> Self {
        let (overlap, earlier) = (busy.map(|it| it.overlap), busy.map(|it| it.earlier));
        Self { overlap, earlier, ..self }
    }
}

impl From<Why> for ReasonView {
    fn from(why: Why) -> Self {
        let until = why.until();
        let of = |code| Self { code, until, ..Self::default() };
        match why {
            Why::Running { since } => Self { since: Some(since), ..of("running") },
            Why::NotDue { busy, .. } => of("not_due").busy(busy),
            Why::CoolingDown { .. } => of("cooling_down"),
            Why::AfterThisRun { cooldown, .. } => {
                Self { cooldown: Some(cooldown), ..of("after_this_run") }
            }
            Why::Blackout { .. } => of("blackout"),
            Why::RetryPending { retry, .. } => Self { retry: Some(retry), ..of("retry_pending") },
            Why::TriggerPending { .. } => of("trigger_pending"),
            Why::WaitingInQueue { scheduled_at, since, ahead, priority, effective_priority } => {
                Self {
                    scheduled_at: Some(scheduled_at),
                    since: Some(since),
                    ahead: Some(ahead),
                    priority: Some(priority.get()),
                    effective_priority: Some(effective_priority.get()),
                    ..of("waiting_in_queue")
                }
            }
            Why::NoNodeAllowed { forbidden } => {
                Self { forbidden: Some(forbidden), ..of("no_node_allowed") }
            }
            Why::NoWorker => of("no_worker"),
            Why::NoWorkerForPool { pool } => Self { pool: Some(pool), ..of("no_worker_for_pool") },
            Why::NoExecutor => of("no_executor"),
            Why::NoCapacity { since } => Self { since: Some(since), ..of("no_capacity") },
            Why::PreviousRunActive { since, busy } => {
                Self { since: Some(since), ..of("previous_run_going_on") }.busy(Some(busy))
            }
            Why::Starting => of("starting"),
            Why::Paused => of("paused"),
            Why::Cancelled => of("cancelled"),
            Why::Over => of("over"),
            Why::GivenUp => of("given_up"),
            Why::Limited { scheduled_at, since, scope, key, lane, limit, running } => Self {
                scheduled_at: Some(scheduled_at),
                since: Some(since),
                scope: Some(scope),
                key,
                lane,
                limit: Some(limit),
                running,
                ..of("limited")
            },
        }
    }
}

view! {
    /// The reasons why a job does not run now, or the fact that it runs.
    ExplainView::new(
        explained: JobExplanation, past: Option<PastAnswer>, ids: &RunIds, role: Role
    ) {
        let JobExplanation { job, now, explanation } = explained;
        let past = past.map(|past| PastView::new(past, &job, ids, role));
        let (status, zone) = (job.status(now), &job.definition.timezone);
        let reasons: Vec<ReasonView> = explanation
            .reasons
            .into_iter()
            .map(|why| ReasonView { message: reason_text(&why, zone, now), ..why.into() })
            .map(|reason| reason.noted(job.note.as_deref()))
            .collect();
        let messages: Vec<&str> = reasons.iter().map(|reason| reason.message.as_str()).collect();
        let summary = match &past {
            Some(past) => past.message.clone(),
            None => messages.join(" "),
        };
    }

    /// Id of the job.
    job_id: JobId as uuid::Uuid = job.id,
    /// Name of the job.
    name: Option<String> = job.about.name.or(job.about.source_name),
    /// Status of the job: `pending`, `scheduled`, `running`, `paused`, `completed`, `failed` or
    /// `cancelled`.
    status: JobStatus as String = status,
    /// Time at which the reasons were evaluated.
    as_of: Timestamp = now,
    /// All reasons as one plain text; with `at`, the answer about the past time in a sentence.
    summary: String = summary,
    /// What became of the past time `at`; null without `at`.
    past: Option<PastView> = past,
    /// All reasons why the job does not run now, the most important first.
    reasons: Vec<ReasonView> = reasons,
    /// Earliest time at which the next run can start. Null if no run follows, or if the time is
    /// unknown because the job waits for a worker or for its active run.
    next_possible_start: Option<Timestamp> = explanation.next_possible_start,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameter, which is read by name")]
pub(crate) struct ExplainQuery {
    /// A time in the past: the response also says in `past` what became of it. A time of day such
    /// as `09:00` is the last such time in the time zone of the job. A whole minute stands for all
    /// its 60 seconds.
    #[param(example = "2026-11-18T09:00:00Z")]
    at: Option<String>,
}

/// Explains why a job does not run now, or what became of a past time.
///
/// The answer about a past time comes from the run history, the records of skipped times, the
/// present schedule, the audit log and the rebalances of the tenant.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/explain", tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name"), ExplainQuery),
    responses((status = 200, description = "The reasons", body = ExplainView, example = json!({
        "job_id": "0190163d-8694-739b-aea5-966c26f8ad91", "name": "report", "status": "scheduled",
        "as_of": "2026-11-18T10:00:00Z",
        "summary": "It was paused by ann at 2026-11-18 08:12 UTC, and resumed at 2026-11-18 09:03 UTC.",
        "past": {
            "at": "2026-11-18T09:00:00Z", "local": "2026-11-18T09:00:00.000000+00:00",
            "verdict": "paused",
            "message": "It was paused by ann at 2026-11-18 08:12 UTC, and resumed at 2026-11-18 09:03 UTC.",
            "run_id": null, "run_status": null, "scheduled_at": null, "started_at": null,
            "finished_at": null, "lateness_ms": null, "attempt_count": null, "error_message": null,
            "skipped": null, "later_run_id": null, "changed_at": "2026-11-18T08:12:00Z",
            "changed_by": "ann", "note": null, "resumed_at": "2026-11-18T09:03:00Z",
            "moved_from": null, "moved_to": null, "previous_scheduled_at": "2026-11-18T08:00:00Z",
            "next_scheduled_at": "2026-11-18T10:00:00Z",
        },
        "reasons": [{"code": "not_due", "until": "2026-11-18T11:00:00Z",
                     "message": "Its next time is 2026-11-18 11:00 UTC (in 60 minutes)."}],
        "next_possible_start": "2026-11-18T11:00:00Z",
    }))),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn explain_job(
    call: Call,
    PathJob(id): PathJob,
    mut params: Params,
) -> Answer<ExplainView> {
    let at = params.parsed("at", read_past_time);
    params.finish()?;
    let past = match at {
        Some(at) => Some(call.jobs.explain_past(call.scope(), id, at).await?),
        None => None,
    };
    let explained = call.jobs.explain(call.scope(), id).await?;
    Ok(Json(ExplainView::new(explained, past, &call.run_ids, call.scope().role)))
}
