//! `POST /api/v1/scheduler/rebalance`

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use evenkeel_commands::{Running, read_rebalance};
use evenkeel_core::Timestamp;
use evenkeel_store::RebalanceState;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::view::RebalancedView;
use crate::auth::Caller;
use crate::body::MaybeJson;
use crate::jobs::{FilterDocument, working_time};
use crate::oversight::{Deed, Target};
use crate::params::NoParams;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// Nobody waits longer for the end of a rebalance.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Which rebalance: that of a plan, or one that is planned now; nothing means everything.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RebalanceDocument {
    /// Exactly what a preview has shown; goes with `wait` only.
    pub plan_id: Option<Uuid>,
    /// Only jobs that pass this may be moved; the others stay and count.
    pub filter: Option<FilterDocument>,
    /// At most so many moves, the best ones.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_moves: Option<u64>,
    /// As few moves as it takes to this score.
    #[schema(minimum = 0, maximum = 1)]
    pub target_score: Option<f64>,
    /// Answer when it is over, or after some 20 seconds with 202; else at once.
    #[schema(default = true)]
    pub wait: Option<bool>,
}

/// What is answered when something was begun: with 202 if it goes on.
pub(super) type Begun = (StatusCode, Extension<Target>, Extension<Deed>, Json<RebalancedView>);

/// Moves jobs so that load is spread more evenly: as a plan says, or as is best now.
///
/// It goes on whether or not anybody waits for it; `GET …/rebalance/{id}` says how far it is. There is
/// one at a time for each tenant.
#[utoipa::path(
    post,
    path = "/api/v1/scheduler/rebalance",
    operation_id = "rebalance",
    tag = "balance",
    request_body(content = inline(Option<RebalanceDocument>), example = json!({
        "max_moves": 100, "target_score": 0.95, "wait": true,
    })),
    responses(
        (status = 200, description = "It is over", body = RebalancedView),
        (status = 202, description = "It goes on", body = RebalancedView),
        (status = 404, description = "There is no such plan"),
        (status = 409, description = "Another one goes on (`rebalance-under-way`), or the plan is too \
         old (`plan-expired`), was acted on (`rebalance-state`), or its jobs have changed \
         (`plan-changed`)"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn rebalance(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    MaybeJson(document): MaybeJson,
) -> Result<Begun, Problem> {
    let order = read_rebalance(document.as_ref())
        .map_err(|faults| Problem::of_fields(ProblemType::InvalidParameter, faults))?;
    let until = wait_until(&app);
    let running = app.balancing.begin(&caller.scope, &order.subject, &caller.subject).await?;
    begun(&app, &caller, running, order.wait.then_some(until)).await
}

/// Until when a request waits for the end of what it began.
pub(super) fn wait_until(app: &App) -> Timestamp {
    (app.clock)().saturating_add(working_time(app.settings.request_timeout.min(WAIT_MAX)))
}

/// Waits for the end of what was begun, if anybody wants to, and tells how far it is.
pub(super) async fn begun(
    app: &App,
    caller: &Caller,
    running: Running,
    until: Option<Timestamp>,
) -> Result<Begun, Problem> {
    let id = running.id;
    if let Some(until) = until {
        let left = until.since((app.clock)());
        running.wait(Duration::from_micros(left.as_micros())).await?;
    }
    let found = app.balancing.report(&caller.scope, id).await?;
    let goes_on = found.rebalance.state == RebalanceState::Running;
    let status = if goes_on { StatusCode::ACCEPTED } else { StatusCode::OK };
    let view = RebalancedView::from(found);
    let (moved, planned) = (view.rebalance.moved_total, view.rebalance.planned_total);
    let skipped = view.rebalance.skipped_total;
    let deed = if goes_on {
        format!("began to move {planned} jobs, {skipped} stay; {moved} moved so far")
    } else {
        format!("moved {moved} jobs, {skipped} stay")
    };
    Ok((status, Extension(Target(id.to_string())), Extension(Deed(deed)), Json(view)))
}
