//! `GET /api/v1/scheduler/distribution/history`

use axum::Json;
use evenkeel_commands::{SCORES_MAX, ScoreHistory, ScoreQuery};
use evenkeel_core::Timestamp;
use evenkeel_store::SavedScore;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::figures::rounded;
use crate::call::{Answer, Call};
use crate::params::Params;
use crate::view::view;

/// Default page size: one week of hourly scores.
const LIMIT_DEFAULT: u32 = 7 * 24;

view! {
    /// Distribution scores of one hour.
    ScoreView::new(saved: SavedScore) {}

    /// Start of the hour in which the scores were measured.
    hour: Timestamp = saved.hour,
    /// Distribution score by expected runs, 0 to 1.
    #[schema(example = 0.93)]
    distribution_score: f64 = rounded(saved.score),
    /// Distribution score by the next run of each job, 0 to 1.
    #[schema(example = 0.95)]
    next_score: f64 = rounded(saved.next_score),
    /// Distribution score by expected running time, 0 to 1.
    #[schema(example = 0.9)]
    cost_score: f64 = rounded(saved.cost_score),
    /// Highest number of expected runs in one time slot.
    #[schema(example = 12.0)]
    peak: f64 = rounded(saved.peak),
    /// Average number of expected runs per time slot.
    #[schema(example = 9.5)]
    mean: f64 = rounded(saved.mean),
    /// Number of jobs that had a next run.
    #[schema(example = 42)]
    total_jobs: u64 = saved.jobs,
}

/// Distribution scores by hour.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ScoreList {
    /// Start of the listed period.
    pub from: Timestamp,
    /// End of the listed period, exclusive.
    pub until: Timestamp,
    /// Maximum number of hours in this response: the `limit` of the request, or its default.
    pub limit: u32,
    /// Hourly scores, oldest first. The list has no scores for hours in which no server was
    /// running.
    pub scores: Vec<ScoreView>,
    /// Value of `from` that requests the next page; null on the last page.
    pub next_from: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScoreParams {
    /// Start of the period to list. Default: seven days before `until`. Scores are kept for 90
    /// days.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<String>,
    /// End of the period to list, exclusive. Default: now.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
    /// Maximum number of hours to return.
    #[param(minimum = 1, maximum = 2160, default = 168)]
    limit: Option<u32>,
}

/// Returns the hourly distribution scores of up to 90 days, which tell how evenly runs were spread
/// over time.
#[utoipa::path(
    get, path = "/api/v1/scheduler/distribution/history", tag = "balance",
    params(ScoreParams),
    responses((status = 200, description = "The hourly distribution scores of the tenant's jobs", body = ScoreList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_distribution_history(call: Call, mut params: Params) -> Answer<ScoreList> {
    let query = ScoreQuery {
        from: params.time("from"),
        until: params.time("until"),
        limit: params.number("limit", 1..=SCORES_MAX).unwrap_or(LIMIT_DEFAULT),
    };
    if let (Some(from), Some(until)) = (query.from, query.until)
        && from > until
    {
        params.fault("from", "is after until; swap them");
    }
    params.finish()?;
    let found: ScoreHistory = call.balancing.history(call.scope(), query).await?;
    Ok(Json(ScoreList {
        from: found.from,
        until: found.until,
        limit: query.limit,
        scores: found.scores.into_iter().map(ScoreView::new).collect(),
        next_from: found.next_from,
    }))
}
