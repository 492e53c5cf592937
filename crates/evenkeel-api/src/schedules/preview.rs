//! `POST /api/v1/schedules/preview`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::{LOAD_COUNTED_MAX, SlotLoad};
use evenkeel_core::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::JsonBody;
use crate::jobs::{BlackoutView, HoursView, NextTimeView, ScheduleForm};
use crate::params::NoParams;
use crate::problem::Problem;
use crate::state::App;

/// A schedule to look at: the fields of a job that say when it runs, and from when to look.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewDocument {
    /// When it runs.
    pub schedule: Option<ScheduleForm>,
    /// As for a job.
    #[schema(minimum = 1)]
    pub interval_minutes: Option<u32>,
    /// As for a job.
    #[schema(pattern = "^(minutes|hours|days)$")]
    pub interval_type: Option<String>,
    /// As for a job.
    pub schedule_enabled: Option<bool>,
    /// As for a job.
    pub schedule_time: Option<String>,
    /// As for a job.
    pub cron_expression: Option<String>,
    /// As for a job.
    pub cron_schedule: Option<String>,
    /// As for a job.
    pub cron_max_schedule_duration: Option<String>,
    /// As for a job.
    pub scheduling_period: Option<String>,
    /// As for a job.
    pub cooldown_duration: Option<String>,
    /// As for a job.
    #[schema(default = "UTC", example = "America/Toronto")]
    pub timezone: Option<String>,
    /// As for a job.
    pub tz: Option<String>,
    /// As for a job.
    #[schema(default = "shift", pattern = "^(shift|skip)$")]
    pub dst_gap: Option<String>,
    /// As for a job.
    #[schema(default = "first", pattern = "^(first|last|both)$")]
    pub dst_overlap: Option<String>,
    /// As for a job.
    pub exact: Option<bool>,
    /// As for a job.
    #[schema(format = DateTime)]
    pub start_at: Option<String>,
    /// As for a job.
    #[schema(format = DateTime)]
    pub end_at: Option<String>,
    /// As for a job.
    #[schema(minimum = 1)]
    pub max_runs: Option<u64>,
    /// As for a job.
    #[schema(max_items = 48)]
    pub blackout_periods: Option<Vec<BlackoutView>>,
    /// As for a job.
    pub avoid_blackout: Option<bool>,
    /// As for a job.
    pub prefer_window: Option<HoursView>,
    /// As for a job.
    pub average_duration_override: Option<String>,
    /// As if a job were created then; left out: now.
    #[schema(format = DateTime)]
    pub from: Option<String>,
    /// So many times.
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    pub count: Option<u32>,
}

/// How many jobs have their next time in a quarter of an hour.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SlotLoadView {
    /// Its first moment.
    #[schema(value_type = String, format = DateTime)]
    pub slot: Timestamp,
    /// How many of your own, among those that were looked at.
    pub jobs: u32,
    /// There may be more: so many jobs of all tenants were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_up_to: Option<u32>,
}

impl From<SlotLoad> for SlotLoadView {
    fn from(load: SlotLoad) -> Self {
        let counted_up_to = (!load.counted_all).then_some(LOAD_COUNTED_MAX);
        Self { slot: load.slot, jobs: load.jobs, counted_up_to }
    }
}

/// What a schedule would do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PreviewView {
    /// `once`, `interval`, `cron` or `periodic`.
    pub kind: &'static str,
    /// In plain English.
    pub description: String,
    /// The zone its times are meant in.
    pub timezone: String,
    /// Its first times.
    pub times: Vec<NextTimeView>,
    /// False if a job would have other times: a periodic one starts as soon as it may, and these are
    /// the latest; with `H`, or if it is not `exact`, each job has times of its own; the first time of
    /// an interval without an anchor is chosen when there is a job, and this is the latest.
    pub exact_times: bool,
    /// How many jobs have their next time in the quarters of an hour that it would hit in the 24
    /// hours from its first time on, up to 24 of these.
    pub load: Vec<SlotLoadView>,
}

/// What a schedule would do; nothing is created.
#[utoipa::path(
    post,
    path = "/api/v1/schedules/preview",
    operation_id = "preview_schedule",
    tag = "schedules",
    request_body(content = PreviewDocument, example = json!({
        "schedule": "0 9 * * 1-5", "timezone": "America/Toronto",
    })),
    responses((status = 200, description = "Its times", body = PreviewView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn preview(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<Json<PreviewView>, Problem> {
    let (seen, load) = app.jobs.preview(&caller.scope, &document).await?;
    Ok(Json(PreviewView {
        kind: seen.kind,
        description: seen.description,
        timezone: seen.timezone.name().into(),
        times: seen.times.into_iter().map(Into::into).collect(),
        exact_times: seen.exact_times,
        load: load.into_iter().map(Into::into).collect(),
    }))
}
