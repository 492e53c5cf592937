//! `GET /api/v1/scheduler/activity`

use std::collections::BTreeMap;

use axum::Json;
use evenkeel_commands::{Activity, ActivityQuery};
use evenkeel_core::activity::{
    ActivityCounts, ActivityStep, LATENESS_BOUNDS, Lateness, StepActivity,
};
use evenkeel_core::advance::SkipReason;
use evenkeel_core::{Span, Timestamp};
use utoipa::IntoParams;

use super::figures::rounded;
use crate::call::{Answer, Call};
use crate::params::Params;
use crate::view::view;

view! {
    /// How late executions started, counted from the time from which they were allowed to start.
    /// Only first attempts count, because a retry starts late on purpose.
    LatenessView::new(lateness: &Lateness) {}

    /// Number of starts.
    #[schema(example = 118)]
    count: u64 = lateness.count(),
    /// Half of the starts were at most this late, in milliseconds; null without starts. The upper
    /// bound of a bucket, or `max_ms` if that is smaller.
    #[schema(example = 10.0)]
    p50_ms: Option<f64> = lateness.percentile(50).map(millis),
    /// 99 % of the starts were at most this late, in milliseconds; null without starts. The upper
    /// bound of a bucket, or `max_ms` if that is smaller.
    #[schema(example = 50.0)]
    p99_ms: Option<f64> = lateness.percentile(99).map(millis),
    /// Largest lateness, in milliseconds; null without starts.
    #[schema(example = 37.2)]
    max_ms: Option<f64> = lateness.max().map(millis),
    /// Number of starts in each bucket. The upper bounds of the buckets are `lateness_bounds_ms`;
    /// the last bucket has no upper bound.
    #[schema(example = json!([110, 8, 0, 0, 0, 0, 0, 0, 0, 0]))]
    buckets: Vec<u64> = lateness.buckets().to_vec(),
}

view! {
    /// What happened to runs in a period.
    ActivityFigures::new(counts: &ActivityCounts) {}

    /// Number of runs that were fired.
    #[schema(example = 120)]
    fired: u64 = counts.fired,
    /// Number of executions that ended with success.
    #[schema(example = 115)]
    completed: u64 = counts.completed,
    /// Number of executions that failed, including those that were retried later.
    #[schema(example = 3)]
    failed: u64 = counts.failed,
    /// Number of executions that timed out.
    #[schema(example = 1)]
    timed_out: u64 = counts.timed_out,
    /// Number of executions that were cancelled, or superseded by a newer run, after their start.
    #[schema(example = 0)]
    cancelled: u64 = counts.cancelled,
    /// Number of scheduled times that were skipped, by reason.
    #[schema(example = json!({"misfire": 0, "overlap": 2}))]
    skipped: BTreeMap<&'static str, u64> as BTreeMap<String, u64> = SkipReason::ALL
        .into_iter()
        .map(|reason| (reason.as_str(), counts.skipped.of(reason)))
        .collect(),
    /// Total duration of the executions that ended, in seconds.
    #[schema(example = 842.5)]
    busy_seconds: f64 = rounded(counts.busy.as_micros() as f64 / 1e6),
    /// How late executions started.
    lateness: LatenessView = LatenessView::new(&counts.lateness),
}

view! {
    /// What happened to runs in one step.
    ActivitySlot::new(step: &StepActivity) {}

    /// Start of the step.
    start: Timestamp = step.start,
    #[serde(flatten)]
    figures: ActivityFigures = ActivityFigures::new(&step.counts),
}

view! {
    /// What happened to runs in a past period.
    ActivityView::new(found: &Activity) {}

    /// Start of the period: `from`, rounded down to a whole step.
    from: Timestamp = found.period.from().start(),
    /// End of the period, exclusive: `until`, rounded up to a whole step.
    until: Timestamp = found.period.until().start(),
    /// Length of each entry of `slots`: `15m`, `1h` or `1d`.
    #[schema(pattern = "^(15m|1h|1d)$", example = "15m")]
    step: &'static str = found.period.step().as_str(),
    /// Upper bounds of the buckets in `lateness`, in milliseconds, inclusive.
    #[schema(example = json!([10.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0, 30000.0, 300000.0]))]
    lateness_bounds_ms: Vec<f64> = LATENESS_BOUNDS.map(millis).to_vec(),
    /// All steps of the period, oldest first. Steps in which nothing happened have zero counts.
    #[schema(max_items = 2000)]
    slots: Vec<ActivitySlot> = found.steps.iter().map(ActivitySlot::new).collect(),
    /// All steps together.
    totals: ActivityFigures = ActivityFigures::new(&found.totals),
}

fn millis(span: Span) -> f64 {
    span.as_micros() as f64 / 1e3
}

#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActivityParams {
    /// Start of the period. Default: 24 hours before its end. Activity is kept for 90 days.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<String>,
    /// End of the period, exclusive. Default: now.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
    /// Length of the steps into which the period is divided; hours and days are those of UTC. The
    /// period may have 2,000 steps at most: about 20 days with `15m`, and 83 days with `1h`.
    #[param(pattern = "^(15m|1h|1d)$", default = "15m")]
    step: Option<String>,
}

/// Returns what happened to the runs of the tenant in a past period: how many were fired, ended and
/// skipped, and how late they started. Nodes report these counts every few seconds; if a node
/// crashes, its counts since its last report are lost.
#[utoipa::path(
    get, path = "/api/v1/scheduler/activity", tag = "executions",
    params(ActivityParams),
    responses((status = 200, description = "Counts of the tenant's runs per time slot", body = ActivityView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_activity(call: Call, mut params: Params) -> Answer<ActivityView> {
    let steps = ActivityStep::ALL.map(|step| (step.as_str(), step));
    let query = ActivityQuery {
        from: params.time("from"),
        until: params.time("until"),
        step: params.choice("step", &steps).unwrap_or_default(),
    };
    params.finish()?;
    Ok(Json(ActivityView::new(&call.runs.activity(call.scope(), query).await?)))
}
