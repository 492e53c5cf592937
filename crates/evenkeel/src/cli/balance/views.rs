//! Responses of the server about load balancing, with the fields that the commands show.

use std::collections::BTreeMap;

use evenkeel_core::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::Answer;
use crate::{Failure, Result};

pub(in crate::cli) fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T> {
    serde_json::from_str(&answer.text).map_err(|error| {
        Failure::because("the server's answer is not what was expected", &error)
            .or_else("use the same version as the server; --json prints its answer")
    })
}

#[derive(Copy, Clone, PartialEq, Debug, Default, Deserialize)]
pub(super) struct Hour {
    pub(super) hour: u8,
    pub(super) job_count: f64,
    #[serde(default)]
    pub(super) cost_seconds: f64,
}

#[derive(Copy, Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Slot {
    pub(super) start: Timestamp,
    pub(super) job_count: f64,
    pub(super) cost_seconds: f64,
}

/// How evenly runs are spread over the seconds of an hour.
#[derive(Copy, Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Seconds {
    pub(super) distribution_score: f64,
    pub(super) peak: f64,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Day {
    pub(super) as_of: Timestamp,
    pub(super) by: String,
    pub(super) slot_minutes: f64,
    pub(super) total_jobs: u64,
    pub(super) distribution_score: f64,
    #[serde(default)]
    pub(super) peak_slot_count: f64,
    pub(super) least_peak_hour: f64,
    #[serde(default)]
    pub(super) seconds: Option<Seconds>,
    pub(super) suggestion: String,
    pub(super) policy: String,
    pub(super) hourly_distribution: Vec<Hour>,
    pub(super) slots: Vec<Slot>,
}

#[derive(Copy, Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Score {
    pub(super) hour: Timestamp,
    pub(super) distribution_score: f64,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Scores {
    pub(super) scores: Vec<Score>,
}

/// The load per hour before or after a rebalance.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Shape {
    pub(super) distribution_score: f64,
    #[serde(default = "usual_slot")]
    pub(super) slot_minutes: f64,
    pub(super) peak: f64,
    pub(super) hourly_distribution: Vec<Hour>,
}

const fn usual_slot() -> f64 {
    15.0
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct PlannedMove {
    pub(super) job_id: String,
    pub(super) name: Option<String>,
    pub(super) current_time: Timestamp,
    pub(super) proposed_time: Timestamp,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Plan {
    pub(super) plan_id: String,
    pub(super) expires_at: Timestamp,
    pub(super) would_move: u64,
    pub(super) would_skip: u64,
    pub(super) preview: Vec<PlannedMove>,
    pub(super) skipped_by_reason: BTreeMap<String, u64>,
    pub(super) before: Shape,
    pub(super) after: Shape,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Moved {
    pub(super) job_id: String,
    pub(super) old_time: Timestamp,
    pub(super) new_time: Timestamp,
}

/// A rebalance. In a list of rebalances, the server omits the fields with `#[serde(default)]`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Rebalance {
    pub(super) rebalance_id: String,
    pub(super) state: String,
    pub(super) created_by: String,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) planned_total: u64,
    pub(super) moved_total: u64,
    pub(super) skipped_total: u64,
    pub(super) progress: f64,
    pub(super) current_score: f64,
    pub(super) projected_score: f64,
    pub(super) undoes: Option<String>,
    pub(super) undone_by: Option<String>,
    pub(super) undo_until: Option<Timestamp>,
    #[serde(default)]
    pub(super) moved: Vec<Moved>,
    #[serde(default)]
    pub(super) skipped_by_reason: BTreeMap<String, u64>,
    #[serde(default)]
    pub(super) new_distribution_score: Option<f64>,
    #[serde(default)]
    pub(super) before: Option<Shape>,
    #[serde(default)]
    pub(super) after: Option<Shape>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Rebalances {
    pub(super) rebalances: Vec<Rebalance>,
}
