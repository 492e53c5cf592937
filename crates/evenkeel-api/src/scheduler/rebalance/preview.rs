//! `POST /api/v1/scheduler/rebalance/preview`

use std::collections::BTreeMap;

use axum::{Extension, Json};
use evenkeel_commands::{ListedMove, PlanPreview, read_plan_options};
use evenkeel_core::{JobId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::figures::rounded;
use super::view::{ShapeView, SkippedJobView};
use crate::body::MaybeJson;
use crate::call::Call;
use crate::jobs::commands::FilterDocument;
use crate::oversight::{AuditSummary, Target};
use crate::problem::Problem;

/// Options of a rebalance. All fields are optional.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanDocument {
    /// Only jobs that match the filter may be moved to other start times; the other jobs keep their
    /// start times but are counted.
    pub filter: Option<FilterDocument>,
    /// Maximum number of jobs to move; the most effective moves are chosen.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_moves: Option<u64>,
    /// The planner adds no more moves once the distribution score reaches this value, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub target_score: Option<f64>,
}

/// A job that the rebalance would move to another start time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PlannedMoveView {
    /// Id of the job.
    #[schema(value_type = Uuid)]
    pub job_id: JobId,
    /// Name of the job.
    pub name: Option<String>,
    /// Next run time of the job now.
    pub current_time: Timestamp,
    /// Next run time of the job after the rebalance.
    pub proposed_time: Timestamp,
}

impl From<ListedMove> for PlannedMoveView {
    fn from(listed: ListedMove) -> Self {
        let ListedMove { job, name, old_at, new_at, .. } = listed;
        Self { job_id: job, name, current_time: old_at, proposed_time: new_at }
    }
}

/// The plan of a rebalance.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct PreviewedView {
    /// Id of the plan. `POST /api/v1/scheduler/rebalance` with this `plan_id` makes exactly the
    /// planned moves, or fails and moves nothing.
    pub plan_id: Uuid,
    /// Time when the plan expires, 15 minutes after the preview.
    pub expires_at: Timestamp,
    /// Number of jobs that would be moved.
    #[schema(example = 12)]
    pub would_move: u64,
    /// Number of jobs that must keep their start times.
    #[schema(example = 3)]
    pub would_skip: u64,
    /// Distribution score now, 0 to 1.
    #[schema(minimum = 0, maximum = 1, example = 0.65)]
    pub current_score: f64,
    /// Distribution score after the rebalance, 0 to 1.
    #[schema(minimum = 0, maximum = 1, example = 0.91)]
    pub projected_score: f64,
    /// The first 1,000 planned moves; `GET …/rebalance/{plan_id}/moves` lists all of them.
    #[schema(max_items = 1000)]
    pub preview: Vec<PlannedMoveView>,
    /// The first 1,000 jobs that must keep their start times, with the reason.
    #[schema(max_items = 1000)]
    pub skipped: Vec<SkippedJobView>,
    /// Number of jobs that must keep their start times, by reason.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// How runs are spread over time now.
    pub before: ShapeView,
    /// How runs are spread over time after the rebalance.
    pub after: ShapeView,
}

impl From<PlanPreview> for PreviewedView {
    fn from(previewed: PlanPreview) -> Self {
        let PlanPreview { rebalance, summary, moves, expires_at } = previewed;
        Self {
            plan_id: rebalance.id,
            expires_at,
            would_move: rebalance.planned,
            would_skip: rebalance.skipped,
            current_score: rounded(summary.before.score),
            projected_score: rounded(summary.after.score),
            preview: moves.into_iter().map(PlannedMoveView::from).collect(),
            before: (&summary.before).into(),
            after: (&summary.after).into(),
            skipped: summary.skipped.into_iter().map(SkippedJobView::from).collect(),
            skipped_by_reason: summary.skipped_by_reason,
        }
    }
}

/// Plans a rebalance and stores the plan for 15 minutes. A preview moves no jobs.
#[utoipa::path(
    post,
    path = "/api/v1/scheduler/rebalance/preview",
    tag = "balance",
    request_body(content = inline(Option<PlanDocument>), example = json!({
        "filter": {"metadata": {"category": "news"}}, "max_moves": 100, "target_score": 0.95,
    })),
    responses((status = 200, description = "The plan", body = PreviewedView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn preview_rebalance(
    call: Call,
    MaybeJson(document): MaybeJson,
) -> Result<(Extension<Target>, Extension<AuditSummary>, Json<PreviewedView>), Problem> {
    let options = read_plan_options(document.as_ref())?;
    let view: PreviewedView =
        call.balancing.preview(call.scope(), &options, &call.caller.subject).await?.into();
    let summary = format!("would move {} jobs, {} stay", view.would_move, view.would_skip);
    Ok((Extension(Target(view.plan_id.to_string())), Extension(AuditSummary(summary)), Json(view)))
}
