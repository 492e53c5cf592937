//! `GET /api/v1/conditions`

use axum::Json;
use axum::extract::State;
use evenkeel_core::condition::Level;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{AtRisk, ConditionCounts, PageRequest, RiskCursor, RiskFilter};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// How many jobs are in each condition.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ConditionCountsView {
    /// They keep their promise, or have none to keep.
    pub ok: u64,
    /// Something went wrong, or soon will; the promise is kept so far.
    pub warning: u64,
    /// The promise is broken.
    pub error: u64,
    /// Of these, the jobs whose promise a blackout alone has broken, counted up to 10,000.
    pub held_by_blackout: u64,
}

impl From<ConditionCounts> for ConditionCountsView {
    fn from(counts: ConditionCounts) -> Self {
        let ConditionCounts { jobs, warning, error, held } = counts;
        let ok = jobs.saturating_sub(warning).saturating_sub(error);
        Self { ok, warning, error, held_by_blackout: held }
    }
}

/// A job that is not OK.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct AtRiskView {
    /// Which job.
    #[schema(value_type = uuid::Uuid)]
    pub id: JobId,
    /// Its name.
    pub name: Option<String>,
    /// `WARNING` or `ERROR`.
    pub condition: &'static str,
    /// Why: `last_run_failed`, `likely_violated_running`, `likely_violated_waiting`, `violated`,
    /// `given_up` or `held_by_blackout`.
    pub reason: &'static str,
    /// When it turns, or turned, to ERROR if nothing happens.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub error_at: Option<Timestamp>,
    /// Since when it is in this condition.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
}

impl From<AtRisk> for AtRiskView {
    fn from(at_risk: AtRisk) -> Self {
        Self {
            id: at_risk.job,
            name: at_risk.name,
            condition: at_risk.reason.level().as_str(),
            reason: at_risk.reason.as_str(),
            error_at: (at_risk.error_at < Timestamp::MAX).then_some(at_risk.error_at),
            since: at_risk.since,
        }
    }
}

/// How many jobs are in each condition, and a part of the list of those that are not OK.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ConditionList {
    /// Of all jobs of the tenant.
    pub counts: ConditionCountsView,
    /// Those that are not OK, soonest ERROR first.
    pub jobs: Vec<AtRiskView>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// Which jobs.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConditionQuery {
    /// Only those in this condition: `WARNING` or `ERROR`.
    #[param(pattern = "^(WARNING|ERROR)$")]
    condition: Option<String>,
}

/// Which jobs do not keep their promises, as they were judged a moment ago.
#[utoipa::path(
    get,
    path = "/api/v1/conditions",
    operation_id = "list_conditions",
    tag = "conditions",
    params(PageQuery, ConditionQuery),
    responses(
        (status = 200, description = "Counts, and a part of the list", body = ConditionList),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ConditionList>, Problem> {
    let request: PageRequest<RiskCursor> = PageQuery::take(&mut params);
    let ConditionQuery { condition } = ConditionQuery { condition: params.text("condition") };
    let level = condition.as_deref().and_then(|word| {
        let level = read_level(word);
        if level.is_none() {
            let message = format!(
                "{word:?} is not one of WARNING, ERROR; jobs that are OK are counted, not listed"
            );
            params.fault("condition", message);
        }
        level
    });
    params.finish()?;
    let (counts, page) = app.jobs.at_risk(&caller.scope, RiskFilter { level }, request).await?;
    Ok(Json(ConditionList {
        counts: counts.into(),
        jobs: page.items.into_iter().map(Into::into).collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}

fn read_level(word: &str) -> Option<Level> {
    let known = [Level::Warning, Level::Error];
    known.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(word))
}
