//! Load balancing: chooses start times of jobs, shows how runs are spread over time, and rebalances
//! jobs.

mod distribution;
mod history;
mod loads;
mod place;
mod rebalance;
mod suggestion;

use std::sync::Arc;

use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::chance::Chance;
use evenkeel_core::{Definition, NodeNo, Schedule};
use evenkeel_store::{Store, StoreError};
use tokio::sync::Semaphore;

use loads::LoadCache;
use suggestion::Suggestions;

pub use distribution::{Distribution, Share, Spreads};
pub use history::{SCORES_MAX, ScoreHistory, ScoreQuery};
pub use loads::KnownLoads;
pub(crate) use place::{PlacementReason, Placing};
pub use rebalance::{
    ChangedJob, LISTED_MAX, ListedMove, MovesPage, PlanOptions, PlanPreview, PlanSource,
    PlanSummary, RebalanceConflict, RebalanceReport, RebalanceRequest, RunningRebalance, Shape,
    SkippedJob, plan_expires_at, read_plan_options, read_rebalance, read_undo, state_name,
    undo_until,
};

/// Function that returns the number of this node, or `None` outside of a cluster.
type ThisNode = Arc<dyn Fn() -> Option<NodeNo> + Send + Sync>;

/// Caches the expected load of all tenants, and chooses start times of jobs at which the expected
/// load is low.
pub struct Balance {
    store: Arc<dyn Store>,
    settings: BalanceSettings,
    cache: LoadCache,
    this_node: ThisNode,
}

impl Balance {
    /// Creates a `Balance` for a store in which only this node chooses start times.
    pub fn new(store: Arc<dyn Store>, settings: BalanceSettings) -> Arc<Self> {
        Self::of_node(store, settings, || None)
    }

    /// Creates a `Balance` for the node that `this_node` returns. Each API node prefers a different
    /// subset of equally good time slots.
    pub fn of_node(
        store: Arc<dyn Store>,
        settings: BalanceSettings,
        this_node: impl Fn() -> Option<NodeNo> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (cache, this_node) = (LoadCache::default(), Arc::new(this_node));
        Arc::new(Self { store, settings, cache, this_node })
    }

    pub fn settings(&self) -> &BalanceSettings {
        &self.settings
    }
}

/// True if the server chooses the start times: the schedule is an interval without an anchor, and
/// the job has no `start_at`.
pub(crate) fn has_chosen_times(definition: &Definition) -> bool {
    matches!(&definition.schedule, Schedule::Interval(every) if every.anchor().is_none())
        && definition.bounds.start_at.is_none()
}

/// Shows how runs are spread over time, and runs rebalances.
#[derive(Clone)]
pub struct Balancing {
    balance: Arc<Balance>,
    chance: Arc<dyn Chance>,
    /// Limits planning to one rebalance plan at a time, because a plan may contain a million jobs.
    planning: Arc<Semaphore>,
    suggestions: Arc<Suggestions>,
}

impl Balancing {
    pub fn new(balance: Arc<Balance>, chance: Arc<dyn Chance>) -> Self {
        let planning = Arc::new(Semaphore::new(1));
        Self { balance, chance, planning, suggestions: Arc::default() }
    }
}

/// Runs `work` on a thread for blocking tasks, because summing up many load profiles takes a while.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    // `spawn_blocking` fails if `work` panics, or if the process is shutting down.
    tokio::task::spawn_blocking(work).await.map_err(|error| StoreError::Refused(error.into()))
}
