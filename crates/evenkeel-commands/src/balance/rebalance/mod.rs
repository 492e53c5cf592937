//! Moving jobs, so that load is spread more evenly.
//!
//! A plan is kept before anything is moved, so that any node can act on it. Its moves are made batch
//! by batch in a task of its own: whoever asked may go away, and a node that dies leaves a rebalance
//! that another can go on with or take back.

mod act;
mod check;
mod draft;
mod order;
mod tell;
mod undo;

use std::collections::BTreeMap;

use evenkeel_core::balance::{Grain, Loads, Measure, Spread};
use evenkeel_core::{JobId, Slot, Span, Timestamp};
use evenkeel_store::{Rebalance, RebalanceState, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use act::Running;
pub use order::{
    PlanOptions, RebalanceOrder, Subject, read_plan_options, read_rebalance, read_undo,
};
pub use tell::{MovesPage, Rebalanced};

/// Moves and skipped jobs that are told one by one with a rebalance.
pub const LISTED_MAX: usize = 1000;
/// Jobs that have changed since a plan was made are told one by one up to here.
const CHANGED_LISTED_MAX: usize = 100;
/// A plan is good for this long.
const PLAN_LASTS: Span = Span::from_secs(15 * 60);
/// A rebalance can be taken back for this long.
const UNDO_LASTS: Span = Span::from_secs(24 * 3600);
/// A rebalance that goes on and has moved nothing for this long is nobody's.
const SILENT_AFTER: Span = Span::from_secs(30);

/// How runs are spread over the next 24 hours.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// How evenly.
    pub score: f64,
    /// How long a slot is.
    #[serde(default = "usual_slot")]
    pub slot: Span,
    /// The most in one slot.
    pub peak: f64,
    /// In a slot on average.
    pub mean: f64,
    /// No spread of these jobs has a lower peak.
    pub least_peak: f64,
    /// What lies in each hour of the day, UTC.
    pub hours: [f64; 24],
}

/// Shapes that were stored before they named their slot had this one.
const fn usual_slot() -> Span {
    Slot::LENGTH
}

impl Shape {
    fn new(spread: Spread, loads: &Loads) -> Self {
        let Spread { score, peak, mean, least_peak, .. } = spread;
        let (slot, hours) = (loads.horizon().slot, loads.by_hour(Measure::Runs));
        Self { score, slot, peak, mean, least_peak, hours }
    }

    fn of(loads: &Loads) -> Self {
        Self::new(loads.spread(Measure::Runs, Grain::Slot), loads)
    }
}

/// A job that stays where it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SkippedJob {
    /// Which.
    pub job: JobId,
    /// Why: a word of [`SkipReason`](evenkeel_core::balance::SkipReason).
    pub reason: String,
}

/// What was asked of a rebalance, and what it would come to: kept with its plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outlook {
    /// At most this many moves.
    pub max_moves: Option<u64>,
    /// No more than it takes to this score.
    pub target_score: Option<f64>,
    /// Only jobs that pass this, as it was written.
    pub filter: Option<Value>,
    /// How runs are spread without it.
    pub before: Shape,
    /// And with it.
    pub after: Shape,
    /// How many jobs are left alone, by reason.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// The first [`LISTED_MAX`] of them.
    pub skipped: Vec<SkippedJob>,
}

impl Outlook {
    /// What was kept with a rebalance.
    pub fn of(rebalance: &Rebalance) -> Result<Self, StoreError> {
        serde_json::from_str(&rebalance.summary).map_err(|error| {
            StoreError::corrupt(format!("rebalance {}", rebalance.id), "summary", error)
        })
    }
}

/// A move that is planned, or was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoveShown {
    /// Which job.
    pub job: JobId,
    /// Its name, where names are looked up.
    pub name: Option<String>,
    /// From this time.
    pub old_at: Timestamp,
    /// To this one.
    pub new_at: Timestamp,
    /// Was it made? Nobody knows yet if the rebalance has not come to it.
    pub made: Option<bool>,
}

/// A plan that was made to be looked at.
#[derive(Clone, PartialEq, Debug)]
pub struct Previewed {
    /// The plan.
    pub rebalance: Rebalance,
    /// What it would come to.
    pub outlook: Outlook,
    /// Its first [`LISTED_MAX`] moves.
    pub moves: Vec<MoveShown>,
    /// Until when it can be acted on.
    pub expires_at: Timestamp,
}

/// A job that is not what it was when a rebalance was planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedJob {
    /// Which.
    pub job: JobId,
    /// In a word: `not_active`, `changed`, `ran`, `job_running` or `too_late`.
    pub reason: &'static str,
}

/// Why a rebalance can't be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RebalanceConflict {
    /// Another one of the tenant goes on.
    #[error(
        "the rebalance {id} goes on; wait for its end (GET /api/v1/scheduler/rebalance/{id}) or stop \
         it (POST …/stop)"
    )]
    UnderWay {
        /// Which.
        id: Uuid,
    },
    /// Jobs have changed since it was planned.
    #[error(
        "since the plan was made, {total} of its jobs have changed, so nothing was moved; make a new \
         preview"
    )]
    PlanChanged {
        /// The first of them.
        changed: Vec<ChangedJob>,
        /// How many there are.
        total: u64,
    },
    /// The plan is too old.
    #[error("the plan was good until {until}; make a new preview")]
    PlanExpired {
        /// Until when it was good.
        until: Timestamp,
    },
    /// It is in a state that does not allow this.
    #[error("the rebalance is {}: {why}", state_word(*state))]
    State {
        /// Which state.
        state: RebalanceState,
        /// What is in the way.
        why: String,
    },
}

impl RebalanceConflict {
    fn state(rebalance: &Rebalance, why: impl Into<String>) -> Self {
        Self::State { state: rebalance.state, why: why.into() }
    }
}

/// The word users see.
pub const fn state_word(state: RebalanceState) -> &'static str {
    match state {
        RebalanceState::Planned => "planned",
        RebalanceState::Running => "running",
        RebalanceState::Done => "done",
        RebalanceState::Stopped => "stopped",
    }
}

/// When a plan is no longer good.
pub fn plan_expires_at(rebalance: &Rebalance) -> Timestamp {
    rebalance.created_at.saturating_add(PLAN_LASTS)
}

/// Until when it can be taken back.
pub fn undo_until(rebalance: &Rebalance) -> Timestamp {
    let last = rebalance.ended_at.or(rebalance.touched_at).unwrap_or(rebalance.created_at);
    last.saturating_add(UNDO_LASTS)
}

/// Does it go on, and has moved nothing for so long that whoever did it must be gone?
fn is_silent(rebalance: &Rebalance, now: Timestamp) -> bool {
    rebalance.state == RebalanceState::Running
        && rebalance.touched_at.is_none_or(|at| at < now.saturating_sub(SILENT_AFTER))
}
