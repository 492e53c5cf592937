//! `/api/v1/scheduler…`

mod metrics;

pub use metrics::{ExecutionFigures, JobFigures, SchedulerMetrics};

pub(crate) use metrics::*;
