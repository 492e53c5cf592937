//! Tells those who listen what was done to jobs.

use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{EventJob, EventKind, NewEvent, Scope, Store};

use super::Jobs;

impl Jobs {
    /// Tells what was done to some jobs. Costs the look at a flag while nobody listens, and nothing
    /// that goes wrong with it is a failure of the command.
    pub(crate) async fn tell(&self, scope: &Scope, kind: EventKind, jobs: &[JobId]) {
        if let Some(at) = self.listened_at().await {
            tell_at(&*self.store, scope, kind, jobs.iter().copied(), at);
        }
    }

    /// Tells that somebody asked for a run of a job.
    pub(super) async fn tell_requested(&self, scope: &Scope, job: JobId, run: AttemptKey) {
        if self.store.events().has_listeners() {
            let at = run.scheduled_at;
            let event = event(scope, EventKind::RunRequested, job, at);
            self.store.events().emit([NewEvent { run: Some(run), ..event }]);
        }
    }

    /// Tells that attempts were withdrawn before they ran.
    pub(super) async fn tell_withdrawn(&self, scope: &Scope, runs: &[AttemptKey]) {
        if !runs.is_empty()
            && let Some(at) = self.listened_at().await
        {
            let event = |run: &AttemptKey| NewEvent::run_withdrawn(scope.tenant, *run, at);
            self.store.events().emit(runs.iter().map(event));
        }
    }

    /// What time it is, if anybody listens.
    async fn listened_at(&self) -> Option<Timestamp> {
        if !self.store.events().has_listeners() {
            return None;
        }
        let now = self.store.now().await;
        if now.is_err() {
            // Whoever listens must know that something is missing.
            self.store.events().mark_gap();
        }
        now.ok()
    }
}

/// Tells what was done to some jobs at a time that is known.
pub(super) fn tell_at(
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
