//! `GET /api/v1/conditions`

use axum::Json;
use evenkeel_core::condition::Level;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{AtRisk, ConditionCounts, PageRequest, RiskCursor, RiskFilter};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::call::{Answer, Call};
use crate::page::PageQuery;
use crate::params::Params;

/// Number of the tenant's jobs in each condition.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ConditionCountsView {
    /// Number of jobs that keep their deadline promise or have none.
    pub ok: u64,
    /// Number of jobs that still keep their deadline promise, but whose last run failed or that
    /// will probably miss their deadline.
    pub warning: u64,
    /// Number of jobs that missed their deadline promise.
    pub error: u64,
    /// Number of jobs that missed their deadline promise only because of a blackout, counted up to
    /// 10,000.
    pub held_by_blackout: u64,
}

impl From<ConditionCounts> for ConditionCountsView {
    fn from(counts: ConditionCounts) -> Self {
        let ConditionCounts { jobs, warning, error, held } = counts;
        let ok = jobs.saturating_sub(warning).saturating_sub(error);
        Self { ok, warning, error, held_by_blackout: held }
    }
}

/// A job in the condition `WARNING` or `ERROR`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct AtRiskView {
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub id: JobId,
    /// Name of the job.
    pub name: Option<String>,
    /// `WARNING` or `ERROR`.
    pub condition: &'static str,
    /// Reason: `last_run_failed`, `likely_violated_running`, `likely_violated_waiting`, `violated`,
    /// `given_up` or `held_by_blackout`.
    pub reason: &'static str,
    /// Time when the condition became `ERROR`, or will become `ERROR` if no run succeeds before.
    pub error_at: Option<Timestamp>,
    /// Time since which the job is in this condition.
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

/// Number of jobs in each condition, and one page of the jobs in `WARNING` or `ERROR`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ConditionList {
    /// Number of jobs in each condition, over all jobs of the tenant.
    pub counts: ConditionCountsView,
    /// Jobs in the condition `WARNING` or `ERROR`, sorted by `error_at`, earliest first.
    pub jobs: Vec<AtRiskView>,
    /// Number of items on all pages together.
    pub total: u64,
    /// True if `total` is an estimate.
    pub total_is_estimate: bool,
    /// Page size: the `limit` of the request, or its default.
    pub limit: u32,
    /// Number of items that were skipped before this page, from the `offset` of the request.
    pub offset: u32,
    /// Value of `cursor` that requests the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Filter of the list.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConditionQuery {
    /// Lists only jobs in this condition: `WARNING` or `ERROR`.
    #[param(pattern = "^(WARNING|ERROR)$")]
    condition: Option<String>,
}

/// Lists the jobs that missed their deadline promise or are likely to miss it, as of the last
/// evaluation.
#[utoipa::path(
    get,
    path = "/api/v1/conditions",
    tag = "conditions",
    params(PageQuery, ConditionQuery),
    responses(
        (status = 200, description = "Counts, and one page of the list", body = ConditionList),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_conditions(call: Call, mut params: Params) -> Answer<ConditionList> {
    let request: PageRequest<RiskCursor> = PageQuery::take(&mut params);
    let ConditionQuery { condition } = ConditionQuery { condition: params.text("condition") };
    let level = condition.as_deref().and_then(|name| {
        let level = read_level(name);
        if level.is_none() {
            let message = format!(
                "{name:?} is not one of WARNING, ERROR; jobs that are OK are counted, not listed"
            );
            params.fault("condition", message);
        }
        level
    });
    params.finish()?;
    let (counts, page) = call.jobs.at_risk(call.scope(), RiskFilter { level }, request).await?;
    Ok(Json(ConditionList {
        counts: counts.into(),
        jobs: page.items.into_iter().map(Into::into).collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: call.cursor(page.next),
    }))
}

fn read_level(name: &str) -> Option<Level> {
    let known = [Level::Warning, Level::Error];
    known.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(name))
}
