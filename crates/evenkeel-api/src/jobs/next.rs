//! `GET /api/v1/jobs/{id}/next`

use axum::Json;
use evenkeel_commands::{NextTime, NextTimes};
use evenkeel_core::{JobId, Timestamp};
use utoipa::IntoParams;

use crate::call::{Answer, Call};
use crate::params::{Params, PathJob};
use crate::view::view;

view! {
    /// A future start time of a job.
    NextTimeView::new(time: NextTime) {}

    /// Start time in UTC.
    utc: Timestamp = time.utc,
    /// The start time in the job's time zone, with its UTC offset.
    #[schema(format = DateTime)]
    local: String = time.local,
    /// Why the start time differs from the schedule: `daylight_saving` or `blackout`.
    moved_by: Option<&'static str> = time.moved_by,
}

view! {
    /// The next start times of a job.
    NextTimesView::new(next: NextTimes) {}

    /// Id of the job.
    job_id: JobId as uuid::Uuid = next.job,
    /// Kind of schedule: `once`, `interval`, `cron` or `periodic`.
    kind: &'static str = next.kind,
    /// The schedule in plain English.
    description: String = next.description,
    /// IANA time zone of the schedule.
    timezone: String = next.timezone.name().into(),
    /// False for a periodic job: its start times depend on when runs finish, and `times` are the
    /// latest start times.
    exact_times: bool = next.exact_times,
    /// The next start times of the job; empty while the job is paused.
    times: Vec<NextTimeView> = next.times.into_iter().map(NextTimeView::new).collect(),
}

#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NextQuery {
    /// Number of start times to return.
    #[param(minimum = 1, maximum = 1000, default = 10)]
    count: Option<u32>,
}

/// Returns the next start times of a job.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/next", tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name"), NextQuery),
    responses((status = 200, description = "The next start times", body = NextTimesView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn next_times_of_job(
    call: Call,
    PathJob(id): PathJob,
    mut params: Params,
) -> Answer<NextTimesView> {
    let NextQuery { count } = NextQuery { count: params.number("count", 1..=1000) };
    params.finish()?;
    let count = count.unwrap_or(10) as usize;
    Ok(Json(NextTimesView::new(call.jobs.next_times(call.scope(), id, count).await?)))
}
