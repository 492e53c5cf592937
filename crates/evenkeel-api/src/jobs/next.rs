//! `GET /api/v1/jobs/{id}/next`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::{Foreseen, NextTime};
use evenkeel_core::{JobId, Timestamp};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::auth::Caller;
use crate::params::{Params, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// A time at which a job starts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct NextTimeView {
    /// The moment.
    #[schema(value_type = String, format = DateTime)]
    pub utc: Timestamp,
    /// The same moment by the clocks of the zone, with their offset.
    #[schema(format = DateTime)]
    pub local: String,
    /// Why it is not where the schedule says: `daylight_saving` or `blackout`.
    pub moved_by: Option<&'static str>,
}

impl From<NextTime> for NextTimeView {
    fn from(time: NextTime) -> Self {
        Self { utc: time.utc, local: time.local, moved_by: time.moved_by }
    }
}

/// The next times of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct NextTimesView {
    /// Which job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// `once`, `interval`, `cron` or `periodic`.
    pub kind: &'static str,
    /// Its schedule in plain English.
    pub description: String,
    /// The zone its times are meant in.
    pub timezone: String,
    /// False for a periodic job: its times follow from its ends, and these are the latest.
    pub exact_times: bool,
    /// When it starts, if nothing is in the way but its own rules; none while it is paused.
    pub times: Vec<NextTimeView>,
}

/// How many times.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NextQuery {
    /// So many.
    #[param(minimum = 1, maximum = 1000, default = 10)]
    count: Option<u32>,
}

/// The next times of a job, from its stored next time on.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}/next",
    operation_id = "next_times_of_job",
    tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name"), NextQuery),
    responses((status = 200, description = "Its next times", body = NextTimesView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn next(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    mut params: Params,
) -> Result<Json<NextTimesView>, Problem> {
    let NextQuery { count } = NextQuery { count: params.number("count", 1..=1000) };
    params.finish()?;
    let count = count.unwrap_or(10) as usize;
    let Foreseen { job, kind, description, timezone, times, exact_times } =
        app.jobs.next_times(&caller.scope, id, count).await?;
    Ok(Json(NextTimesView {
        job_id: job,
        kind,
        description,
        timezone: timezone.name().into(),
        exact_times,
        times: times.into_iter().map(Into::into).collect(),
    }))
}
