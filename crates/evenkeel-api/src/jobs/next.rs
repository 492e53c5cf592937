//! `GET /api/v1/jobs/{id}/next`

use axum::Json;
use evenkeel_commands::{NextTime, NextTimes};
use evenkeel_core::{JobId, Timestamp};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::call::{Answer, Call};
use crate::params::{Params, PathJob};

/// A future start time of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct NextTimeView {
    /// Start time in UTC.
    pub utc: Timestamp,
    /// The start time in the job's time zone, with its UTC offset.
    #[schema(format = DateTime)]
    pub local: String,
    /// Why the start time differs from the schedule: `daylight_saving` or `blackout`.
    pub moved_by: Option<&'static str>,
}

impl From<NextTime> for NextTimeView {
    fn from(time: NextTime) -> Self {
        Self { utc: time.utc, local: time.local, moved_by: time.moved_by }
    }
}

/// The next start times of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct NextTimesView {
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Kind of schedule: `once`, `interval`, `cron` or `periodic`.
    pub kind: &'static str,
    /// The schedule in plain English.
    pub description: String,
    /// IANA time zone of the schedule.
    pub timezone: String,
    /// False for a periodic job: its start times depend on when runs finish, and `times` are the
    /// latest start times.
    pub exact_times: bool,
    /// The next start times of the job; empty while the job is paused.
    pub times: Vec<NextTimeView>,
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
    get,
    path = "/api/v1/jobs/{id}/next",
    tag = "jobs",
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
    let NextTimes { job, kind, description, timezone, times, exact_times } =
        call.jobs.next_times(call.scope(), id, count).await?;
    Ok(Json(NextTimesView {
        job_id: job,
        kind,
        description,
        timezone: timezone.name().into(),
        exact_times,
        times: times.into_iter().map(Into::into).collect(),
    }))
}
