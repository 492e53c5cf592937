//! `POST /api/v1/scheduler/rebalance`

use std::time::Duration;

use axum::http::StatusCode;
use axum::{Extension, Json};
use evenkeel_commands::{RunningRebalance, read_rebalance};
use evenkeel_core::Timestamp;
use evenkeel_store::RebalanceState;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::view::RebalancedView;
use crate::body::MaybeJson;
use crate::call::Call;
use crate::jobs::commands::{FilterDocument, working_time};
use crate::oversight::{AuditSummary, Target};
use crate::problem::Problem;
use crate::state::App;

/// Maximum time that a request waits for a rebalance to finish.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The rebalance to start: either the stored plan of a preview, or a plan that the server makes
/// now. All fields are optional.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RebalanceDocument {
    /// Id of the previewed plan to execute exactly as planned. `plan_id` can only be combined with
    /// `wait`.
    pub plan_id: Option<Uuid>,
    /// The rebalance moves only jobs that match the filter; the distribution score counts all jobs.
    pub filter: Option<FilterDocument>,
    /// Maximum number of jobs to move; the most effective moves are chosen.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_moves: Option<u64>,
    /// The planner adds no more moves once the distribution score reaches this value, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub target_score: Option<f64>,
    /// With `true`, the response is sent when the rebalance has finished, or with status 202 after
    /// about 20 seconds. With `false`, the response is sent at once.
    #[schema(default = true)]
    pub wait: Option<bool>,
}

/// The response for a started rebalance; its status is 202 while the rebalance is running.
pub(super) type StartedRebalance =
    (StatusCode, Extension<Target>, Extension<AuditSummary>, Json<RebalancedView>);

/// Moves jobs to other start times, so that runs are spread more evenly. The request executes a
/// previewed plan, or makes a new one.
///
/// The rebalance continues if the client disconnects; `GET …/rebalance/{id}` shows its progress.
/// Each tenant can have only one running rebalance.
#[utoipa::path(
    post, path = "/api/v1/scheduler/rebalance", tag = "balance",
    request_body(content = inline(Option<RebalanceDocument>), example = json!({
        "max_moves": 100, "target_score": 0.95, "wait": true,
    })),
    responses(
        (status = 200, description = "The rebalance has ended", body = RebalancedView),
        (status = 202, description = "The rebalance is running", body = RebalancedView),
        (status = 404, description = "The plan does not exist"),
        (status = 409, description = "Another rebalance is running (`rebalance-under-way`), or the plan \
         has expired (`plan-expired`), was carried out (`rebalance-state`), or its jobs have \
         changed (`plan-changed`)"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn rebalance(
    call: Call,
    MaybeJson(document): MaybeJson,
) -> Result<StartedRebalance, Problem> {
    let command = read_rebalance(document.as_ref())?;
    let until = wait_until(&call);
    let running = call.balancing.begin(call.scope(), &command.source, &call.caller.subject).await?;
    started(&call, running, command.wait.then_some(until)).await
}

/// Returns the time until which a request waits for its rebalance to finish.
pub(super) fn wait_until(app: &App) -> Timestamp {
    (app.clock)().saturating_add(working_time(app.settings.request_timeout.min(WAIT_MAX)))
}

/// Waits for the rebalance to finish, at most until `until`, and returns its progress.
pub(super) async fn started(
    call: &Call,
    running: RunningRebalance,
    until: Option<Timestamp>,
) -> Result<StartedRebalance, Problem> {
    let id = running.id;
    if let Some(until) = until {
        let left = until.since((call.clock)());
        running.wait(Duration::from_micros(left.as_micros())).await?;
    }
    let found = call.balancing.report(call.scope(), id).await?;
    let is_running = found.rebalance.state == RebalanceState::Running;
    let status = if is_running { StatusCode::ACCEPTED } else { StatusCode::OK };
    let view = RebalancedView::new(found);
    let (moved, planned) = (view.rebalance.moved_total, view.rebalance.planned_total);
    let skipped = view.rebalance.skipped_total;
    let summary = if is_running {
        format!("began to move {planned} jobs, {skipped} stay; {moved} moved so far")
    } else {
        format!("moved {moved} jobs, {skipped} stay")
    };
    Ok((status, Extension(Target(id.to_string())), Extension(AuditSummary(summary)), Json(view)))
}
