//! Publishes events about jobs and runs.

use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{EventJob, EventKind, NewEvent, Scope, Store};

use super::Jobs;

impl Jobs {
    /// Publishes an event of this kind for each job. If no client listens to events, the function
    /// only checks a flag. A failure to publish an event does not fail the command.
    pub(crate) async fn publish(&self, scope: &Scope, kind: EventKind, jobs: &[JobId]) {
        if let Some(at) = self.time_for_listeners().await {
            publish_at(&*self.store, scope, kind, jobs.iter().copied(), at);
        }
    }

    pub(super) async fn publish_requested(&self, scope: &Scope, job: JobId, run: AttemptKey) {
        if self.store.events().has_listeners() {
            let at = run.scheduled_at;
            let event = event(scope, EventKind::RunRequested, job, at);
            self.store.events().emit([NewEvent { run: Some(run), ..event }]);
        }
    }

    /// Publishes an event for each attempt that was withdrawn before it ran.
    pub(super) async fn publish_withdrawn(&self, scope: &Scope, runs: &[AttemptKey]) {
        if !runs.is_empty()
            && let Some(at) = self.time_for_listeners().await
        {
            let event = |run: &AttemptKey| NewEvent::run_withdrawn(scope.tenant, *run, at);
            self.store.events().emit(runs.iter().map(event));
        }
    }

    /// Returns the current time if any client listens to events.
    async fn time_for_listeners(&self) -> Option<Timestamp> {
        if !self.store.events().has_listeners() {
            return None;
        }
        let now = self.store.now().await;
        if now.is_err() {
            // The event cannot be published without the current time, so listening clients are
            // informed about a gap.
            self.store.events().mark_gap();
        }
        now.ok()
    }
}

/// Publishes an event of this kind for each job, with the given time.
pub(super) fn publish_at(
    store: &dyn Store,
    scope: &Scope,
    kind: EventKind,
    jobs: impl Iterator<Item = JobId>,
    at: Timestamp,
) {
    store.events().emit(jobs.map(|id| event(scope, kind, id, at)));
}

fn event(scope: &Scope, kind: EventKind, job: JobId, at: Timestamp) -> NewEvent {
    let (tenant, job) = (scope.tenant, EventJob::Id(job));
    NewEvent { kind, tenant, job, run: None, at, data: "{}".into() }
}
