//! `/api/v1/scheduler…`

#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod distribution;
mod figures;
#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod history;
mod metrics;
mod rebalance;

pub use distribution::{
    DistributionView, HourView, MeasuredScores, ProjectedView, ScoresView, SlotView,
};
pub use history::{ScoreList, ScoreView};
pub use metrics::{ExecutionFigures, JobFigures, SchedulerMetrics};
pub use rebalance::{
    HourCount, MoveList, MoveView, MovedView, PlanDocument, PlannedMoveView, PreviewedView,
    RebalanceDocument, RebalanceList, RebalanceView, RebalancedView, ShapeView, SkippedJobView,
    UndoDocument,
};

pub(crate) use distribution::*;
pub(crate) use history::*;
pub(crate) use metrics::*;
pub(crate) use rebalance::*;
