//! Cancels one run, or supersedes all active runs of jobs.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::{AttemptKey, JobNo, Timestamp};
use evenkeel_store::{RunCancelled, Scope, Supersede};

use super::data::{Data, JobRow};

impl Data {
    pub fn cancel_run(&mut self, scope: &Scope, key: AttemptKey, now: Timestamp) -> RunCancelled {
        if self.find(key.job_no).is_none_or(|job| job.tenant != scope.tenant) {
            return RunCancelled::NotFound;
        }
        let of_run = |other: &AttemptKey| other.first_attempt() == key.first_attempt();
        let waiting = self.waiting_of(key.job_no).map(|(key, _)| key).find(of_run);
        if let Some(waiting) = waiting {
            self.withdraw(waiting, Outcome::Cancelled, now);
            self.tell_of_end(key.job_no);
            return RunCancelled::Withdrawn(waiting);
        }
        if let Some(running) = self.running.iter().find(|(_, key)| of_run(key)).copied() {
            self.cancellations.entry(running).or_insert(false);
            return RunCancelled::Asked(running.1);
        }
        match self.runs.keys().any(of_run) {
            true => RunCancelled::Over,
            false => RunCancelled::NotFound,
        }
    }

    pub fn supersede(&mut self, batch: &[Supersede], now: Timestamp) {
        for Supersede { job: no, generation, due } in batch {
            let as_decided =
                |job: &JobRow| job.generation == *generation && job.next_at == Some(*due);
            if !self.find(*no).is_some_and(as_decided) {
                continue;
            }
            let waiting: Vec<AttemptKey> = self.waiting_of(*no).map(|(key, _)| key).collect();
            for key in &waiting {
                self.withdraw(*key, Outcome::Superseded, now);
            }
            if !waiting.is_empty() {
                self.tell_of_end(*no);
            }
            let of_job = |(_, key): &&(_, AttemptKey)| key.job_no == *no;
            for running in self.running.iter().filter(of_job) {
                self.cancellations.entry(*running).or_insert(true);
            }
        }
    }

    /// After a run that did not succeed, marks its job as at risk and notifies the scheduler.
    pub fn tell_of_end(&mut self, no: JobNo) {
        if self.find(no).is_some_and(|job| !job.is_over()) {
            self.mark_at_risk(&[no]);
            self.notify_scheduler(no);
        }
    }
}
