//! What happens, told to those who listen: in memory, because all who listen are in this process.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, Timestamp};
use evenkeel_store::{
    EventJob, EventNo, EventPage, EventRing, EventStore, Events, NewEvent, Scope, Signal,
    StoreError,
};
use rusqlite::{Connection, OptionalExtension as _};

use crate::SqliteStore;
use crate::error::Answer;
use crate::rows::job_id;

impl SqliteStore {
    fn ring(&self) -> MutexGuard<'_, EventRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl EventStore for SqliteStore {
    fn events(&self) -> &Events {
        &self.events
    }

    async fn publish(&self, events: Vec<NewEvent>, dropped: bool) -> Result<(), StoreError> {
        let number = |event: &NewEvent| match event.job {
            EventJob::No(job) => Some(job),
            EventJob::Id(_) | EventJob::None => None,
        };
        let mut jobs: Vec<JobNo> = events.iter().filter_map(number).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let ids = if jobs.is_empty() { Vec::new() } else { self.job_ids(&jobs).await? };
        let known: BTreeMap<JobNo, Option<JobId>> = jobs.into_iter().zip(ids).collect();
        self.ring().publish(events, dropped, |event| match event.job {
            EventJob::Id(id) => Some(id),
            EventJob::No(job) => known.get(&job).copied().flatten(),
            EventJob::None => None,
        });
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

    async fn job_ids(&self, jobs: &[JobNo]) -> Result<Vec<Option<JobId>>, StoreError> {
        let jobs = jobs.to_vec();
        self.engine_readers.read(move |db| jobs.iter().map(|job| find_id(db, *job)).collect()).await
    }
}

fn find_id(db: &Connection, job: JobNo) -> Answer<Option<JobId>> {
    let mut statement = db.prepare_cached(include_str!("../queries/job_ids.sql"))?;
    let id = statement.query_row([job.0], |row| row.get(0)).optional()?;
    Ok(id.map(job_id).transpose()?)
}
