//! What operators see of a node: conditions, statistics, scores, metrics, events and the run log.
//!
//! Loops: [`judge`] computes the condition of at-risk jobs, [`run_stats`] stores totals of runs,
//! [`run_logger`] logs starts and ends, [`event_publisher`] writes events for listeners,
//! [`queue_metrics`] exports the queue's state, and [`balance_score`] exports how evenly load is
//! spread. [`metered_store`] measures every store call.

pub(crate) mod at_risk;
pub(crate) mod balance_score;
pub(crate) mod event_publisher;
pub(crate) mod judge;
pub(crate) mod metered_store;
pub(crate) mod queue_metrics;
pub(crate) mod run_logger;
pub(crate) mod run_metrics;
pub(crate) mod run_stats;
