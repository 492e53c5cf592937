//! `GET /api/v1/timeline`

use axum::Json;
use evenkeel_commands::{Lane, Mark, Timeline, TimelineContent, TimelineQuery};
use evenkeel_core::schedule::MovedBy;
use evenkeel_core::timeline::{Density, DensityStep, LaneBy, MARKS_MAX, Outcomes};
use evenkeel_core::{JobId, RunId, RunIds, Timestamp};

use crate::call::{Answer, Call};
use crate::params::{Params, job_in_query};
use crate::view::view;

view! {
    /// A past, active or expected run.
    MarkView::new(mark: &Mark, ids: &RunIds) {}

    /// Index of the mark's lane in `lanes`.
    #[schema(example = 0)]
    lane: usize = mark.lane,
    /// Id of the job.
    job_id: JobId as uuid::Uuid = mark.job,
    /// Name of the job; null if the job has no name or was deleted.
    #[schema(example = "news/daily")]
    job_name: Option<String> = mark.job_name.clone(),
    /// Worker pool of the job; null if the job was deleted.
    #[schema(example = "default")]
    pool: Option<String> = mark.pool.clone(),
    /// Name of the node that runs or ran the newest attempt; null for runs that have not started.
    #[schema(example = "crawler-3")]
    node: Option<String> = mark.node.clone(),
    /// Scheduled time of the run.
    scheduled_at: Timestamp = mark.scheduled_at,
    /// Time when the run started, or is expected to start; null for a run that waits, and for
    /// skipped times.
    start: Option<Timestamp> = mark.start,
    /// Time when the run ended, or is expected to end; null if that is unknown.
    end: Option<Timestamp> = mark.end,
    /// Status of the run, as in the list of runs, or `expected`.
    #[schema(example = "completed", pattern =
        "^(pending|running|completed|failed|cancelled|timed_out|skipped|partly_failed|superseded|expected)$")]
    status: &'static str = mark.status.as_str(),
    /// Id of the run; null for expected runs.
    run_id: Option<RunId> as Option<uuid::Uuid> = mark.run.map(|key| ids.run_id(key)),
    /// True if `start` or `end` is an estimate: the start of a periodic job or of a run that waits
    /// for a worker, and every end in the future.
    #[schema(example = false)]
    is_estimate: bool = mark.start_is_estimate || mark.end_is_estimate,
    /// True if `start` is an estimate.
    #[schema(example = false)]
    start_is_estimate: bool = mark.start_is_estimate,
    /// Why an expected run starts at another time than its schedule names: `daylight_saving` or
    /// `blackout`.
    moved_by: Option<&'static str> = mark.moved_by.map(MovedBy::as_str),
}

view! {
    /// What the marks of one lane have in common.
    LaneView::new(lane: &Lane) {}

    /// Name of the job, pool or node; null for jobs without a name, and for runs whose pool or node
    /// is not known.
    #[schema(example = "news/daily")]
    name: Option<String> = lane.name.clone(),
    /// Id of the job, with `by=job`.
    job_id: Option<JobId> as Option<uuid::Uuid> = lane.job,
    /// Number of marks in the lane.
    #[schema(example = 12)]
    marks: u64 = lane.marks,
}

view! {
    /// Ended executions by outcome. A failed execution counts although a retry follows.
    OutcomesView::new(past: Outcomes) {}

    /// Number of executions that ended with success.
    #[schema(example = 310)]
    completed: u64 = past.completed,
    /// Number of executions that failed.
    #[schema(example = 4)]
    failed: u64 = past.failed,
    /// Number of executions that timed out.
    #[schema(example = 0)]
    timed_out: u64 = past.timed_out,
    /// Number of executions that were cancelled, or superseded by a newer run.
    #[schema(example = 0)]
    cancelled: u64 = past.cancelled,
}

view! {
    /// Number of runs in one step.
    DensityView::new(step: &DensityStep) {}

    /// Start of the step. The first step may begin before the period.
    start: Timestamp = step.start,
    /// Executions that ended in the step; null if they are not known, for example in the future.
    past: Option<OutcomesView> = step.past.map(OutcomesView::new),
    /// Number of runs that are expected in the part of the step that lies in the future; null if
    /// there is no forecast for the step.
    #[schema(example = 125.5)]
    expected: Option<f64> = step.expected.map(|runs| (runs * 100.0).round() / 100.0),
}

view! {
    /// Past, active and expected runs of a period.
    TimelineView::new(found: &Timeline, ids: &RunIds) {
        let (lanes, marks, density) = match &found.content {
            TimelineContent::Marks { lanes, marks, .. } => (&lanes[..], &marks[..], None),
            TimelineContent::Density(density) => (&[][..], &[][..], Some(density)),
        };
        let not_kept = match found.content {
            TimelineContent::Marks { not_kept, .. } => not_kept,
            TimelineContent::Density(_) => None,
        };
    }

    /// Start of the period.
    from: Timestamp = found.period.from(),
    /// End of the period, exclusive.
    to: Timestamp = found.period.to(),
    /// Time for which the timeline was computed: runs are expected after this time.
    as_of: Timestamp = found.as_of,
    /// What the lanes are: `job`, `pool` or `node`.
    #[schema(pattern = "^(job|pool|node)$", example = "job")]
    by: &'static str = found.by.as_str(),
    /// Id of the only job that the timeline shows; null for all jobs.
    job_id: Option<JobId> as Option<uuid::Uuid> = found.job,
    /// `marks` if the timeline shows each run, `density` if it shows numbers of runs because there
    /// are too many.
    #[schema(pattern = "^(marks|density)$", example = "marks")]
    shows: &'static str = if density.is_none() { "marks" } else { "density" },
    /// The lanes of the marks, by name; lanes without a name come last. Empty with `density`.
    #[schema(max_items = 2000)]
    lanes: Vec<LaneView> = lanes.iter().map(LaneView::new).collect(),
    /// The runs, in the order of their start, or of their scheduled time if they have not started.
    /// Empty with `density`.
    #[schema(max_items = 2000)]
    marks: Vec<MarkView> = marks.iter().map(|mark| MarkView::new(mark, ids)).collect(),
    /// Number of runs that were fired in the past part of the period but are no longer in the
    /// history, which keeps a limited number of runs of each job. Null with `density`, or with
    /// `job`.
    #[schema(example = 0)]
    runs_not_kept: Option<u64> = not_kept,
    /// Length of each entry of `density`, in seconds; null with `marks`.
    #[schema(example = json!(null))]
    step_seconds: Option<u64> = density.map(|density| density.step().as_micros() / 1_000_000),
    /// The steps of the period, oldest first; empty with `marks`.
    #[schema(max_items = 1000)]
    density: Vec<DensityView> =
        density.map_or(&[][..], Density::steps).iter().map(DensityView::new).collect(),
}

#[derive(Clone, PartialEq, Eq, Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TimelineParams {
    /// Start of the period. Default: one hour before now, or two hours before `to`.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-01T08:00:00Z")]
    from: Option<String>,
    /// End of the period, exclusive. Default: two hours after `from`. The longest period is 7 days.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-01T10:00:00Z")]
    to: Option<String>,
    /// What the lanes are.
    #[param(pattern = "^(job|pool|node)$", default = "job")]
    by: Option<String>,
    /// Shows only runs of this job, given by id or name.
    #[param(example = "news/daily")]
    job: Option<String>,
    /// Maximum number of marks; if the period has more runs, the answer has numbers of runs
    /// instead.
    #[param(minimum = 1, maximum = 2000, default = 2000)]
    limit_marks: Option<u32>,
}

/// Returns past, active and expected runs of a period, for a chart on one axis.
///
/// Each run is a mark. If the period has more runs than `limit_marks`, or so many jobs that not all
/// of them can be read, the answer has no marks but `density`: numbers of runs per step of 15
/// minutes, or of shorter steps for a single job and for the future.
///
/// Past runs are those in the history whose scheduled time lies in the period. Runs that are still
/// running are shown even if they began before the period. Expected runs are the scheduled times of
/// active jobs from now on, moved by blackouts and clock changes as in `/jobs/{id}/next`. Paused,
/// cancelled and finished jobs have none.
#[utoipa::path(
    get, path = "/api/v1/timeline", tag = "executions",
    params(TimelineParams),
    responses(
        (status = 200, description = "The runs of the period", body = TimelineView),
        (status = 404, description = "There is no job with this id or name"),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_timeline(call: Call, mut params: Params) -> Answer<TimelineView> {
    let lanes = LaneBy::ALL.map(|by| (by.as_str(), by));
    let query = TimelineQuery {
        from: params.time("from"),
        to: params.time("to"),
        by: params.choice("by", &lanes).unwrap_or_default(),
        job: None,
        limit_marks: params.number("limit_marks", 1..=MARKS_MAX).unwrap_or(MARKS_MAX),
    };
    let job = params.text("job");
    params.finish()?;
    let query = TimelineQuery { job: job_in_query(&call, job).await?, ..query };
    let found = call.runs.timeline(call.scope(), &call.balancing, query).await?;
    Ok(Json(TimelineView::new(&found, &call.run_ids)))
}
