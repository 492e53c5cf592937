//! Injects faults.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_store::Scope;

use super::World;
use crate::body::Time as _;

/// Interval at which clients override outcomes during a fault.
const OVERRIDE_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of writes per second that all loops of a node together may try while the disk is
/// full.
const TRIES_PER_SECOND_MAX: u64 = 20;

impl World {
    /// Injects one random fault that the scenario allows, and waits until the fault ends.
    pub(super) async fn inject_fault(&mut self, scope: &Scope) {
        let mut kinds = Vec::new();
        if self.scenario.faults.crashes {
            kinds.extend(["crash", "restart", "drain"]);
        }
        if self.scenario.faults.store {
            kinds.extend(["outage", "partition", "flaky"]);
        }
        if self.scenario.faults.time {
            kinds.extend(["freeze", "clock"]);
        }
        if self.scenario.faults.full {
            kinds.push("full");
        }
        if kinds.is_empty() {
            return;
        }
        self.faults += 1;
        let index = self.chance.bits() as usize % self.nodes.len();
        let long = Duration::from_secs(1 + self.chance.bits() % 40);
        match kinds[self.chance.bits() as usize % kinds.len()] {
            "crash" => {
                self.kill(index);
                self.wait_with_overrides(scope, long).await;
                self.start(index).await;
            }
            "restart" => {
                self.kill(index);
                self.start(index).await;
            }
            "drain" => {
                if let Some(engine) = self.nodes[index].engine.take() {
                    engine.drain(Duration::from_secs(2)).await;
                }
                self.nodes[index].alive.send_replace(false);
                self.start(index).await;
            }
            "outage" => {
                for node in &self.nodes {
                    node.link.down.store(true, Ordering::Relaxed);
                }
                self.wait_with_overrides(scope, long).await;
                for node in &self.nodes {
                    node.link.down.store(false, Ordering::Relaxed);
                }
            }
            "full" => self.full_disk(scope, long).await,
            "partition" => {
                self.nodes[index].link.down.store(true, Ordering::Relaxed);
                self.wait_with_overrides(scope, long).await;
                self.nodes[index].link.down.store(false, Ordering::Relaxed);
            }
            "flaky" => {
                let link = Arc::clone(&self.nodes[index].link);
                for (rate, value) in
                    [(&link.fail, 300), (&link.lose_answer, 300), (&link.late_commit, 100)]
                {
                    rate.store(value, Ordering::Relaxed);
                }
                self.wait_with_overrides(scope, long).await;
                for rate in [&link.fail, &link.lose_answer, &link.late_commit] {
                    rate.store(0, Ordering::Relaxed);
                }
            }
            "freeze" => {
                self.nodes[index].link.frozen.store(true, Ordering::Relaxed);
                self.wait_with_overrides(scope, long).await;
                self.nodes[index].link.thaw();
            }
            "clock" => {
                let step = (self.chance.bits() % 60_000_000) as i64 - 30_000_000;
                self.time.db_offset.fetch_add(step, Ordering::Relaxed);
            }
            other => unreachable!("{other}"),
        }
    }

    /// Fills the disk of the database. The loops of the engine must retry with a growing delay.
    async fn full_disk(&mut self, scope: &Scope, long: Duration) {
        let refused = |world: &Self| -> u64 {
            world.nodes.iter().map(|node| node.link.refused.load(Ordering::Relaxed)).sum()
        };
        let set = |world: &Self, full: bool| {
            world.nodes.iter().for_each(|node| node.link.full.store(full, Ordering::Relaxed));
        };
        let before = refused(self);
        set(self, true);
        self.wait_with_overrides(scope, long).await;
        set(self, false);
        let tries = refused(self) - before;
        let most = TRIES_PER_SECOND_MAX * (long.as_secs() + 2) * self.nodes.len() as u64;
        if tries > most {
            let violation = format!("{tries} writes were tried on a full disk in {long:?}");
            self.retry_violations.push(violation);
        }
    }

    /// Waits while a fault lasts. Clients override outcomes during the fault.
    async fn wait_with_overrides(&mut self, scope: &Scope, long: Duration) {
        let until = self.time.true_time() + long;
        while self.scenario.overrides && self.time.true_time() + OVERRIDE_EVERY < until {
            tokio::time::sleep(OVERRIDE_EVERY).await;
            self.override_outcomes(scope).await;
        }
        tokio::time::sleep(until.saturating_sub(self.time.true_time())).await;
    }
}
