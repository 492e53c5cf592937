//! Where load lies, and what people can do about it.

mod loads;
mod place;

use std::sync::Arc;

use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::{Definition, NodeNo, Schedule};
use evenkeel_store::Store;

use loads::Memory;

pub use loads::Known;
pub(crate) use place::{Occasion, Placing};

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
