//! `POST /api/v1/schedules/preview`

use axum::Json;
use evenkeel_commands::{LOAD_COUNTED_MAX, Preview, SlotLoad};
use evenkeel_core::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::JsonBody;
use crate::call::{Answer, Call};
use crate::jobs::next::NextTimeView;
use crate::jobs::schedule::{BlackoutView, HoursView, ScheduleForm};
use crate::view::view;

/// A schedule to preview. The schedule fields have the same meaning as in a job.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewDocument {
    /// Schedule to preview, as in a job.
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
    /// The preview shows start times after this time. Default: now.
    #[schema(format = DateTime)]
    pub from: Option<String>,
    /// Number of start times to return.
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    pub count: Option<u32>,
}

view! {
    /// Number of jobs whose next run falls into one quarter hour.
    SlotLoadView::new(load: SlotLoad) {}

    /// Start of the quarter hour (15 minutes).
    slot: Timestamp = load.slot,
    /// Number of the tenant's jobs whose next run falls into this quarter hour, among the jobs that
    /// were counted.
    jobs: u32 = load.jobs,
    /// Present if counting stopped early: the number of jobs that were counted, over all tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_up_to: Option<u32> = (!load.counted_all).then_some(LOAD_COUNTED_MAX),
}

view! {
    /// The preview of a schedule.
    PreviewView::new(preview: Preview, load: Vec<SlotLoad>) {}

    /// Kind of schedule: `once`, `interval`, `cron` or `periodic`.
    kind: &'static str = preview.kind,
    /// The schedule in plain English.
    description: String = preview.description,
    /// IANA time zone of the schedule.
    timezone: String = preview.timezone.name().into(),
    /// The next start times of the schedule.
    times: Vec<NextTimeView> = preview.times.into_iter().map(NextTimeView::new).collect(),
    /// False if a job with this schedule may start at other times than `times`. A periodic job may
    /// start earlier, so `times` are its latest start times. With `H` in the cron expression, or
    /// without `exact`, each job gets its own start times. The first run time of an interval
    /// without an anchor is chosen when the job is created, so `times` shows the latest possible
    /// choice.
    exact_times: bool = preview.exact_times,
    /// Number of existing jobs in each quarter hour in which this schedule would start runs; covers
    /// the first 24 hours and at most 24 quarter hours.
    load: Vec<SlotLoadView> = load.into_iter().map(SlotLoadView::new).collect(),
}

/// Previews the start times of a schedule without creating a job.
#[utoipa::path(
    post, path = "/api/v1/schedules/preview", tag = "schedules",
    request_body(content = PreviewDocument, example = json!({
        "schedule": "0 9 * * 1-5", "timezone": "America/Toronto",
    })),
    responses((status = 200, description = "The preview", body = PreviewView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn preview_schedule(
    call: Call,
    JsonBody(document): JsonBody,
) -> Answer<PreviewView> {
    let (preview, load) = call.jobs.preview(call.scope(), &document).await?;
    Ok(Json(PreviewView::new(preview, load)))
}
