//! `GET /api/v1/conditions`

use axum::Json;
use evenkeel_commands::JobAtRisk;
use evenkeel_core::condition::Level;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{ConditionCounts, Page, PageRequest, RiskCursor, RiskFilter};

use crate::call::{Answer, Call};
use crate::page::PageQuery;
use crate::params::Params;
use crate::state::App;
use crate::view::view;

view! {
    /// Number of the tenant's jobs in each condition.
    ConditionCountsView::new(counts: ConditionCounts) {}

    /// Number of jobs that keep their deadline promise or have none.
    ok: u64 = counts.jobs.saturating_sub(counts.warning).saturating_sub(counts.error),
    /// Number of jobs that still keep their deadline promise, but whose last run failed or that
    /// will probably miss their deadline.
    warning: u64 = counts.warning,
    /// Number of jobs that missed their deadline promise.
    error: u64 = counts.error,
    /// Number of jobs that missed their deadline promise only because of a blackout, counted up to
    /// 10,000.
    held_by_blackout: u64 = counts.held,
}

view! {
    /// A job in the condition `WARNING` or `ERROR`.
    AtRiskView::new(job: JobAtRisk) {
        let at_risk = job.at_risk;
    }

    /// Id of the job.
    id: JobId as uuid::Uuid = at_risk.job,
    /// Name of the job.
    name: Option<String> = at_risk.name,
    /// `WARNING` or `ERROR`.
    condition: &'static str = at_risk.reason.level().as_str(),
    /// Reason: `last_run_failed`, `likely_violated_running`, `likely_violated_waiting`, `violated`,
    /// `given_up` or `held_by_blackout`.
    reason: &'static str = at_risk.reason.as_str(),
    /// Time when the condition became `ERROR`, or will become `ERROR` if no run succeeds before.
    error_at: Option<Timestamp> = (at_risk.error_at < Timestamp::MAX).then_some(at_risk.error_at),
    /// Time since which the job is in this condition.
    since: Timestamp = at_risk.since,
    /// Explanation of the present condition, as plain text; it can be newer than `reason`. Null if the
    /// job was deleted meanwhile.
    explanation: Option<String> = job.explanation,
    /// What would make the job OK again, as plain text; null if it is OK meanwhile.
    advice: Option<String> = job.advice,
    /// Error message of the last execution, if it failed.
    error_message: Option<String> = job.error,
}

view! {
    /// Number of jobs in each condition, and one page of the jobs in `WARNING` or `ERROR`.
    ConditionList::new(
        app: &App, request: PageRequest<RiskCursor>, page: Page<JobAtRisk, RiskCursor>,
        counts: ConditionCounts
    ) {}

    /// Number of jobs in each condition, over all jobs of the tenant.
    counts: ConditionCountsView = ConditionCountsView::new(counts),
    /// Jobs in the condition `WARNING` or `ERROR`, sorted by `error_at`, earliest first.
    jobs: Vec<AtRiskView> = page.items.into_iter().map(AtRiskView::new).collect(),
    /// Number of items on all pages together.
    total: u64 = page.total,
    /// True if `total` is an estimate.
    total_is_estimate: bool = page.total_is_estimate,
    /// Page size: the `limit` of the request, or its default.
    limit: u32 = request.limit,
    /// Number of items that were skipped before this page, from the `offset` of the request.
    offset: u32 = request.offset,
    /// Value of `cursor` that requests the next page; null on the last page.
    next_cursor: Option<String> = app.cursor(page.next),
}

/// Lists the jobs that missed their deadline promise or are likely to miss it, as of the last
/// evaluation.
#[utoipa::path(
    get, path = "/api/v1/conditions", tag = "conditions",
    params(
        PageQuery,
        ("condition" = Option<String>, Query, pattern = "^(WARNING|ERROR)$",
         description = "Lists only jobs in this condition: `WARNING` or `ERROR`."),
    ),
    responses(
        (status = 200, description = "Counts, and one page of the list", body = ConditionList),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_conditions(call: Call, mut params: Params) -> Answer<ConditionList> {
    let request: PageRequest<RiskCursor> = PageQuery::take(&mut params);
    let level = params.parsed("condition", |name| {
        let mut known = [Level::Warning, Level::Error].into_iter();
        known.find(|level| level.as_str().eq_ignore_ascii_case(name)).ok_or_else(|| {
            format!(
                "{name:?} is not one of WARNING, ERROR; jobs that are OK are counted, not listed"
            )
        })
    });
    params.finish()?;
    let (counts, page) = call.jobs.at_risk(call.scope(), RiskFilter { level }, request).await?;
    Ok(Json(ConditionList::new(&call, request, page, counts)))
}
