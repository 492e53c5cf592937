//! The end of attempts.

use evenkeel_core::run::RunStatus;
use evenkeel_core::{Attempt, NodeNo};
use evenkeel_store::{Finish, FinishResult, Then};

use super::data::Data;

impl Data {
    pub fn finish(&mut self, node: NodeNo, batch: Vec<Finish>, alpha: f64) -> Vec<FinishResult> {
        batch.into_iter().map(|finish| self.finish_one(node, finish, alpha)).collect()
    }

    fn finish_one(&mut self, node: NodeNo, finish: Finish, alpha: f64) -> FinishResult {
        let key = finish.key;
        let held =
            |run: &&mut super::data::RunRow| run.node == Some(node) && run.fence == finish.fence;
        let Some(run) = self.runs.get_mut(&key).filter(held) else {
            return FinishResult::LeaseLost;
        };
        match run.status {
            RunStatus::Running => {}
            RunStatus::Pending | RunStatus::Skipped => return FinishResult::LeaseLost,
            RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled
            | RunStatus::TimedOut
            | RunStatus::PartlyFailed => return FinishResult::AlreadyDone,
        }
        let asked_to_end = self.cancellations.contains(&(node, key));
        run.status = finish.outcome.into();
        run.finished_at = Some(finish.finished_at);
        run.results = finish.results;
        self.release(node, key);
        self.settle(key, finish.traces);

        let job = self.job(key.job_no);
        let outcome = finish.outcome;
        job.history = job.history.after(outcome, finish.started_at, finish.finished_at, alpha);
        job.last_outcome = Some(outcome);
        if outcome.is_failure() {
            job.newest_failed = Some(key);
        } else if outcome.is_good() {
            job.newest_good = Some(key);
        }
        match finish.then {
            Then::Retry { due } if !job.is_deleted() && !asked_to_end => {
                self.add_wake(key.with_attempt(Attempt(key.attempt.0 + 1)), due);
            }
            Then::Retry { .. } => self.end_chain(key.job_no),
            Then::EndChain { stop_job } => {
                // The end of a run that somebody wanted says nothing about its job.
                if stop_job && !asked_to_end {
                    job.next_at = None;
                    self.place(key.job_no);
                }
                self.end_chain(key.job_no);
            }
        }
        FinishResult::Done
    }
}
