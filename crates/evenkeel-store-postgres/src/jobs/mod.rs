//! Jobs: registering, reading, listing and changing them.

mod commands;
mod counts;
mod labels;
mod list;
mod purge;
mod read;
mod register;
pub(crate) mod search_index;
mod trigger;

use async_trait::async_trait;
use evenkeel_core::{JobId, Slot, Timestamp};
use evenkeel_store::{
    Applied, Job, JobCommand, JobCounts, JobCursor, JobFilter, JobSort, JobStore, NamedJob, NewJob,
    Now, Page, PageRequest, Registered, Scope, SlotLoad, StoreError, Trigger, Triggered,
};
use tokio_postgres::Row;
use uuid::Uuid;

pub(crate) use commands::read_clock;
pub(crate) use read::{get_job, get_jobs};
pub(crate) use register::find_names;
pub(crate) use trigger::free_keys;

use self::commands::Args;
use self::list::List;
use self::read::read_job;
use crate::PostgresStore;
use crate::error::Failure;
use crate::rows::{column, get, micros, priority};

#[async_trait]
impl JobStore for PostgresStore {
    async fn register(
        &self,
        scope: &Scope,
        jobs: Vec<NewJob>,
        now: Now,
    ) -> Result<Vec<Registered>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        run!(self.api, jobs, |connection, jobs| {
            register::register(connection, tenant, jobs, now).await
        })
    }

    async fn register_paused(
        &self,
        scope: &Scope,
        job: NewJob,
        now: Now,
    ) -> Result<Registered, StoreError> {
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        transaction!(self.api, [NewJob { next_at: None, ..job }], |connection, jobs| {
            register::register_paused(connection, tenant, jobs, now).await
        })
    }

    async fn get(&self, scope: &Scope, id: JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.get_with_now(scope, id).await?.map(|(job, _)| job))
    }

    async fn get_with_now(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<Option<(Job, Timestamp)>, StoreError> {
        let tenant = scope.tenant.0;
        run!(self.api, |connection| read::get_with_now(connection, id.0, tenant).await)
    }

    async fn list_jobs(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Result<Page<Job, JobCursor>, StoreError> {
        let tenant = scope.tenant;
        run!(self.api, filter.clone(), |connection, filter| {
            evenkeel_store::list_jobs(&List { connection, tenant, filter, sort }, page).await
        })
    }

    async fn apply_commands(
        &self,
        scope: &Scope,
        commands: Vec<JobCommand>,
        now: Now,
    ) -> Result<Vec<Applied>, StoreError> {
        let args = Args { tenant: scope.tenant.0, now: micros(now.literal()), commands };
        run!(self.api, args, |connection, args| {
            match connection.transaction(commands::run(connection, args)).await {
                // Another job took the name in the meantime, so the command is decided again.
                Err(failure) if failure.is_taken() => Err(Failure::Again),
                tried => tried,
            }
        })
    }

    async fn purge(&self, scope: &Scope, id: JobId, limit: u32) -> Result<u64, StoreError> {
        let tenant = scope.tenant.0;
        transaction!(self.api, |connection| purge::purge(connection, tenant, id.0, limit).await)
    }

    async fn get_jobs(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>, StoreError> {
        let params = params![column(ids, |id| id.0), scope.tenant.0];
        self.api.rows(sql!("get_jobs"), params, read_job).await
    }

    async fn ids_of_numbers(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<JobId>>, StoreError> {
        let params = params![scope.tenant.0, numbers.to_vec()];
        let read = |row: &Row| Ok(get::<Option<Uuid>>(row, 0)?.map(JobId));
        self.api.rows(sql!("ids_of_numbers"), params, read).await
    }

    async fn jobs_named(
        &self,
        scope: &Scope,
        name: &str,
        limit: u32,
    ) -> Result<Vec<NamedJob>, StoreError> {
        // PostgreSQL cannot store a NUL character, so no job has a name that contains NUL.
        if name.contains('\0') {
            return Ok(Vec::new());
        }
        let params = params![scope.tenant.0, name.to_owned(), i64::from(limit)];
        let read =
            |row: &Row| Ok(NamedJob { id: JobId(get(row, 0)?), configuration: get(row, 1)? });
        self.api.rows(sql!("jobs_named"), params, read).await
    }

    async fn index_jobs(&self, limit: u32) -> Result<bool, StoreError> {
        transaction!(self.api, |connection| search_index::index_jobs(connection, limit).await)
    }

    async fn job_counts(&self, scope: &Scope) -> Result<JobCounts, StoreError> {
        let tenant = scope.tenant;
        run!(self.api, |connection| counts::job_counts(connection, tenant).await)
    }

    async fn all_job_counts(&self) -> Result<JobCounts, StoreError> {
        run!(self.api, |connection| counts::all_job_counts(connection).await)
    }

    async fn trigger(
        &self,
        scope: &Scope,
        id: JobId,
        trigger: Trigger,
        now: Now,
    ) -> Result<Triggered, StoreError> {
        let (tenant, id, now) = (scope.tenant.0, id.0, micros(now.literal()));
        let Trigger { n, priority: given, idle_only, .. } = trigger;
        let args = trigger::Args { tenant, id, n, priority: priority(given), idle_only, now };
        run!(self.api, args, |connection, args| trigger::trigger(connection, args).await)
    }

    async fn slot_loads(
        &self,
        scope: &Scope,
        slots: &[Slot],
        limit: u32,
    ) -> Result<Vec<SlotLoad>, StoreError> {
        let params = params![scope.tenant.0, column(slots, |slot| slot.0), i64::from(limit)];
        self.api.rows(sql!("slot_loads"), params, counts::read_load).await
    }
}
