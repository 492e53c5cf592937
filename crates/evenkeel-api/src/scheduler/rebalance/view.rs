//! The views of a rebalance.

use std::collections::BTreeMap;

use evenkeel_commands::{
    ListedMove, PlanSummary, RebalanceReport, Shape, SkippedJob, plan_expires_at, state_name,
    undo_until,
};
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Rebalance, RebalanceState, StoreError};
use serde_json::Value;
use uuid::Uuid;

use super::super::distribution::minutes;
use super::super::figures::{rounded, whole};
use crate::jobs::commands::FilterDocument;
use crate::view::view;

view! {
    /// Expected runs of one hour of the day.
    HourCount::new(hour: u8, count: f64) {}

    /// Hour of the day in UTC, 0 to 23.
    #[schema(maximum = 23, example = 14)]
    hour: u8 = hour,
    /// Expected runs in this hour.
    #[schema(example = 8)]
    job_count: u64 = whole(count),
}

view! {
    /// How runs are spread over 24 hours.
    ShapeView::new(shape: &Shape) {}

    /// Distribution score of the spread, 0 to 1; 1 means that runs are spread as evenly as these
    /// jobs allow.
    #[schema(minimum = 0, maximum = 1, example = 0.65)]
    distribution_score: f64 = rounded(shape.score),
    /// Length of a time slot, in minutes.
    #[schema(value_type = f64, example = 15)]
    slot_minutes: serde_json::Number = minutes(shape.slot),
    /// Highest number of expected runs in one time slot.
    #[schema(example = 12.0)]
    peak: f64 = rounded(shape.peak),
    /// Highest number of expected runs in one hour.
    #[schema(example = 20)]
    peak_count: u64 = whole(shape.hours.into_iter().fold(0.0, f64::max)),
    /// Average number of expected runs per time slot.
    #[schema(example = 1.75)]
    mean: f64 = rounded(shape.mean),
    /// Lowest `peak` that these jobs could have if they were spread perfectly.
    #[schema(example = 2.0)]
    least_peak: f64 = rounded(shape.least_peak),
    /// Expected runs by hour of the day.
    #[schema(min_items = 24, max_items = 24)]
    hourly_distribution: Vec<HourCount> =
        (0..).zip(shape.hours).map(|(hour, count)| HourCount::new(hour, count)).collect(),
}

view! {
    /// A job that was moved to another start time.
    MovedView::new(listed: ListedMove) {}

    /// Id of the job.
    job_id: JobId as Uuid = listed.job,
    /// Next run time before the move.
    old_time: Timestamp = listed.old_at,
    /// Next run time after the move.
    new_time: Timestamp = listed.new_at,
}

view! {
    /// A job that the rebalance did not move.
    SkippedJobView::new(skipped: SkippedJob) {}

    /// Id of the job.
    job_id: JobId as Uuid = skipped.job,
    /// Reason: `job_running`, `protection_window` (the job runs soon), `placement_cooldown` (its
    /// start time was chosen recently), `not_movable` (the scheduler does not choose its start
    /// time), or `changed` (the job changed after the plan was made).
    #[schema(example = "protection_window")]
    reason: String = skipped.reason,
}

view! {
    /// A rebalance, or the plan of one.
    RebalanceView::new(rebalance: &Rebalance, summary: &PlanSummary) {
        let has_ended = matches!(rebalance.state, RebalanceState::Done | RebalanceState::Stopped);
        let can_be_undone = has_ended && rebalance.undone_by.is_none() && rebalance.moved > 0;
        let is_plan = rebalance.state == RebalanceState::Planned;
    }

    /// Id of the rebalance.
    rebalance_id: Uuid = rebalance.id,
    /// State: `planned`, `running`, `done` or `stopped`.
    #[schema(pattern = "^(planned|running|done|stopped)$", example = "done")]
    state: &'static str = state_name(rebalance.state),
    /// Subject that created the rebalance.
    created_by: String = rebalance.created_by.clone(),
    /// Time when the rebalance was planned.
    created_at: Timestamp = rebalance.created_at,
    /// Time when the plan expires; null if the rebalance was started.
    expires_at: Option<Timestamp> = is_plan.then(|| plan_expires_at(rebalance)),
    /// Time when the rebalance last moved a job.
    updated_at: Option<Timestamp> = rebalance.touched_at,
    /// Time when the rebalance finished or was stopped.
    ended_at: Option<Timestamp> = rebalance.ended_at,
    /// Progress of the rebalance, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    progress: f64 = progress(rebalance),
    /// Number of jobs that the plan moves.
    planned_total: u64 = rebalance.planned,
    /// Number of jobs moved so far.
    moved_total: u64 = rebalance.moved,
    /// Number of jobs that were not moved.
    skipped_total: u64 = rebalance.skipped + rebalance.changed,
    /// Distribution score when the rebalance was planned, 0 to 1.
    #[schema(example = 0.65)]
    current_score: f64 = rounded(summary.before.score),
    /// Distribution score expected after all planned moves, 0 to 1.
    #[schema(example = 0.91)]
    projected_score: f64 = rounded(summary.after.score),
    /// `max_moves` of the request.
    max_moves: Option<u64> = summary.max_moves,
    /// `target_score` of the request.
    target_score: Option<f64> = summary.target_score,
    /// `filter` of the request.
    filter: Option<Value> as Option<FilterDocument> = summary.filter.clone(),
    /// Id of the rebalance that this one undoes.
    undoes: Option<Uuid> = rebalance.undoes,
    /// Id of the rebalance that undid this one.
    undone_by: Option<Uuid> = rebalance.undone_by,
    /// Time until which the rebalance can be undone; null if it cannot be undone.
    undo_until: Option<Timestamp> = can_be_undone.then(|| undo_until(rebalance)),
}

impl RebalanceView {
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

view! {
    /// A rebalance with the jobs that it moved and skipped.
    RebalancedView::new(found: RebalanceReport) {}

    #[serde(flatten)]
    rebalance: RebalanceView = RebalanceView::new(&found.rebalance, &found.summary),
    /// The first 1,000 moved jobs; `GET …/rebalance/{id}/moves` lists all of them.
    #[schema(max_items = 1000)]
    moved: Vec<MovedView> = found.moved.into_iter().map(MovedView::new).collect(),
    /// The first 1,000 jobs that were not moved.
    #[schema(max_items = 1000)]
    skipped: Vec<SkippedJobView> = found.skipped.into_iter().map(SkippedJobView::new).collect(),
    /// Number of jobs that were not moved, by reason.
    skipped_by_reason: BTreeMap<String, u64> = found.skipped_by_reason,
    /// Distribution score now, 0 to 1.
    #[schema(minimum = 0, maximum = 1, example = 0.91)]
    new_distribution_score: f64 = rounded(found.score),
    /// How runs were spread over time when the rebalance was planned.
    before: ShapeView = ShapeView::new(&found.summary.before),
    /// How runs are spread over time after all planned moves.
    after: ShapeView = ShapeView::new(&found.summary.after),
}
