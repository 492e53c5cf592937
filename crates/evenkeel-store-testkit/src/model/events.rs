//! What happens, told to those who listen.

use std::sync::{MutexGuard, PoisonError};

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, Timestamp};
use evenkeel_store::{
    EventJob, EventNo, EventPage, EventRing, EventStore, Events, JobTitle, NewEvent, Scope, Signal,
    StoreError,
};

use super::ModelStore;
use super::data::Data;

impl Data {
    fn id_of(&self, job: JobNo) -> Option<JobId> {
        let index = usize::try_from(job.0).ok()?.checked_sub(1)?;
        self.jobs.get(index).map(|row| row.id)
    }
}

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
            self.ring().publish(events, dropped, |event| match event.job {
                EventJob::Id(id) => Some(id),
                EventJob::No(job) => data.id_of(job),
                EventJob::None => None,
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
            let source_name = data.find(*job)?.about.source_name.clone();
            Some(JobTitle { id: data.id_of(*job)?, source_name })
        };
        Ok(jobs.iter().map(title).collect())
    }
}
