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

/// A schedule to preview: the schedule fields of a job (described there), and where to start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewDocument {
    /// Schedule to preview.
    pub schedule: Option<ScheduleForm>,
    #[schema(minimum = 1)]
    pub interval_minutes: Option<u32>,
    #[schema(pattern = "^(minutes|hours|days)$")]
    pub interval_type: Option<String>,
    pub schedule_enabled: Option<bool>,
    pub schedule_time: Option<String>,
    pub cron_expression: Option<String>,
    pub cron_schedule: Option<String>,
    pub cron_max_schedule_duration: Option<String>,
    pub scheduling_period: Option<String>,
    pub cooldown_duration: Option<String>,
    #[schema(default = "UTC", example = "America/Toronto")]
    pub timezone: Option<String>,
    pub tz: Option<String>,
    #[schema(default = "shift", pattern = "^(shift|skip)$")]
    pub dst_gap: Option<String>,
    #[schema(default = "first", pattern = "^(first|last|both)$")]
    pub dst_overlap: Option<String>,
    pub exact: Option<bool>,
    #[schema(format = DateTime)]
    pub start_at: Option<String>,
    #[schema(format = DateTime)]
    pub end_at: Option<String>,
    #[schema(minimum = 1)]
    pub max_runs: Option<u64>,
    #[schema(max_items = 48)]
    pub blackout_periods: Option<Vec<BlackoutView>>,
    pub avoid_blackout: Option<bool>,
    pub prefer_window: Option<HoursView>,
    pub average_duration_override: Option<String>,
    /// Preview as of this time. Default: now.
    #[schema(format = DateTime)]
    pub from: Option<String>,
    /// Number of times to return.
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    pub count: Option<u32>,
}

/// Number of jobs whose next run is in one quarter hour.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SlotLoadView {
    /// Start of the quarter hour.
    #[schema(value_type = String, format = DateTime)]
    pub slot: Timestamp,
    /// Number of the tenant's own jobs among those examined.
    pub jobs: u32,
    /// Set if the count is incomplete: the number of jobs examined, over all tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_up_to: Option<u32>,
}

impl From<SlotLoad> for SlotLoadView {
    fn from(load: SlotLoad) -> Self {
        let counted_up_to = (!load.counted_all).then_some(LOAD_COUNTED_MAX);
        Self { slot: load.slot, jobs: load.jobs, counted_up_to }
    }
}

/// The preview of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PreviewView {
    /// Kind of schedule: `once`, `interval`, `cron` or `periodic`.
    pub kind: &'static str,
    /// The schedule in plain English.
    pub description: String,
    /// IANA time zone of the schedule.
    pub timezone: String,
    /// The first start times.
    pub times: Vec<NextTimeView>,
    /// False if a job's actual times would differ: a periodic job starts as soon as it may, and
    /// these are the latest times; with `H`, or if it is not `exact`, each job gets its own times;
    /// the first time of an interval without an anchor is chosen on creation, and this is the
    /// latest.
    pub exact_times: bool,
    /// Load of the quarter hours (at most 24) that the schedule would hit in the 24 hours from its
    /// first time.
    pub load: Vec<SlotLoadView>,
}

/// Previews the start times of a schedule. Nothing is created.
#[utoipa::path(
    post,
    path = "/api/v1/schedules/preview",
    operation_id = "preview_schedule",
    tag = "schedules",
    request_body(content = PreviewDocument, example = json!({
        "schedule": "0 9 * * 1-5", "timezone": "America/Toronto",
    })),
    responses((status = 200, description = "The preview", body = PreviewView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn preview(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<Json<PreviewView>, Problem> {
    let (preview, load) = app.jobs.preview(&caller.scope, &document).await?;
    Ok(Json(PreviewView {
        kind: preview.kind,
        description: preview.description,
        timezone: preview.timezone.name().into(),
        times: preview.times.into_iter().map(Into::into).collect(),
        exact_times: preview.exact_times,
        load: load.into_iter().map(Into::into).collect(),
    }))
}
