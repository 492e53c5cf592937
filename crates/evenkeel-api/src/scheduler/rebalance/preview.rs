//! `POST /api/v1/scheduler/rebalance/preview`

use std::collections::BTreeMap;

use axum::extract::State;
use axum::{Extension, Json};
use evenkeel_commands::{MoveShown, Previewed, read_plan_options};
use evenkeel_core::{JobId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::figures::rounded;
use super::view::{ShapeView, SkippedJobView};
use crate::auth::Caller;
use crate::body::MaybeJson;
use crate::jobs::FilterDocument;
use crate::oversight::{Deed, Target};
use crate::params::NoParams;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// What a rebalance is to do; nothing means everything.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanDocument {
    /// Only jobs that pass this may be moved; the others stay and count.
    pub filter: Option<FilterDocument>,
    /// At most so many moves, the best ones.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_moves: Option<u64>,
    /// As few moves as it takes to this score.
    #[schema(minimum = 0, maximum = 1)]
    pub target_score: Option<f64>,
}

/// A job that would be moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PlannedMoveView {
    /// Which.
    #[schema(value_type = Uuid)]
    pub job_id: JobId,
    /// Its name.
    pub name: Option<String>,
    /// Its next time now.
    #[schema(value_type = String, format = DateTime)]
    pub current_time: Timestamp,
    /// And with the rebalance.
    #[schema(value_type = String, format = DateTime)]
    pub proposed_time: Timestamp,
}

impl From<MoveShown> for PlannedMoveView {
    fn from(shown: MoveShown) -> Self {
        let MoveShown { job, name, old_at, new_at, .. } = shown;
        Self { job_id: job, name, current_time: old_at, proposed_time: new_at }
    }
}

/// What a rebalance would do.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct PreviewedView {
    /// Acting on this does exactly what is shown here, or nothing.
    pub plan_id: Uuid,
    /// Until when it can be acted on.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// Jobs that would be moved.
    #[schema(example = 12)]
    pub would_move: u64,
    /// Jobs that must stay.
    #[schema(example = 3)]
    pub would_skip: u64,
    /// How even the load is.
    #[schema(minimum = 0, maximum = 1, example = 0.65)]
    pub current_score: f64,
    /// How even it would be.
    #[schema(minimum = 0, maximum = 1, example = 0.91)]
    pub projected_score: f64,
    /// The first 1,000 moves; `GET …/rebalance/{plan_id}/moves` has them all.
    #[schema(max_items = 1000)]
    pub preview: Vec<PlannedMoveView>,
    /// The first 1,000 jobs that must stay.
    #[schema(max_items = 1000)]
    pub skipped: Vec<SkippedJobView>,
    /// How many must, by reason.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// How runs are spread.
    pub before: ShapeView,
    /// How they would be spread.
    pub after: ShapeView,
}

impl From<Previewed> for PreviewedView {
    fn from(previewed: Previewed) -> Self {
        let Previewed { rebalance, outlook, moves, expires_at } = previewed;
        Self {
            plan_id: rebalance.id,
            expires_at,
            would_move: rebalance.planned,
            would_skip: rebalance.skipped,
            current_score: rounded(outlook.before.score),
            projected_score: rounded(outlook.after.score),
            preview: moves.into_iter().map(PlannedMoveView::from).collect(),
            before: (&outlook.before).into(),
            after: (&outlook.after).into(),
            skipped: outlook.skipped.into_iter().map(SkippedJobView::from).collect(),
            skipped_by_reason: outlook.skipped_by_reason,
        }
    }
}

/// Shows what a rebalance would do, and keeps it as a plan for 15 minutes. Nothing is moved.
#[utoipa::path(
    post,
    path = "/api/v1/scheduler/rebalance/preview",
    operation_id = "preview_rebalance",
    tag = "balance",
    request_body(content = inline(Option<PlanDocument>), example = json!({
        "filter": {"metadata": {"category": "news"}}, "max_moves": 100, "target_score": 0.95,
    })),
    responses((status = 200, description = "What it would do", body = PreviewedView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn preview_rebalance(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    MaybeJson(document): MaybeJson,
) -> Result<(Extension<Target>, Extension<Deed>, Json<PreviewedView>), Problem> {
    let options = read_plan_options(document.as_ref())
        .map_err(|faults| Problem::of_fields(ProblemType::InvalidParameter, faults))?;
    let view: PreviewedView =
        app.balancing.preview(&caller.scope, &options, &caller.subject).await?.into();
    let deed = format!("would move {} jobs, {} stay", view.would_move, view.would_skip);
    Ok((Extension(Target(view.plan_id.to_string())), Extension(Deed(deed)), Json(view)))
}
