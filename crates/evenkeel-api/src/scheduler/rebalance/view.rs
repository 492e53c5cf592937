//! The views of a rebalance.

use std::collections::BTreeMap;

use evenkeel_commands::{
    ListedMove, PlanSummary, RebalanceReport, Shape, SkippedJob, plan_expires_at, state_name,
    undo_until,
};
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Rebalance, RebalanceState, StoreError};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::distribution::minutes;
use super::super::figures::{rounded, whole};
use crate::jobs::commands::FilterDocument;

/// Expected runs of one hour of the day.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct HourCount {
    /// Hour of the day in UTC, 0 to 23.
    #[schema(maximum = 23, example = 14)]
    pub hour: u8,
    /// Expected runs in this hour.
    #[schema(example = 8)]
    pub job_count: u64,
}

/// How runs are spread over 24 hours.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ShapeView {
    /// Distribution score of the spread, 0 to 1; 1 means that runs are spread as evenly as these
    /// jobs allow.
    #[schema(minimum = 0, maximum = 1, example = 0.65)]
    pub distribution_score: f64,
    /// Length of a time slot, in minutes.
    #[schema(value_type = f64, example = 15)]
    pub slot_minutes: serde_json::Number,
    /// Highest number of expected runs in one time slot.
    #[schema(example = 12.0)]
    pub peak: f64,
    /// Highest number of expected runs in one hour; `peak_count` of a distribution has the same
    /// meaning.
    #[schema(example = 20)]
    pub peak_count: u64,
    /// Average number of expected runs per time slot.
    #[schema(example = 1.75)]
    pub mean: f64,
    /// Lowest `peak` that these jobs could have if they were spread perfectly.
    #[schema(example = 2.0)]
    pub least_peak: f64,
    /// Expected runs by hour of the day.
    #[schema(min_items = 24, max_items = 24)]
    pub hourly_distribution: Vec<HourCount>,
}

impl From<&Shape> for ShapeView {
    fn from(shape: &Shape) -> Self {
        let hours = (0..).zip(shape.hours);
        Self {
            distribution_score: rounded(shape.score),
            slot_minutes: minutes(shape.slot),
            peak: rounded(shape.peak),
            peak_count: whole(shape.hours.into_iter().fold(0.0, f64::max)),
            mean: rounded(shape.mean),
            least_peak: rounded(shape.least_peak),
            hourly_distribution: hours
                .map(|(hour, count)| HourCount { hour, job_count: whole(count) })
                .collect(),
        }
    }
}

/// A job that was moved to another start time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct MovedView {
    /// Id of the job.
    #[schema(value_type = Uuid)]
    pub job_id: JobId,
    /// Next run time before the move.
    pub old_time: Timestamp,
    /// Next run time after the move.
    pub new_time: Timestamp,
}

impl From<ListedMove> for MovedView {
    fn from(listed: ListedMove) -> Self {
        Self { job_id: listed.job, old_time: listed.old_at, new_time: listed.new_at }
    }
}

/// A job that the rebalance did not move.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SkippedJobView {
    /// Id of the job.
    #[schema(value_type = Uuid)]
    pub job_id: JobId,
    /// Reason: `job_running`, `protection_window` (the job runs soon), `placement_cooldown` (its
    /// start time was chosen recently), `not_movable` (the scheduler does not choose its start
    /// time), or `changed` (the job changed after the plan was made).
    #[schema(example = "protection_window")]
    pub reason: String,
}

impl From<SkippedJob> for SkippedJobView {
    fn from(skipped: SkippedJob) -> Self {
        Self { job_id: skipped.job, reason: skipped.reason }
    }
}

/// A rebalance, or the plan of one.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct RebalanceView {
    /// Id of the rebalance.
    pub rebalance_id: Uuid,
    /// State: `planned`, `running`, `done` or `stopped`.
    #[schema(pattern = "^(planned|running|done|stopped)$", example = "done")]
    pub state: &'static str,
    /// Subject that created the rebalance.
    pub created_by: String,
    /// Time when the rebalance was planned.
    pub created_at: Timestamp,
    /// Time when the plan expires; null if the rebalance was started.
    pub expires_at: Option<Timestamp>,
    /// Time when the rebalance last moved a job.
    pub updated_at: Option<Timestamp>,
    /// Time when the rebalance finished or was stopped.
    pub ended_at: Option<Timestamp>,
    /// Progress of the rebalance, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub progress: f64,
    /// Number of jobs that the plan moves.
    pub planned_total: u64,
    /// Number of jobs moved so far.
    pub moved_total: u64,
    /// Number of jobs that were not moved.
    pub skipped_total: u64,
    /// Distribution score when the rebalance was planned, 0 to 1.
    #[schema(example = 0.65)]
    pub current_score: f64,
    /// Distribution score expected after all planned moves, 0 to 1.
    #[schema(example = 0.91)]
    pub projected_score: f64,
    /// `max_moves` of the request.
    pub max_moves: Option<u64>,
    /// `target_score` of the request.
    pub target_score: Option<f64>,
    /// `filter` of the request.
    #[schema(value_type = Option<FilterDocument>)]
    pub filter: Option<Value>,
    /// Id of the rebalance that this one undoes.
    pub undoes: Option<Uuid>,
    /// Id of the rebalance that undid this one.
    pub undone_by: Option<Uuid>,
    /// Time until which the rebalance can be undone; null if it cannot be undone.
    pub undo_until: Option<Timestamp>,
}

impl RebalanceView {
    pub(super) fn new(rebalance: &Rebalance, summary: &PlanSummary) -> Self {
        let has_ended = matches!(rebalance.state, RebalanceState::Done | RebalanceState::Stopped);
        let can_be_undone = has_ended && rebalance.undone_by.is_none() && rebalance.moved > 0;
        let is_plan = rebalance.state == RebalanceState::Planned;
        Self {
            rebalance_id: rebalance.id,
            state: state_name(rebalance.state),
            created_by: rebalance.created_by.clone(),
            created_at: rebalance.created_at,
            expires_at: is_plan.then(|| plan_expires_at(rebalance)),
            updated_at: rebalance.touched_at,
            ended_at: rebalance.ended_at,
            progress: progress(rebalance),
            planned_total: rebalance.planned,
            moved_total: rebalance.moved,
            skipped_total: rebalance.skipped + rebalance.changed,
            current_score: rounded(summary.before.score),
            projected_score: rounded(summary.after.score),
            max_moves: summary.max_moves,
            target_score: summary.target_score,
            filter: summary.filter.clone(),
            undoes: rebalance.undoes,
            undone_by: rebalance.undone_by,
            undo_until: can_be_undone.then(|| undo_until(rebalance)),
        }
    }

    pub(super) fn of(rebalance: &Rebalance) -> Result<Self, StoreError> {
        Ok(Self::new(rebalance, &PlanSummary::of(rebalance)?))
    }
}

fn progress(rebalance: &Rebalance) -> f64 {
    match rebalance.state {
        RebalanceState::Planned => 0.0,
        RebalanceState::Done => 1.0,
        RebalanceState::Running | RebalanceState::Stopped => {
            let looked_at = rebalance.moved + rebalance.changed;
            if rebalance.planned == 0 {
                0.0
            } else {
                rounded(looked_at as f64 / rebalance.planned as f64)
            }
        }
    }
}

/// A rebalance with the jobs that it moved and skipped.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct RebalancedView {
    #[serde(flatten)]
    pub rebalance: RebalanceView,
    /// The first 1,000 moved jobs; `GET …/rebalance/{id}/moves` lists all of them.
    #[schema(max_items = 1000)]
    pub moved: Vec<MovedView>,
    /// The first 1,000 jobs that were not moved.
    #[schema(max_items = 1000)]
    pub skipped: Vec<SkippedJobView>,
    /// Number of jobs that were not moved, by reason.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// Distribution score now, 0 to 1.
    #[schema(minimum = 0, maximum = 1, example = 0.91)]
    pub new_distribution_score: f64,
    /// How runs were spread over time when the rebalance was planned.
    pub before: ShapeView,
    /// How runs are spread over time after all planned moves.
    pub after: ShapeView,
}

impl From<RebalanceReport> for RebalancedView {
    fn from(found: RebalanceReport) -> Self {
        Self {
            rebalance: RebalanceView::new(&found.rebalance, &found.summary),
            moved: found.moved.into_iter().map(MovedView::from).collect(),
            skipped: found.skipped.into_iter().map(SkippedJobView::from).collect(),
            skipped_by_reason: found.skipped_by_reason,
            new_distribution_score: rounded(found.score),
            before: (&found.summary.before).into(),
            after: (&found.summary.after).into(),
        }
    }
}
