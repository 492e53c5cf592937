//! What operators see: conditions, statistics, scores, metrics, events and the run log.

pub(crate) mod at_risk;
pub(crate) mod balance_score;
pub(crate) mod event_publisher;
pub(crate) mod judge;
pub(crate) mod metered_store;
pub(crate) mod queue_metrics;
pub(crate) mod run_logger;
pub(crate) mod run_metrics;
pub(crate) mod run_stats;
