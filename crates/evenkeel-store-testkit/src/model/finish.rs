//! Results of attempts.

use evenkeel_core::advance::SkipReason::{EndNotStored, Overlap};
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, NodeNo, Timestamp};
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
            AttemptStatus::Running => {}
            AttemptStatus::Pending | AttemptStatus::Skipped => return FinishResult::LeaseLost,
            AttemptStatus::Completed
            | AttemptStatus::Failed
            | AttemptStatus::Cancelled
            | AttemptStatus::TimedOut
            | AttemptStatus::PartlyFailed
            | AttemptStatus::Superseded => {
                if let Some(since) = finish.unstored_since {
                    self.correct_skips(key.job_no, since);
                }
                return FinishResult::AlreadyDone;
            }
        }
        let asked_to_end = self.cancellations.contains_key(&(node, key));
        run.status = finish.outcome.into();
        run.finished_at = Some(finish.finished_at);
        run.results = finish.results.clone();
        self.release(node, key);
        self.close_attachments(key, finish.attachments.clone());

        let job = self.job(key.job_no);
        let outcome = finish.outcome;
        job.history = job.history.after(outcome, finish.started_at, finish.finished_at, alpha);
        job.last_outcome = Some(outcome);
        if outcome.is_failure() {
            job.newest_failed = Some(key);
            job.failed_runs += 1;
        } else if outcome.is_success() {
            job.newest_good = Some(key);
            job.succeeded_runs += 1;
        }
        let (stops, since) = (job.stops(key.scheduled_at), job.since);
        let over = match finish.then {
            Then::Retry { due } if !stops && !asked_to_end => {
                let next = key.with_attempt(AttemptNo(key.attempt.0 + 1));
                self.add_delayed(next, due, finish.priority);
                false
            }
            Then::Retry { .. } => true,
            Then::EndRun { stop_job, next_at } => {
                // A run that was asked to stop does not stop its job.
                let stops = stop_job && !asked_to_end;
                // A result that was decided under an older schedule does not change the next
                // scheduled time.
                if since <= finish.started_at {
                    self.go_on(key.job_no, stops, next_at);
                }
                true
            }
        };
        if !asked_to_end {
            self.obey_hook(&finish);
        }
        if let Some(since) = finish.unstored_since {
            self.correct_skips(key.job_no, since);
        }
        if over {
            self.end_chain(key.job_no);
        }
        if over && !outcome.is_success() {
            self.tell_of_end(key.job_no);
        } else if !outcome.is_success() || finish.judge {
            self.mark_at_risk(&[key.job_no]);
        } else {
            self.touch(key.job_no);
        }
        FinishResult::Done
    }

    /// Corrects the reason of the job's skip records from `since` on, which were made because the
    /// store did not know that the run had finished.
    fn correct_skips(&mut self, job: JobNo, since: Timestamp) {
        let later = self.runs.range_mut(AttemptKey::regular(JobNo(i64::MIN), since)..);
        for (_, run) in later.filter(|(key, _)| key.job_no == job) {
            if let Some(skip) = run.skipped.as_mut().filter(|skip| skip.reason == Overlap) {
                skip.reason = EndNotStored;
            }
        }
    }

    /// Sets the next scheduled time of a job after one of its runs has finished.
    fn go_on(&mut self, no: JobNo, stops: bool, next_at: Option<Timestamp>) {
        let job = self.job(no);
        let follows = job.definition.schedule.follows_its_end();
        let moves = follows && job.next_at.is_some() && next_at > job.last_fired_at;
        if stops {
            job.next_at = None;
            self.recount(no);
        } else if moves && !job.is_over() {
            job.next_at = next_at;
            self.notify_scheduler(no);
        }
        self.place(no);
    }
}
