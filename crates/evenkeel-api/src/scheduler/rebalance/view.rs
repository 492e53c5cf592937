//! Rebalances as they are shown.

use std::collections::BTreeMap;

use evenkeel_commands::{
    MoveShown, Outlook, Rebalanced, Shape, SkippedJob, plan_expires_at, state_word, undo_until,
};
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Rebalance, RebalanceState, StoreError};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::distribution::minutes;
use super::super::figures::{rounded, whole};
use crate::jobs::FilterDocument;

/// What an hour holds.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct HourCount {
    /// Which hour of the day, UTC.
    #[schema(maximum = 23, example = 14)]
    pub hour: u8,
    /// Runs that are expected in it.
    #[schema(example = 8)]
    pub job_count: u64,
}

/// How runs are spread over 24 hours.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ShapeView {
    /// How evenly.
    #[schema(minimum = 0, maximum = 1, example = 0.65)]
    pub distribution_score: f64,
    /// How long a slot is, in minutes.
    #[schema(value_type = f64, example = 15)]
    pub slot_minutes: serde_json::Number,
    /// The most in one slot.
    #[schema(example = 12.0)]
    pub peak: f64,
    /// The most in one hour, which `peak_count` of a distribution is, too.
    #[schema(example = 20)]
    pub peak_count: u64,
    /// In a slot on average.
    #[schema(example = 1.75)]
    pub mean: f64,
    /// No spread of these jobs has a lower peak.
    #[schema(example = 2.0)]
    pub least_peak: f64,
    /// The hours of the day.
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

/// A job that was moved.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct MovedView {
    /// Which.
    #[schema(value_type = Uuid)]
    pub job_id: JobId,
    /// Its next time before.
    #[schema(value_type = String, format = DateTime)]
    pub old_time: Timestamp,
    /// And from then on.
    #[schema(value_type = String, format = DateTime)]
    pub new_time: Timestamp,
}

impl From<MoveShown> for MovedView {
    fn from(shown: MoveShown) -> Self {
        Self { job_id: shown.job, old_time: shown.old_at, new_time: shown.new_at }
    }
}

/// A job that stays where it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SkippedJobView {
    /// Which.
    #[schema(value_type = Uuid)]
    pub job_id: JobId,
    /// Why: `job_running`, `protection_window` (it runs soon), `placement_cooldown` (it was placed a
    /// short time ago), `not_movable` (its time is not chosen by load), or `changed` (since the plan
    /// was made).
    #[schema(example = "protection_window")]
    pub reason: String,
}

impl From<SkippedJob> for SkippedJobView {
    fn from(skipped: SkippedJob) -> Self {
        Self { job_id: skipped.job, reason: skipped.reason }
    }
}

/// A rebalance.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct RebalanceView {
    /// Its id.
    pub rebalance_id: Uuid,
    /// `planned`, `running`, `done` or `stopped`.
    #[schema(pattern = "^(planned|running|done|stopped)$", example = "done")]
    pub state: &'static str,
    /// Who asked for it.
    pub created_by: String,
    /// When it was planned.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Until when it can be acted on, if it is a plan.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// When it last moved something.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub updated_at: Option<Timestamp>,
    /// When it was over or stopped.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// How far it has come, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub progress: f64,
    /// Moves that were planned.
    pub planned_total: u64,
    /// Jobs that were moved.
    pub moved_total: u64,
    /// Jobs that were not, though they might have been.
    pub skipped_total: u64,
    /// How even the load was when it was planned.
    #[schema(example = 0.65)]
    pub current_score: f64,
    /// How even it would make it.
    #[schema(example = 0.91)]
    pub projected_score: f64,
    /// At most so many moves were asked for.
    pub max_moves: Option<u64>,
    /// No more than it takes to this score was asked for.
    pub target_score: Option<f64>,
    /// Only these jobs might be moved.
    #[schema(value_type = Option<FilterDocument>)]
    pub filter: Option<Value>,
    /// It took this one back.
    pub undoes: Option<Uuid>,
    /// This one took it back.
    pub undone_by: Option<Uuid>,
    /// Until when it can be taken back, if it can.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub undo_until: Option<Timestamp>,
}

impl RebalanceView {
    pub(super) fn new(rebalance: &Rebalance, outlook: &Outlook) -> Self {
        let is_over = matches!(rebalance.state, RebalanceState::Done | RebalanceState::Stopped);
        let can_be_undone = is_over && rebalance.undone_by.is_none() && rebalance.moved > 0;
        let is_plan = rebalance.state == RebalanceState::Planned;
        Self {
            rebalance_id: rebalance.id,
            state: state_word(rebalance.state),
            created_by: rebalance.created_by.clone(),
            created_at: rebalance.created_at,
            expires_at: is_plan.then(|| plan_expires_at(rebalance)),
            updated_at: rebalance.touched_at,
            ended_at: rebalance.ended_at,
            progress: progress(rebalance),
            planned_total: rebalance.planned,
            moved_total: rebalance.moved,
            skipped_total: rebalance.skipped + rebalance.changed,
            current_score: rounded(outlook.before.score),
            projected_score: rounded(outlook.after.score),
            max_moves: outlook.max_moves,
            target_score: outlook.target_score,
            filter: outlook.filter.clone(),
            undoes: rebalance.undoes,
            undone_by: rebalance.undone_by,
            undo_until: can_be_undone.then(|| undo_until(rebalance)),
        }
    }

    pub(super) fn of(rebalance: &Rebalance) -> Result<Self, StoreError> {
        Ok(Self::new(rebalance, &Outlook::of(rebalance)?))
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

/// A rebalance, and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct RebalancedView {
    /// Itself.
    #[serde(flatten)]
    pub rebalance: RebalanceView,
    /// The first 1,000 jobs that were moved; `…/moves` has them all.
    #[schema(max_items = 1000)]
    pub moved: Vec<MovedView>,
    /// The first 1,000 that were not.
    #[schema(max_items = 1000)]
    pub skipped: Vec<SkippedJobView>,
    /// How many were not, by reason.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// How even the load is now.
    #[schema(minimum = 0, maximum = 1, example = 0.91)]
    pub new_distribution_score: f64,
    /// How runs were spread when it was planned.
    pub before: ShapeView,
    /// How they would be spread with all its moves.
    pub after: ShapeView,
}

impl From<Rebalanced> for RebalancedView {
    fn from(found: Rebalanced) -> Self {
        Self {
            rebalance: RebalanceView::new(&found.rebalance, &found.outlook),
            moved: found.moved.into_iter().map(MovedView::from).collect(),
            skipped: found.skipped.into_iter().map(SkippedJobView::from).collect(),
            skipped_by_reason: found.skipped_by_reason,
            new_distribution_score: rounded(found.score),
            before: (&found.outlook.before).into(),
            after: (&found.outlook.after).into(),
        }
    }
}
