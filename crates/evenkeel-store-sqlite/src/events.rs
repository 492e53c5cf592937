//! What happens, told to those who listen: in memory, because all who listen are in this process.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, Timestamp};
use evenkeel_store::{
    EventJob, EventNo, EventPage, EventRing, EventStore, Events, JobTitle, NewEvent, Scope, Signal,
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
        let titles = if jobs.is_empty() { Vec::new() } else { self.job_titles(&jobs).await? };
        let ids = titles.into_iter().map(|title| title.map(|title| title.id));
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

    async fn job_titles(&self, jobs: &[JobNo]) -> Result<Vec<Option<JobTitle>>, StoreError> {
        let jobs = jobs.to_vec();
        self.engine_readers
            .read(move |db| jobs.iter().map(|job| find_title(db, *job)).collect())
            .await
    }
}

fn find_title(db: &Connection, job: JobNo) -> Answer<Option<JobTitle>> {
    let mut statement = db.prepare_cached(include_str!("../queries/job_titles.sql"))?;
    let found = statement.query_row([job.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((id, source_name)) = found else { return Ok(None) };
    Ok(Some(JobTitle { id: job_id(id)?, source_name }))
}
