//! Where load lies, and what people can do about it.

mod distribution;
mod history;
mod loads;
mod rebalance;
mod suggestion;

use std::sync::Arc;

use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::chance::Chance;
use evenkeel_store::{Store, StoreError};
use tokio::sync::Semaphore;

use crate::CommandError;
use suggestion::Suggestions;

pub use distribution::{Distribution, Share, Spreads};
pub use history::{SCORES_MAX, ScoreHistory, ScoreQuery};
pub use loads::Known;
pub use rebalance::{
    ChangedJob, LISTED_MAX, MoveShown, MovesPage, Outlook, PlanOptions, Previewed,
    RebalanceConflict, RebalanceOrder, Rebalanced, Running, Shape, SkippedJob, Subject,
    plan_expires_at, read_plan_options, read_rebalance, read_undo, state_word, undo_until,
};

/// Knows the load of every tenant, places new jobs by it, and moves jobs when people ask for it.
pub struct Balance {
    store: Arc<dyn Store>,
    settings: BalanceSettings,
}

impl Balance {
    /// Of the jobs of `store`.
    pub fn new(store: Arc<dyn Store>, settings: BalanceSettings) -> Arc<Self> {
        Arc::new(Self { store, settings })
    }

    /// How load is spread.
    pub fn settings(&self) -> &BalanceSettings {
        &self.settings
    }
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
