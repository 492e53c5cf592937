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
use crate::view::view;

/// Options of a rebalance. All fields are optional.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanDocument {
    /// The rebalance moves only jobs that match the filter; the distribution score counts all jobs.
    pub filter: Option<FilterDocument>,
    /// Maximum number of jobs to move; the most effective moves are chosen.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_moves: Option<u64>,
    /// The planner adds no more moves once the distribution score reaches this value, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub target_score: Option<f64>,
}

view! {
    /// A job that the rebalance would move to another start time.
    PlannedMoveView::new(listed: ListedMove) {}

    /// Id of the job.
    job_id: JobId as Uuid = listed.job,
    /// Name of the job.
    name: Option<String> = listed.name,
    /// Next run time of the job now.
    current_time: Timestamp = listed.old_at,
    /// Next run time of the job after the rebalance.
    proposed_time: Timestamp = listed.new_at,
}

view! {
    /// The plan of a rebalance.
    PreviewedView::new(previewed: PlanPreview) {
        let PlanPreview { rebalance, summary, .. } = previewed;
    }

    /// Id of the plan. `POST /api/v1/scheduler/rebalance` with this `plan_id` makes exactly the
    /// planned moves, or fails and moves nothing.
    plan_id: Uuid = rebalance.id,
    /// Time when the plan expires, 15 minutes after the preview.
    expires_at: Timestamp = previewed.expires_at,
    /// Number of jobs that would be moved.
    #[schema(example = 12)]
    would_move: u64 = rebalance.planned,
    /// Number of jobs that must keep their start times.
    #[schema(example = 3)]
    would_skip: u64 = rebalance.skipped,
    /// Distribution score now, 0 to 1.
    #[schema(minimum = 0, maximum = 1, example = 0.65)]
    current_score: f64 = rounded(summary.before.score),
    /// Distribution score after the rebalance, 0 to 1.
    #[schema(minimum = 0, maximum = 1, example = 0.91)]
    projected_score: f64 = rounded(summary.after.score),
    /// The first 1,000 planned moves; `GET …/rebalance/{plan_id}/moves` lists all of them.
    #[schema(max_items = 1000)]
    preview: Vec<PlannedMoveView> =
        previewed.moves.into_iter().map(PlannedMoveView::new).collect(),
    /// The first 1,000 jobs that must keep their start times, with the reason.
    #[schema(max_items = 1000)]
    skipped: Vec<SkippedJobView> = summary.skipped.into_iter().map(SkippedJobView::new).collect(),
    /// Number of jobs that must keep their start times, by reason.
    skipped_by_reason: BTreeMap<String, u64> = summary.skipped_by_reason,
    /// How runs are spread over time now.
    before: ShapeView = ShapeView::new(&summary.before),
    /// How runs are spread over time after the rebalance.
    after: ShapeView = ShapeView::new(&summary.after),
}

/// Plans a rebalance and stores the plan for 15 minutes. A preview moves no jobs.
#[utoipa::path(
    post, path = "/api/v1/scheduler/rebalance/preview", tag = "balance",
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
    let planned = call.balancing.preview(call.scope(), &options, &call.caller.subject).await?;
    let view = PreviewedView::new(planned);
    let summary = format!("would move {} jobs, {} stay", view.would_move, view.would_skip);
    Ok((Extension(Target(view.plan_id.to_string())), Extension(AuditSummary(summary)), Json(view)))
}
