//! `GET /api/v1/jobs/{id}/explain`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::{JobExplanation, why_words};
use evenkeel_core::explain::{Busy, EarlierRun, Why};
use evenkeel_core::limit::LimitScope;
use evenkeel_core::order::Lane;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobId, Span, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// A reason why a job does not run now, or that it does.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, ToSchema)]
pub struct ReasonView {
    /// `running`, `not_due`, `cooling_down`, `after_this_run`, `blackout`, `retry_pending`,
    /// `trigger_pending`, `waiting_in_queue`, `no_node_allowed`, `no_worker`,
    /// `no_worker_for_pool`, `no_executor`, `no_capacity`, `previous_run_going_on`, `starting`, `paused`,
    /// `cancelled`, `over`, `given_up` or `limited`.
    pub code: &'static str,
    /// The same in words.
    pub message: String,
    /// Until when it holds, at the latest, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    /// Since when it holds, if that matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// How many of your own runs are before it in the queue; 1000 stands for more, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
    /// The priority of the run that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
    /// What its waiting has made of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub effective_priority: Option<u8>,
    /// The time that the waiting run is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub scheduled_at: Option<Timestamp>,
    /// Which retry it is, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<u16>,
    /// The nodes it stays away from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<Vec<String>>,
    /// The pool that nobody serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// How long it pauses when the run that goes on has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cooldown: Option<Span>,
    /// The policy that decides about a time that comes while an earlier run is not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub overlap: Option<OverlapPolicy>,
    /// What that earlier run does: `goes_on`, `waits` or `is_retried`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub earlier: Option<EarlierRun>,
    /// What was left as a note for people, if it is paused because of its failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What as many of run as may at once: those with a `key`, those of the `tenant`, or those in a
    /// `lane`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub scope: Option<LimitScope>,
    /// The `concurrency_key`, if the limit is of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The lane, if the limit is of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub lane: Option<Lane>,
    /// So many may run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// So many do; not told of a lane, which others use as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
}

impl ReasonView {
    /// A pause, with the note that was left when it began.
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
            Why::PreviousRunGoingOn { since, busy } => {
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

/// Why a job does not run now, or that it does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ExplainView {
    /// Which job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Its name.
    pub name: Option<String>,
    /// `pending`, `scheduled`, `running`, `paused`, `completed`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    pub status: JobStatus,
    /// As of this moment.
    #[schema(value_type = String, format = DateTime)]
    pub as_of: Timestamp,
    /// All reasons in words.
    pub summary: String,
    /// All reasons, the one that matters most first.
    pub reasons: Vec<ReasonView>,
    /// The first moment at which a run of it may start; null if none follows, or if nobody knows,
    /// as while it waits for a worker or for the end of its own run.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_possible_start: Option<Timestamp>,
}

impl From<JobExplanation> for ExplainView {
    fn from(explained: JobExplanation) -> Self {
        let JobExplanation { job, now, explanation } = explained;
        let zone = &job.definition.timezone;
        let reasons: Vec<ReasonView> = explanation
            .reasons
            .into_iter()
            .map(|why| ReasonView { message: why_words(&why, zone, now), ..why.into() })
            .collect();
        let reasons: Vec<ReasonView> =
            reasons.into_iter().map(|reason| reason.noted(job.note.as_deref())).collect();
        let words: Vec<&str> = reasons.iter().map(|reason| reason.message.as_str()).collect();
        Self {
            job_id: job.id,
            status: job.status(now),
            as_of: now,
            summary: words.join(" "),
            reasons,
            next_possible_start: explanation.next_possible_start,
            name: job.about.name.or(job.about.source_name),
        }
    }
}

/// Why a job does not run now, in words and in data.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}/explain",
    operation_id = "explain_job",
    tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name")),
    responses((status = 200, description = "Why", body = ExplainView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn explain(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    _: NoParams,
) -> Result<Json<ExplainView>, Problem> {
    let explained = app.jobs.explain(&caller.scope, id).await?;
    Ok(Json(explained.into()))
}
