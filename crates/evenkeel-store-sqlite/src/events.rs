//! Keeps events in memory, because all listeners are in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, Timestamp};
use evenkeel_store::{
    EventJob, EventNo, EventPage, EventRing, EventStore, Events, JobTitle, NewEvent, Scope, Signal,
    StoreError,
};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::connection::{RunPrepared, RunSql};
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
        let (mut numbers, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for event in &events {
            match event.job {
                EventJob::No(job) => _ = numbers.insert(job),
                EventJob::Id(id) => _ = ids.insert(id),
                EventJob::None => {}
            }
        }
        let jobs = if numbers.is_empty() && ids.is_empty() {
            EventJobs::default()
        } else {
            self.engine_readers.read(move |db| EventJobs::find(db, numbers, ids)).await?
        };
        self.ring().publish(events, dropped, |event| jobs.job_of(event));
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

/// The ids and names of the jobs that some events are about.
#[derive(Default)]
struct EventJobs {
    titles: BTreeMap<JobNo, Option<JobTitle>>,
    names: BTreeMap<JobId, Option<String>>,
}

impl EventJobs {
    fn find(db: &Connection, numbers: BTreeSet<JobNo>, ids: BTreeSet<JobId>) -> Answer<Self> {
        let title = |job| Ok((job, find_title(db, job)?));
        let titles = numbers.into_iter().map(title).collect::<Answer<_>>()?;
        let mut statement = db.prepare_cached(sql!("publish_name"))?;
        let mut name = |id: JobId| {
            let found: Option<Option<String>> = statement.maybe_value(&[&id])?;
            Ok((id, found.flatten()))
        };
        let names = ids.into_iter().map(&mut name).collect::<Answer<_>>()?;
        Ok(Self { titles, names })
    }

    fn job_of(&self, event: &NewEvent) -> (Option<JobId>, Option<String>) {
        match event.job {
            EventJob::Id(id) => (Some(id), self.names.get(&id).cloned().flatten()),
            EventJob::No(job) => {
                let title = self.titles.get(&job).cloned().flatten();
                title.map_or((None, None), |title| (Some(title.id), title.name))
            }
            EventJob::None => (None, None),
        }
    }
}

fn find_title(db: &Connection, job: JobNo) -> Answer<Option<JobTitle>> {
    db.maybe_row(sql!("job_titles"), &[&job], |row| {
        Ok(JobTitle { id: job_id(row.get(0)?)?, name: row.get(1)?, source_name: row.get(2)? })
    })
}
