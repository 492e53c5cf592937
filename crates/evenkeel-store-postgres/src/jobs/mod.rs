//! Jobs: registering, reading, listing and changing them.

mod commands;
mod counts;
mod labels;
mod list;
mod purge;
mod read;
mod register;
mod trigger;

use async_trait::async_trait;
use evenkeel_core::{Definition, JobId, Slot, Timestamp};
use evenkeel_store::{
    Applied, Job, JobCommand, JobCounts, JobCursor, JobFilter, JobSort, JobStore, NamedJob, NewJob,
    Now, Page, PageRequest, Registered, Scope, SlotLoad, StoreError, Trigger, Triggered,
};
use uuid::Uuid;

pub(crate) use commands::read_clock;
pub(crate) use read::{get_job, get_jobs};
pub(crate) use register::find_names;
pub(crate) use trigger::free_keys;

use crate::PostgresStore;

#[async_trait]
impl JobStore for PostgresStore {
    async fn register(
        &self,
        scope: &Scope,
        jobs: Vec<NewJob>,
        now: Now,
    ) -> Result<Vec<Registered>, StoreError> {
        register::register(self, scope, jobs, now).await
    }

    async fn register_paused(
        &self,
        scope: &Scope,
        job: NewJob,
        now: Now,
    ) -> Result<Registered, StoreError> {
        register::register_paused(self, scope, job, now).await
    }

    async fn get(&self, scope: &Scope, id: JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.get_with_now(scope, id).await?.map(|(job, _)| job))
    }

    async fn get_with_now(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<Option<(Job, Timestamp)>, StoreError> {
        let args = (id.0, scope.tenant.0);
        self.api
            .run(args, |connection, args| async move {
                let (id, tenant) = &*args;
                read::get_with_now(&connection, *id, *tenant).await
            })
            .await
    }

    async fn list_jobs(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Result<Page<Job, JobCursor>, StoreError> {
        list::list_jobs(self, scope, filter, sort, page).await
    }

    async fn apply_commands(
        &self,
        scope: &Scope,
        commands: Vec<JobCommand>,
        now: Now,
    ) -> Result<Vec<Applied>, StoreError> {
        commands::apply_commands(self, scope, commands, now).await
    }

    async fn purge(&self, scope: &Scope, id: JobId, limit: u32) -> Result<u64, StoreError> {
        purge::purge(self, scope, id, limit).await
    }

    async fn get_jobs(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let args = (ids, scope.tenant.0);
        self.api
            .run(args, |connection, args| async move {
                let (ids, tenant) = &*args;
                get_jobs(&connection, ids, *tenant).await
            })
            .await
    }

    async fn ids_of_numbers(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<JobId>>, StoreError> {
        let args = (numbers.to_vec(), scope.tenant.0);
        self.api
            .run(args, |connection, args| async move {
                let (numbers, tenant) = &*args;
                read::ids_of_numbers(&connection, numbers, *tenant).await
            })
            .await
    }

    async fn jobs_named(
        &self,
        scope: &Scope,
        name: &str,
        limit: u32,
    ) -> Result<Vec<NamedJob>, StoreError> {
        let args = (name.to_owned(), i64::from(limit), scope.tenant.0);
        self.api
            .run(args, |connection, args| async move {
                let (name, limit, tenant) = &*args;
                read::jobs_named(&connection, name, *limit, *tenant).await
            })
            .await
    }

    async fn job_counts(&self, scope: &Scope) -> Result<JobCounts, StoreError> {
        counts::job_counts(self, scope).await
    }

    async fn all_job_counts(&self) -> Result<JobCounts, StoreError> {
        counts::all_job_counts(self).await
    }

    async fn trigger(
        &self,
        scope: &Scope,
        id: JobId,
        trigger: Trigger,
        now: Now,
    ) -> Result<Triggered, StoreError> {
        trigger::trigger(self, scope, id, trigger, now).await
    }

    async fn slot_loads(
        &self,
        scope: &Scope,
        slots: &[Slot],
        limit: u32,
    ) -> Result<Vec<SlotLoad>, StoreError> {
        counts::slot_loads(self, scope, slots, limit).await
    }
}

fn definition_text(definition: &Definition) -> Result<String, StoreError> {
    serde_json::to_string(definition).map_err(|error| StoreError::Refused(error.into()))
}
