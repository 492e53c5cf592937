//! Starts the measured node with the same engine as `serve`.

use std::sync::Arc;

use evenkeel_core::RunIds;
use evenkeel_core::chance::Chance;
use evenkeel_engine::{Clock, Engine, EngineParts, RandomChance, Settings, SystemClock};
use evenkeel_executors::{Executor, Registry};
use evenkeel_store::{Roles, Store};
use uuid::Uuid;

pub struct Sources {
    pub clock: Arc<dyn Clock>,
    pub chance: Arc<dyn Chance>,
    pub run_ids: RunIds,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::default()),
            chance: Arc::new(RandomChance::from_system()),
            run_ids: RunIds::new(b"bench"),
        }
    }
}

impl Sources {
    /// Starts a node that runs all jobs with `executor`.
    pub async fn start(
        &self,
        store: &Arc<dyn Store>,
        executor: &Arc<impl Executor>,
        roles: Roles,
        workers: usize,
    ) -> anyhow::Result<Engine> {
        let identity = Uuid::from_u64_pair(self.chance.bits(), self.chance.bits());
        let parts = EngineParts {
            store: Arc::clone(store),
            registry: Arc::new(Registry::new().with(Arc::clone(executor) as _)),
            settings: Settings { roles, workers, ..Settings::new("bench", identity) },
            clock: Arc::clone(&self.clock),
            chance: Arc::clone(&self.chance),
            run_ids: self.run_ids,
        };
        Ok(Engine::start(parts).await?)
    }
}
