//! The executor of the simulation. The simulated attempts record their starts and ends
//! independently of the engine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::chance::Chance;
use evenkeel_core::{AttemptKey, RunIds, TenantNo, Timestamp};
use evenkeel_executors::{ConfigFault, Executor, ExecutorDeclaration, Invocation, NOOP, Report};
use serde_json::Value;
use tokio::sync::watch;

#[derive(Copy, Clone, Debug)]
pub struct BodyRecord {
    pub key: AttemptKey,
    pub fence: u32,
    /// Number of the simulated process, counted over all nodes and restarts.
    pub process: u32,
    pub node: usize,
    /// Start time of the execution on the database's clock.
    pub began_db: Timestamp,
    /// Start time of the execution in true time since the simulation began.
    pub began: Duration,
    /// End time of the execution in true time.
    pub ended: Duration,
    /// End time of the execution on the database's clock.
    pub ended_db: Timestamp,
    /// Outcome of the attempt, set if the attempt finished without being cancelled.
    pub outcome: Option<Outcome>,
    /// The attempt and fence of the earlier execution whose checkpoint this execution received.
    pub given: Option<(AttemptKey, u32)>,
}

/// Records of all executed attempts on all nodes.
pub type BodyRecords = Arc<Mutex<Vec<BodyRecord>>>;

pub trait Time: Send + Sync {
    /// Time since the simulation began.
    fn true_time(&self) -> Duration;
    /// Time of the database's clock.
    fn db(&self) -> Timestamp;
}

/// Runs the attempts of one simulated process.
pub struct SimExecutor {
    pub records: BodyRecords,
    pub time: Arc<dyn Time>,
    pub chance: Arc<dyn Chance>,
    pub process: u32,
    pub node: usize,
    /// True until the simulated process dies.
    pub alive: watch::Receiver<bool>,
}

#[async_trait]
impl Executor for SimExecutor {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &NOOP
    }

    fn check(&self, _: TenantNo, _config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
        Ok(())
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let mut alive = self.alive.clone();
        if !*alive.borrow() {
            // The simulated process has died, so its remaining tasks must have no effect.
            return std::future::pending().await;
        }
        let config = &invocation.definition.executor.config;
        let longest = config["ms"].as_u64().unwrap_or(100);
        let fails = config["fails_percent"].as_u64().unwrap_or(0);
        let length = Duration::from_millis(self.chance.bits() % longest + 1);
        let fail = self.chance.bits() % 100 < fails;
        let index = {
            let mut records = self.records.lock().unwrap();
            records.push(BodyRecord {
                key: invocation.key,
                fence: invocation.fence.0,
                process: self.process,
                node: self.node,
                began_db: self.time.db(),
                began: self.time.true_time(),
                ended: Duration::MAX,
                ended_db: Timestamp::MAX,
                outcome: None,
                given: invocation.checkpoint.as_deref().map(read_checkpoint),
            });
            records.len() - 1
        };
        let checkpoint = format!("{} {}", invocation.id, invocation.fence.0);
        invocation.live.checkpoint(checkpoint.into_bytes()).unwrap();
        // Dropping `end` records the end of the attempt, even if the simulated process dies.
        let mut end = End { executor: self, index, outcome: None };
        let mut lease = invocation.lease.clone();
        let report = tokio::select! {
            biased;
            _ = alive.wait_for(|alive| !alive) => None,
            reason = invocation.cancel.cancelled() => Some(Report::cancelled(reason)),
            // The attempt stops when the node's lease ends, as the supervisor process of a shell
            // job ensures.
            () = lease.expired() => Some(Report::cancelled(evenkeel_executors::CancelReason::LeaseLost)),
            () = tokio::time::sleep(length) => Some(match fail {
                true => Report::failed("simulated failure"),
                false => Report::completed(),
            }),
        };
        let Some(report) = report else {
            drop(end);
            return std::future::pending().await;
        };
        let own_end =
            |outcome: &Outcome| !matches!(outcome, Outcome::Cancelled | Outcome::Superseded);
        end.outcome = Some(report.outcome).filter(own_end);
        report
    }
}

fn read_checkpoint(data: &[u8]) -> (AttemptKey, u32) {
    let text = std::str::from_utf8(data).unwrap();
    let (id, fence) = text.split_once(' ').unwrap();
    (RunIds::new(b"test").key(id.parse().unwrap()), fence.parse().unwrap())
}

struct End<'a> {
    executor: &'a SimExecutor,
    index: usize,
    outcome: Option<Outcome>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut records = self.executor.records.lock().unwrap();
        records[self.index].ended = self.executor.time.true_time();
        records[self.index].ended_db = self.executor.time.db();
        records[self.index].outcome = self.outcome;
    }
}
