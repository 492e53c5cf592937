//! Runs that somebody says the end of.

use async_trait::async_trait;
use evenkeel_core::lease::Fence;
use evenkeel_core::run::RunStatus;
use evenkeel_core::{Attempt, NodeNo, RunKey};
use evenkeel_store::{
    FinishResult, Letter, Results, SETTLED_ALPHA, Scope, Seen, Settle, SettleStore, Signal,
    StoreError, Word,
};

use super::ModelStore;
use super::data::{Data, RunRow, Waiting};

/// Nobody: no node has this number.
const NOBODY: NodeNo = NodeNo(0);

impl Data {
    fn settle_run(&mut self, scope: &Scope, settle: &Settle) -> bool {
        let job = settle.key.job_no;
        if self.find(job).is_none_or(|job| job.tenant != scope.tenant) {
            return false;
        }
        let done = match settle.seen {
            Seen::Waiting => self.settle_waiting(scope, settle),
            Seen::Running { fence, .. } => self.settle_running(scope, settle, fence),
        };
        if done {
            self.tell(job);
        }
        done
    }

    fn settle_running(&mut self, scope: &Scope, settle: &Settle, fence: Fence) -> bool {
        let key = settle.key;
        let runs = |run: &&mut RunRow| run.status == RunStatus::Running && run.fence == fence;
        let Some(run) = self.runs.get_mut(&key).filter(runs) else { return false };
        let Some(node) = run.node else { return false };
        let done = if let Some(requeue) = settle.requeue(scope.tenant) {
            self.requeue(node, vec![requeue], settle.at) == [true]
        } else if let Some(finish) = settle.finish(scope.tenant, key, fence.next()) {
            run.fence = fence.next();
            self.finish(node, vec![finish], SETTLED_ALPHA) == [FinishResult::Done]
        } else {
            false
        };
        if done {
            self.send_letter(node, Letter { key, fence, word: Word::Settled });
        }
        done
    }

    fn settle_waiting(&mut self, scope: &Scope, settle: &Settle) -> bool {
        let of_run = |(key, _): &(RunKey, _)| key.run_id() == settle.key.run_id();
        let found = self.waiting_of(settle.key.job_no).find(of_run);
        let Some((key, waiting)) = found else { return false };
        let (fence, crashes, is_wake) = match waiting {
            Waiting::Wake { .. } => (Fence::NONE, 0, true),
            Waiting::Ready(ready) => (ready.fence, ready.crashes, false),
        };
        let Some(finish) = settle.finish(scope.tenant, key, fence.next()) else { return false };
        self.stop_waiting(key);
        if is_wake && key.attempt == Attempt::FIRST {
            self.link(key);
        }
        let run = self.runs.entry(key).or_insert_with(|| RunRow {
            tenant: scope.tenant,
            status: RunStatus::Running,
            fence,
            crashes,
            node: None,
            number: None,
            priority: None,
            started_at: None,
            finished_at: None,
            results: Results::default(),
            skipped: None,
        });
        let before = run.node;
        let node = before.unwrap_or(NOBODY);
        (run.status, run.fence, run.node) = (RunStatus::Running, fence.next(), Some(node));
        self.finish(node, vec![finish], SETTLED_ALPHA);
        if let Some(run) = self.runs.get_mut(&key) {
            run.node = before;
        }
        true
    }
}

#[async_trait]
impl SettleStore for ModelStore {
    async fn settle(&self, scope: &Scope, settle: Settle) -> Result<bool, StoreError> {
        let done = self.lock().settle_run(scope, &settle);
        if done {
            self.signals.send(Signal::Letters);
        }
        Ok(done)
    }
}
