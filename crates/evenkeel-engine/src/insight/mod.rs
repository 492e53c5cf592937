//! Job conditions, run statistics, metrics, events and the run log, for operators.
//!
//! [`judge`] computes the condition of at-risk jobs, [`run_stats`] stores totals of runs,
//! [`activity`] counts runs per time slot for it, [`run_logger`] logs starts and ends of runs,
//! [`event_publisher`] writes events for listening clients, [`queue_metrics`] exports the state of
//! the queue, and [`balance_score`] exports how evenly runs are spread over time. [`metered_store`]
//! measures every store call.

pub(crate) mod activity;
pub(crate) mod at_risk;
pub(crate) mod balance_score;
pub(crate) mod event_publisher;
pub(crate) mod judge;
pub(crate) mod metered_store;
pub(crate) mod queue_metrics;
pub(crate) mod run_logger;
pub(crate) mod run_metrics;
pub(crate) mod run_stats;
