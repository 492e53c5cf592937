//! Explains why a job does not run now.

use evenkeel_core::explain::{Explanation, Facts, Waiting, WaitsFor, WorkerFacts, explain};
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{self as store, Job, JobState, Member, Now, Scope, WaitingAttempt};

use super::Jobs;
use crate::Result;

#[derive(Clone, PartialEq, Debug)]
pub struct JobExplanation {
    pub job: Job,
    pub now: Timestamp,
    pub explanation: Explanation,
}

impl Jobs {
    /// Returns the reasons why a job does not run now, or that the job is running.
    pub async fn explain(&self, scope: &Scope, id: JobId) -> Result<JobExplanation> {
        // Waiting attempts are read before the job, so that an attempt that starts between both
        // reads is seen as running.
        let waiting =
            self.store.waiting_attempts(scope, id, Some(self.aging), Now::Database).await?;
        let job = self.get(scope, id).await?;
        let (now, members) = self.store.members().await?;
        let live = members.into_iter().filter(Member::is_live_worker);
        let workers: Vec<WorkerFacts> =
            live.map(|member| WorkerFacts { name: member.name, pools: member.pools }).collect();
        let waiting: Vec<Waiting> = waiting.into_iter().map(to_core).collect();
        let explanation = explain(
            &Facts {
                definition: &job.definition,
                average: job.definition.average(job.history.average_good_duration),
                cancelled: matches!(job.state, JobState::Cancelled | JobState::Deleted),
                paused: job.state == JobState::Paused,
                next_at: job.next_at,
                failed: job.history.consecutive_failures > 0,
                last_end_at: job.history.last_end_at,
                live: job.live,
                running_since: job.running_since,
                waiting: &waiting,
                workers: &workers,
                aging: self.aging,
            },
            now,
        );
        Ok(JobExplanation { job, now, explanation })
    }
}

fn to_core(waiting: WaitingAttempt) -> Waiting {
    let WaitingAttempt { key, priority, waits_for } = waiting;
    Waiting {
        scheduled_at: key.scheduled_at,
        origin: key.sequence.origin(),
        attempt: key.attempt,
        priority,
        waits_for: match waits_for {
            store::WaitsFor::Time(due) => WaitsFor::Time(due),
            store::WaitsFor::Worker { since, ahead, window } => WaitsFor::Worker {
                since,
                ahead: ahead.unwrap_or_default(),
                open_from: window.from,
                open_until: window.until,
            },
            store::WaitsFor::Permit { since, limit, running } => {
                WaitsFor::Permit { since, limit, running: running.unwrap_or_default() }
            }
        },
    }
}
