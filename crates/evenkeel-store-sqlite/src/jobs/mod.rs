//! Jobs: registering, reading, listing, and commands on them.

pub(crate) mod commands;
mod counts;
mod labels;
mod list;
mod purge;
pub(crate) mod read;
pub(crate) mod register;
pub(crate) mod search_index;
pub(crate) mod trigger;

use async_trait::async_trait;
use evenkeel_core::balance::Load;
use evenkeel_core::{JobId, Slot, Timestamp};
use evenkeel_store::{
    Applied, Job, JobCommand, JobCounts, JobCursor, JobFilter, JobSort, JobStore, NamedJob, NewJob,
    Now, Page, PageRequest, Registered, Scope, SlotLoad, StoreError, Trigger, Triggered,
};

use crate::SqliteStore;
use crate::connection::Urgency::{Batch, Command};
use crate::connection::{resolve, system_time};

#[async_trait]
impl JobStore for SqliteStore {
    async fn register(
        &self,
        scope: &Scope,
        jobs: Vec<NewJob>,
        now: Now,
    ) -> Result<Vec<Registered>, StoreError> {
        let tenant = scope.tenant;
        // The load of the jobs is computed before the request reaches the writer, because all
        // requests share the writer.
        let loads: Vec<_> =
            jobs.iter().map(|job| Load::of(&job.definition, None, job.next_at?)).collect();
        self.writer
            .write(Command, jobs.len() * 2, move |db| {
                register::register(db, tenant, &jobs, &loads, resolve(now))
            })
            .await
    }

    async fn register_paused(
        &self,
        scope: &Scope,
        job: NewJob,
        now: Now,
    ) -> Result<Registered, StoreError> {
        let tenant = scope.tenant;
        let job = NewJob { next_at: None, ..job };
        self.writer
            .write(Command, 6, move |db| register::register_paused(db, tenant, &job, resolve(now)))
            .await
    }

    async fn get(&self, scope: &Scope, id: JobId) -> Result<Option<Job>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| read::get(db, tenant, id)).await
    }

    async fn get_with_now(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<Option<(Job, Timestamp)>, StoreError> {
        let job = self.get(scope, id).await?;
        Ok(job.map(|job| (job, system_time())))
    }

    async fn list_jobs(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Result<Page<Job, JobCursor>, StoreError> {
        let (tenant, filter) = (scope.tenant, filter.clone());
        self.readers.read(move |db| list::list(db, tenant, &filter, sort, page)).await
    }

    async fn apply_commands(
        &self,
        scope: &Scope,
        commands: Vec<JobCommand>,
        now: Now,
    ) -> Result<Vec<Applied>, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, commands.len() * 4, move |db| {
                commands::apply_all(db, tenant, &commands, resolve(now))
            })
            .await
    }

    async fn purge(&self, scope: &Scope, id: JobId, limit: u32) -> Result<u64, StoreError> {
        let tenant = scope.tenant;
        let rows = limit as usize;
        self.writer.write(Batch, rows, move |db| purge::purge(db, tenant, id, limit)).await
    }

    async fn get_jobs(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>, StoreError> {
        let (tenant, ids) = (scope.tenant, ids.to_vec());
        self.readers.read(move |db| read::get_jobs(db, tenant, &ids)).await
    }

    async fn ids_of_numbers(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<JobId>>, StoreError> {
        let (tenant, numbers) = (scope.tenant, numbers.to_vec());
        self.readers.read(move |db| read::ids_of_numbers(db, tenant, &numbers)).await
    }

    async fn jobs_named(
        &self,
        scope: &Scope,
        name: &str,
        limit: u32,
    ) -> Result<Vec<NamedJob>, StoreError> {
        let (tenant, name) = (scope.tenant, name.to_owned());
        self.readers.read(move |db| read::jobs_named(db, tenant, &name, limit)).await
    }

    async fn index_jobs(&self, limit: u32) -> Result<bool, StoreError> {
        let found = self.engine_readers.read(move |db| search_index::find(db, limit)).await?;
        let Some(unindexed) = found else { return Ok(false) };
        let rows = unindexed.rows();
        self.writer.write(Batch, rows, move |db| search_index::write(db, &unindexed)).await?;
        Ok(true)
    }

    async fn job_counts(&self, scope: &Scope) -> Result<JobCounts, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| counts::job_counts(db, tenant)).await
    }

    async fn all_job_counts(&self) -> Result<JobCounts, StoreError> {
        self.engine_readers.read(counts::all_job_counts).await
    }

    async fn trigger(
        &self,
        scope: &Scope,
        id: JobId,
        request: Trigger,
        now: Now,
    ) -> Result<Triggered, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 2, move |db| trigger::trigger(db, tenant, id, request, resolve(now)))
            .await
    }

    async fn slot_loads(
        &self,
        scope: &Scope,
        slots: &[Slot],
        limit: u32,
    ) -> Result<Vec<SlotLoad>, StoreError> {
        let (tenant, slots) = (scope.tenant, slots.to_vec());
        self.readers.read(move |db| read::slot_loads(db, tenant, &slots, limit)).await
    }
}
