//! Rebalancing: moves jobs to other start times, so that runs are spread more evenly.
//!
//! A rebalance plan is saved before any job is moved, so that any node can execute it. A separate
//! task moves the jobs in batches, so the client need not wait. Another node can continue or undo
//! the rebalance of a node that died.

mod check;
mod documents;
mod plan;
mod report;
mod run;
mod undo;

use std::collections::BTreeMap;

use evenkeel_core::balance::{Granularity, Loads, Measure, Spread};
use evenkeel_core::{JobId, Slot, Span, Timestamp};
use evenkeel_store::{Now, Rebalance, RebalanceState, Scope, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Balancing;
use crate::{CommandError, Result};

pub use documents::{
    PlanOptions, PlanSource, RebalanceRequest, read_plan_options, read_rebalance, read_undo,
};
pub use report::{MovesPage, RebalanceReport};
pub use run::RunningRebalance;

/// Maximum number of moved jobs, and of skipped jobs, in a response.
pub const LISTED_MAX: usize = 1000;
/// Maximum number of jobs that the error about changed jobs lists.
const CHANGED_LISTED_MAX: usize = 100;
/// Time during which a saved rebalance plan can be executed.
const PLAN_VALID_FOR: Span = Span::from_secs(15 * 60);
/// Time during which a rebalance can be undone.
const UNDO_VALID_FOR: Span = Span::from_secs(24 * 3600);
/// A running rebalance that has moved no job for this long counts as abandoned.
const ABANDONED_AFTER: Span = Span::from_secs(30);

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shape {
    pub score: f64,
    /// Length of a time slot.
    #[serde(default = "default_slot")]
    pub slot: Span,
    /// Number of runs in the fullest time slot.
    pub peak: f64,
    /// Average number of runs per time slot.
    pub mean: f64,
    /// Lowest number of runs in the fullest time slot that any rebalance could reach.
    pub least_peak: f64,
    /// Number of runs in each hour of the day, in UTC.
    pub hours: [f64; 24],
}

/// Returns the time slot length of stored summaries that do not contain the length.
const fn default_slot() -> Span {
    Slot::LENGTH
}

impl Shape {
    fn new(spread: Spread, loads: &Loads) -> Self {
        let Spread { score, peak, mean, least_peak, .. } = spread;
        let (slot, hours) = (loads.horizon().slot, loads.by_hour(Measure::Runs));
        Self { score, slot, peak, mean, least_peak, hours }
    }

    fn of(loads: &Loads) -> Self {
        Self::new(loads.spread(Measure::Runs, Granularity::Slot), loads)
    }
}

/// A job that a rebalance plan does not move.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SkippedJob {
    pub job: JobId,
    /// Name of a [`SkipReason`](evenkeel_core::balance::SkipReason).
    pub reason: String,
}

/// The options and the expected result of a rebalance, stored with its plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlanSummary {
    pub max_moves: Option<u64>,
    /// Planning stops when the balance score reaches this value.
    pub target_score: Option<f64>,
    /// The job filter as the client wrote it.
    pub filter: Option<Value>,
    pub before: Shape,
    pub after: Shape,
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// The first [`LISTED_MAX`] skipped jobs.
    pub skipped: Vec<SkippedJob>,
}

impl PlanSummary {
    pub fn of(rebalance: &Rebalance) -> Result<Self, StoreError> {
        serde_json::from_str(&rebalance.summary).map_err(|error| {
            StoreError::corrupt(format!("rebalance {}", rebalance.id), "summary", error)
        })
    }
}

impl Balancing {
    async fn get(&self, scope: &Scope, id: Uuid) -> Result<Rebalance> {
        self.balance.store.get_rebalance(scope, id).await?.ok_or(CommandError::NotFound)
    }

    /// Ends a rebalance with the state `Stopped`, and returns the rebalance.
    async fn end_stopped(&self, scope: &Scope, id: Uuid) -> Result<Rebalance> {
        let stopped = RebalanceState::Stopped;
        let ended = self.balance.store.end_rebalance(scope, id, stopped, Now::Database).await?;
        ended.ok_or(CommandError::NotFound)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedMove {
    pub job: JobId,
    /// Name of the job; set only in previews.
    pub name: Option<String>,
    pub old_at: Timestamp,
    pub new_at: Timestamp,
    /// Whether the job was moved; `None` if the rebalance has not reached this move yet.
    pub made: Option<bool>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct PlanPreview {
    pub rebalance: Rebalance,
    pub summary: PlanSummary,
    /// The first [`LISTED_MAX`] planned moves.
    pub moves: Vec<ListedMove>,
    pub expires_at: Timestamp,
}

/// A job that has changed since the rebalance was planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedJob {
    pub job: JobId,
    /// `not_active`, `changed`, `ran`, `job_running` or `too_late`.
    pub reason: &'static str,
}

/// Why a rebalance cannot be started, stopped or undone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RebalanceConflict {
    /// Another rebalance of the tenant is running.
    #[error(
        "the rebalance {id} is running; wait for its end (GET /api/v1/scheduler/rebalance/{id}) or stop \
         it (POST …/stop)"
    )]
    UnderWay { id: Uuid },
    #[error(
        "since the plan was made, {total} of its jobs have changed, so nothing was moved; make a new \
         preview"
    )]
    PlanChanged {
        /// The first 100 changed jobs.
        changed: Vec<ChangedJob>,
        /// Number of all changed jobs.
        total: u64,
    },
    #[error("the plan expired at {until}; make a new preview")]
    PlanExpired { until: Timestamp },
    /// The state of the rebalance does not allow the request.
    #[error("the rebalance is {}: {why}", state_name(*state))]
    State { state: RebalanceState, why: String },
}

impl RebalanceConflict {
    fn state(rebalance: &Rebalance, why: impl Into<String>) -> Self {
        Self::State { state: rebalance.state, why: why.into() }
    }
}

pub const fn state_name(state: RebalanceState) -> &'static str {
    match state {
        RebalanceState::Planned => "planned",
        RebalanceState::Running => "running",
        RebalanceState::Done => "done",
        RebalanceState::Stopped => "stopped",
    }
}

pub fn plan_expires_at(rebalance: &Rebalance) -> Timestamp {
    rebalance.created_at.saturating_add(PLAN_VALID_FOR)
}

pub fn undo_until(rebalance: &Rebalance) -> Timestamp {
    let last = rebalance.ended_at.or(rebalance.touched_at).unwrap_or(rebalance.created_at);
    last.saturating_add(UNDO_VALID_FOR)
}

/// True if a running rebalance has moved no job for so long that its node must have died.
fn is_abandoned(rebalance: &Rebalance, now: Timestamp) -> bool {
    rebalance.state == RebalanceState::Running
        && rebalance.touched_at.is_none_or(|at| at < now.saturating_sub(ABANDONED_AFTER))
}
