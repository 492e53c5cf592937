//! Ends one run.

use evenkeel_core::{RunKey, Timestamp};
use evenkeel_store::{RunCancelled, Scope};

use super::data::Data;

impl Data {
    pub fn cancel_run(&mut self, scope: &Scope, key: RunKey, now: Timestamp) -> RunCancelled {
        if self.find(key.job_no).is_none_or(|job| job.tenant != scope.tenant) {
            return RunCancelled::NotFound;
        }
        let of_run = |other: &RunKey| other.run_id() == key.run_id();
        let waiting = self.waiting_of(key.job_no).map(|(key, _)| key).find(of_run);
        if let Some(waiting) = waiting {
            self.withdraw(waiting, now);
            return RunCancelled::Withdrawn(waiting);
        }
        if let Some(running) = self.running.iter().find(|(_, key)| of_run(key)).copied() {
            self.cancellations.insert(running);
            return RunCancelled::Asked(running.1);
        }
        match self.runs.keys().any(of_run) {
            true => RunCancelled::Over,
            false => RunCancelled::NotFound,
        }
    }
}
