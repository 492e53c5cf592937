//! Events.

use std::sync::{MutexGuard, PoisonError};

use async_trait::async_trait;
use evenkeel_core::{JobNo, Timestamp};
use evenkeel_store::{
    EventJob, EventNo, EventPage, EventRing, EventStore, Events, JobTitle, NewEvent, Scope, Signal,
    StoreError,
};

use super::ModelStore;

impl ModelStore {
    fn ring(&self) -> MutexGuard<'_, EventRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl EventStore for ModelStore {
    fn events(&self) -> &Events {
        &self.events
    }

    async fn publish(&self, events: Vec<NewEvent>, dropped: bool) -> Result<(), StoreError> {
        {
            let data = self.lock();
            self.ring().publish(events, dropped, |event| {
                let job = match event.job {
                    EventJob::Id(id) => data.jobs.iter().find(|row| row.id == id),
                    EventJob::No(job) => data.find(job),
                    EventJob::None => None,
                };
                let told = match event.job {
                    EventJob::Id(id) => Some(id),
                    EventJob::No(_) | EventJob::None => None,
                };
                (told.or(job.map(|job| job.id)), job.and_then(|job| job.about.name.clone()))
            });
        }
        self.signals.send(Signal::Events);
        Ok(())
    }

    async fn newest_event(&self) -> Result<EventNo, StoreError> {
        Ok(self.ring().newest())
    }

    async fn events_after(
        &self,
        scope: &Scope,
        after: EventNo,
        limit: u32,
    ) -> Result<EventPage, StoreError> {
        Ok(self.ring().after(scope, after, limit))
    }

    async fn listen(&self, until: Timestamp) -> Result<(), StoreError> {
        self.ring().listen(until);
        self.signals.send(Signal::Events);
        Ok(())
    }

    async fn listened_until(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.ring().listened_until())
    }

    async fn job_titles(&self, jobs: &[JobNo]) -> Result<Vec<Option<JobTitle>>, StoreError> {
        let data = self.lock();
        let title = |job: &JobNo| {
            let row = data.find(*job)?;
            let (name, source_name) = (row.about.name.clone(), row.about.source_name.clone());
            Some(JobTitle { id: row.id, name, source_name })
        };
        Ok(jobs.iter().map(title).collect())
    }
}
