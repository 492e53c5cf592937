//! Where load lies, and what people can do about it.

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

use crate::CommandError;
use loads::Memory;
use suggestion::Suggestions;

pub use distribution::{Distribution, Share, Spreads};
pub use history::{SCORES_MAX, ScoreHistory, ScoreQuery};
pub use loads::Known;
pub(crate) use place::{Occasion, Placing};
pub use rebalance::{
    ChangedJob, LISTED_MAX, MoveShown, MovesPage, Outlook, PlanOptions, Previewed,
    RebalanceConflict, RebalanceOrder, Rebalanced, Running, Shape, SkippedJob, Subject,
    plan_expires_at, read_plan_options, read_rebalance, read_undo, state_word, undo_until,
};

/// Which node this is, as far as it is one.
type Myself = Arc<dyn Fn() -> Option<NodeNo> + Send + Sync>;

/// Knows the load of every tenant, places new jobs by it, and moves jobs when people ask for it.
pub struct Balance {
    store: Arc<dyn Store>,
    settings: BalanceSettings,
    memory: Memory,
    myself: Myself,
}

impl Balance {
    /// Of the jobs of `store`, where nobody else places any.
    pub fn new(store: Arc<dyn Store>, settings: BalanceSettings) -> Arc<Self> {
        Self::of_node(store, settings, || None)
    }

    /// Of the jobs of `store`, on the node that `myself` names: if others have an API as well, each
    /// prefers other slots among equally good ones.
    pub fn of_node(
        store: Arc<dyn Store>,
        settings: BalanceSettings,
        myself: impl Fn() -> Option<NodeNo> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (memory, myself) = (Memory::default(), Arc::new(myself));
        Arc::new(Self { store, settings, memory, myself })
    }

    /// How load is spread.
    pub fn settings(&self) -> &BalanceSettings {
        &self.settings
    }
}

/// Is it an interval whose first time is chosen? Others have said when they run, or their times
/// follow from clocks or from their runs.
pub(crate) fn is_chosen(definition: &Definition) -> bool {
    matches!(&definition.schedule, Schedule::Interval(every) if every.anchor().is_none())
        && definition.bounds.start_at.is_none()
}

/// What people see of the balance, and what they do about it.
#[derive(Clone)]
pub struct Balancing {
    balance: Arc<Balance>,
    chance: Arc<dyn Chance>,
    /// A plan may hold a million jobs: there is one at a time.
    planning: Arc<Semaphore>,
    suggestions: Arc<Suggestions>,
}

impl Balancing {
    /// Of the load that `balance` knows.
    pub fn new(balance: Arc<Balance>, chance: Arc<dyn Chance>) -> Self {
        let planning = Arc::new(Semaphore::new(1));
        Self { balance, chance, planning, suggestions: Arc::default() }
    }
}

/// Does what takes long where nobody waits for it.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CommandError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        // It panicked, or the process ends.
        CommandError::Store(StoreError::Refused(error.into()))
    })
}
