//! `GET /api/v1/scheduler/distribution/history`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::{SCORES_MAX, ScoreHistory, ScoreQuery};
use evenkeel_core::Timestamp;
use evenkeel_store::SavedScore;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::figures::rounded;
use crate::auth::Caller;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// A week.
const LIMIT_DEFAULT: u32 = 7 * 24;

/// How even the load was in an hour.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ScoreView {
    /// When the hour began.
    #[schema(value_type = String, format = DateTime)]
    pub hour: Timestamp,
    /// By runs, slot by slot.
    #[schema(example = 0.93)]
    pub distribution_score: f64,
    /// By jobs, where their next run was.
    #[schema(example = 0.95)]
    pub next_score: f64,
    /// By what runs cost.
    #[schema(example = 0.9)]
    pub cost_score: f64,
    /// The most runs in one slot.
    #[schema(example = 12.0)]
    pub peak: f64,
    /// Runs in a slot on average.
    #[schema(example = 9.5)]
    pub mean: f64,
    /// Jobs that had a time to come.
    #[schema(example = 42)]
    pub total_jobs: u64,
}

impl From<SavedScore> for ScoreView {
    fn from(kept: SavedScore) -> Self {
        Self {
            hour: kept.hour,
            distribution_score: rounded(kept.score),
            next_score: rounded(kept.next_score),
            cost_score: rounded(kept.cost_score),
            peak: rounded(kept.peak),
            mean: rounded(kept.mean),
            total_jobs: kept.jobs,
        }
    }
}

/// How even the load was, hour by hour.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ScoreList {
    /// From this hour on.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// Before this moment.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    /// How many were asked for.
    pub limit: u32,
    /// The hours, by time; one in which no server ran is not among them.
    pub scores: Vec<ScoreView>,
    /// The `from` of what follows, if there was more than `limit`.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_from: Option<Timestamp>,
}

/// Which hours.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScoreParams {
    /// Those from this time on; else the seven days before `until`. Scores are kept for 90 days.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<String>,
    /// Those before this time; else all up to now.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
    /// At most this many.
    #[param(minimum = 1, maximum = 2160, default = 168)]
    limit: Option<u32>,
}

/// How even the load was, hour by hour, for up to 90 days.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/distribution/history",
    operation_id = "list_distribution_history",
    tag = "balance",
    params(ScoreParams),
    responses((status = 200, description = "The scores of the tenant", body = ScoreList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ScoreList>, Problem> {
    let query = ScoreQuery {
        from: params.time("from"),
        until: params.time("until"),
        limit: params.number("limit", 1..=SCORES_MAX).unwrap_or(LIMIT_DEFAULT),
    };
    if let (Some(from), Some(until)) = (query.from, query.until)
        && from > until
    {
        params.fault("from", "is after until; exchange them");
    }
    params.finish()?;
    let found: ScoreHistory = app.balancing.history(&caller.scope, query).await?;
    Ok(Json(ScoreList {
        from: found.from,
        until: found.until,
        limit: query.limit,
        scores: found.scores.into_iter().map(ScoreView::from).collect(),
        next_from: found.next_from,
    }))
}
