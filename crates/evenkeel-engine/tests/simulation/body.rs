//! Bodies that write down what they did, apart from the product.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::chance::Chance;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{AttemptKey, RunIds, TenantNo, Timestamp};
use evenkeel_executors::{ConfigFault, Executor, ExecutorDeclaration, Invocation, NOOP, Report};
use serde_json::Value;
use tokio::sync::watch;

/// What one body did.
#[derive(Copy, Clone, Debug)]
pub struct Lived {
    /// Which attempt.
    pub key: AttemptKey,
    /// With which fence.
    pub fence: u32,
    /// On which process.
    pub process: u32,
    /// Of which node.
    pub node: usize,
    /// What the database's clock said when it began.
    pub began_db: Timestamp,
    /// True time of its beginning, since the simulation began.
    pub began: Duration,
    /// True time of its end.
    pub ended: Duration,
    /// What the database's clock said at its end.
    pub ended_db: Timestamp,
    /// How it ended, if it did by itself.
    pub outcome: Option<Outcome>,
    /// Whose checkpoint it was given: the attempt and its fence.
    pub given: Option<(AttemptKey, u32)>,
}

/// The book that all bodies of all nodes write in.
pub type Book = Arc<Mutex<Vec<Lived>>>;

/// True time and the database's.
pub trait Time: Send + Sync {
    /// Since the simulation began.
    fn truth(&self) -> Duration;
    /// What the database's clock says.
    fn db(&self) -> Timestamp;
}

/// Runs bodies of one process.
pub struct SimExecutor {
    pub book: Book,
    pub time: Arc<dyn Time>,
    pub chance: Arc<dyn Chance>,
    pub process: u32,
    pub node: usize,
    /// Falls when the process dies.
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
            // The process is dead: its remaining tasks only exist in the simulation.
            return std::future::pending().await;
        }
        let config = &invocation.definition.executor.config;
        let longest = config["ms"].as_u64().unwrap_or(100);
        let fails = config["fails_percent"].as_u64().unwrap_or(0);
        let length = Duration::from_millis(self.chance.bits() % longest + 1);
        let fail = self.chance.bits() % 100 < fails;
        let place = {
            let mut book = self.book.lock().unwrap();
            book.push(Lived {
                key: invocation.key,
                fence: invocation.fence.0,
                process: self.process,
                node: self.node,
                began_db: self.time.db(),
                began: self.time.truth(),
                ended: Duration::MAX,
                ended_db: Timestamp::MAX,
                outcome: None,
                given: invocation.checkpoint.as_deref().map(read_checkpoint),
            });
            book.len() - 1
        };
        let mine = format!("{} {}", invocation.id, invocation.fence.0);
        invocation.live.checkpoint(mine.into_bytes()).unwrap();
        // However it ends, also when its process does: the book says when.
        let mut end = End { executor: self, place, outcome: None };
        let mut lease = invocation.lease.clone();
        let report = tokio::select! {
            biased;
            _ = alive.wait_for(|alive| !alive) => None,
            reason = invocation.cancel.cancelled() => Some(Report::cancelled(reason)),
            // What the supervisor does for a shell body.
            () = lease.expired() => Some(Report::cancelled(evenkeel_executors::CancelReason::LeaseLost)),
            () = tokio::time::sleep(length) => Some(match fail {
                true => Report::failed("as it was told to"),
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
    place: usize,
    outcome: Option<Outcome>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut book = self.executor.book.lock().unwrap();
        book[self.place].ended = self.executor.time.truth();
        book[self.place].ended_db = self.executor.time.db();
        book[self.place].outcome = self.outcome;
    }
}
