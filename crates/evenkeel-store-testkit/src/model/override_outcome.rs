//! Lets operators override the outcomes of runs.

use async_trait::async_trait;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, NodeNo};
use evenkeel_store::{
    DedupClaim, FinishResult, LiveAttempt, LiveState, MessageKind, NodeMessage, OVERRIDE_ALPHA,
    OutcomeOverride, OverrideResult, OverrideStore, Requeue, Results, Scope, Signal, StoreError,
};

use super::ModelStore;
use super::data::{Data, RunRow, Waiting};

/// No node has this number.
const NOBODY: NodeNo = NodeNo(0);

impl Data {
    fn active_attempts(&self, scope: &Scope, job: JobId, limit: u32) -> Vec<LiveAttempt> {
        let Some(no) = self.seen(scope, job) else { return Vec::new() };
        let waiting = self.waiting_of(no).map(|(key, waiting)| {
            let priority = match waiting {
                Waiting::Delayed { priority, .. } => *priority,
                Waiting::Ready(ready) => ready.own_priority(),
            };
            LiveAttempt { key, state: LiveState::Waiting, priority }
        });
        let running = self.running_of(no).into_iter().filter_map(|(_, key)| {
            let run = self.runs.get(&key)?;
            let seen = LiveState::Running { fence: run.fence, started_at: run.started_at? };
            Some(LiveAttempt { key, state: seen, priority: run.priority })
        });
        let mut all: Vec<LiveAttempt> = waiting.chain(running).collect();
        all.sort_unstable_by_key(|one| one.key);
        all.truncate(limit as usize);
        all
    }

    fn settle_run(&mut self, scope: &Scope, settle: &OutcomeOverride) -> OverrideResult {
        let job = settle.key.job_no;
        if self.find(job).is_none_or(|job| job.tenant != scope.tenant) {
            return OverrideResult::Changed;
        }
        let became = match settle.expected {
            LiveState::Waiting => self.settle_waiting(scope, settle),
            LiveState::Running { fence, .. } => self.settle_running(scope, settle, fence),
        };
        if became == OverrideResult::Done {
            self.notify_scheduler(job);
        }
        became
    }

    fn settle_running(
        &mut self,
        scope: &Scope,
        settle: &OutcomeOverride,
        fence: Fence,
    ) -> OverrideResult {
        let key = settle.key;
        let runs = |run: &&mut RunRow| run.status == AttemptStatus::Running && run.fence == fence;
        let run = self.runs.get_mut(&key).filter(runs);
        let Some((run, node)) = run.and_then(|run| run.node.map(|node| (run, node))) else {
            return OverrideResult::Changed;
        };
        let became = if let Some(requeue) = settle.requeue(scope.tenant) {
            self.go_back(node, settle, requeue)
        } else if let Some(finish) = settle.finish(scope.tenant, key, fence.next()) {
            run.fence = fence.next();
            done(self.finish(node, vec![finish], OVERRIDE_ALPHA) == [FinishResult::Done])
        } else {
            OverrideResult::Changed
        };
        if became == OverrideResult::Done {
            self.send_message(node, NodeMessage { key, fence, kind: MessageKind::Ended });
        }
        became
    }

    fn go_back(&mut self, node: NodeNo, settle: &OutcomeOverride, back: Requeue) -> OverrideResult {
        let (no, tenant, now) = (settle.key.job_no, back.tenant, settle.at);
        let is_asked = self.cancellations.contains_key(&(node, settle.key));
        let goes_on = self.find(no).filter(|job| !job.stops(settle.key.scheduled_at) && !is_asked);
        let Some(job) = goes_on else { return OverrideResult::Stopped };
        let wanted = DedupClaim::by_run(&self.view(job), DedupPurpose::Requeue, now);
        if let Some(holder) = self.kept_out_by(tenant, wanted.as_ref(), now) {
            return OverrideResult::Duplicate(holder);
        }
        self.take_key(tenant, wanted.as_ref(), no, now);
        done(self.requeue(node, vec![back], now) == [true])
    }

    fn settle_waiting(&mut self, scope: &Scope, settle: &OutcomeOverride) -> OverrideResult {
        let of_run = |(key, _): &(AttemptKey, _)| key.first_attempt() == settle.key.first_attempt();
        let found = self.waiting_of(settle.key.job_no).find(of_run);
        let Some((key, waiting)) = found else { return OverrideResult::Changed };
        let (fence, crashes, is_wake) = match waiting {
            Waiting::Delayed { .. } => (Fence::NONE, 0, true),
            Waiting::Ready(ready) => (ready.fence, ready.crashes, false),
        };
        let Some(finish) = settle.finish(scope.tenant, key, fence.next()) else {
            return OverrideResult::Changed;
        };
        self.stop_waiting(key);
        if is_wake && key.attempt == AttemptNo::FIRST {
            self.link(key);
        }
        let run = self.runs.entry(key).or_insert_with(|| RunRow {
            tenant: scope.tenant,
            status: AttemptStatus::Running,
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
        (run.status, run.fence, run.node) = (AttemptStatus::Running, fence.next(), Some(node));
        self.finish(node, vec![finish], OVERRIDE_ALPHA);
        if let Some(run) = self.runs.get_mut(&key) {
            run.node = before;
        }
        OverrideResult::Done
    }
}

fn done(is_done: bool) -> OverrideResult {
    if is_done { OverrideResult::Done } else { OverrideResult::Changed }
}

#[async_trait]
impl OverrideStore for ModelStore {
    async fn active_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        limit: u32,
    ) -> Result<Vec<LiveAttempt>, StoreError> {
        Ok(self.lock().active_attempts(scope, job, limit))
    }

    async fn override_outcome(
        &self,
        scope: &Scope,
        settle: OutcomeOverride,
    ) -> Result<OverrideResult, StoreError> {
        let became = self.lock().settle_run(scope, &settle);
        if became == OverrideResult::Done {
            self.signals.send(Signal::Messages);
        }
        Ok(became)
    }
}
