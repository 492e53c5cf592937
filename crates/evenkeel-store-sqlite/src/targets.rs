//! Targets, the systems that jobs work on.

use std::collections::HashMap;

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    ChangedTarget, CreatedTarget, DeletedTarget, Job, NewTarget, Now, Page, PageRequest, Scope,
    StaleTarget, StaleTargets, StoreError, Target, TargetFields, TargetStore, is_stale, sql_time,
};
use rusqlite::{Connection, Row};

use crate::SqliteStore;
use crate::connection::Urgency::Command;
use crate::connection::{Params, RunPrepared, RunSql, resolve};
use crate::error::Answer;
use crate::jobs::search_index;
use crate::rows::{count, job_id, next_after, page_of};

#[async_trait]
impl TargetStore for SqliteStore {
    async fn create_target(
        &self,
        scope: &Scope,
        target: NewTarget,
        now: Now,
    ) -> Result<CreatedTarget, StoreError> {
        let tenant = scope.tenant;
        self.writer.write(Command, 1, move |db| make(db, tenant, &target, resolve(now))).await
    }

    async fn get_targets(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<Target>>, StoreError> {
        let (tenant, numbers) = (scope.tenant, numbers.to_vec());
        self.readers
            .read(move |db| numbers.iter().map(|number| find(db, tenant, *number)).collect())
            .await
    }

    async fn target_urls(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<HashMap<i64, Option<String>>, StoreError> {
        let (tenant, numbers) = (scope.tenant, numbers.to_vec());
        self.readers
            .read(move |db| {
                let mut statement = db.prepare_cached(sql!("target_urls"))?;
                let mut urls = HashMap::new();
                for number in numbers {
                    let url = statement.maybe_value(&[&tenant, &number])?;
                    urls.extend(url.map(|url| (number, url)));
                }
                Ok(urls)
            })
            .await
    }

    async fn list_targets(
        &self,
        scope: &Scope,
        page: PageRequest<i64>,
    ) -> Result<Page<Target, i64>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| list(db, tenant, page)).await
    }

    async fn change_target(
        &self,
        scope: &Scope,
        number: i64,
        if_generation: Option<i32>,
        fields: TargetFields,
        now: Now,
    ) -> Result<ChangedTarget, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 1, move |db| {
                change(db, (tenant, number), if_generation, &fields, resolve(now))
            })
            .await
    }

    async fn delete_target(
        &self,
        scope: &Scope,
        number: i64,
        detach: bool,
    ) -> Result<DeletedTarget, StoreError> {
        let tenant = scope.tenant;
        self.writer.write(Command, 1, move |db| delete(db, tenant, number, detach)).await
    }

    async fn jobs_of_target(
        &self,
        scope: &Scope,
        number: i64,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<(JobNo, JobId)>, StoreError> {
        let (tenant, after) = (scope.tenant, after.map_or(0, |after| after.0));
        self.readers
            .read(move |db| {
                db.rows(sql!("jobs_of_target"), &[&tenant, &number, &after, &limit], |row| {
                    Ok((JobNo(row.get(0)?), job_id(row.get(1)?)?))
                })
            })
            .await
    }

    async fn stale_targets(
        &self,
        before: Timestamp,
        after: Option<(TenantNo, i64)>,
        limit: u32,
    ) -> Result<StaleTargets, StoreError> {
        self.engine_readers.read(move |db| stale(db, before, after, limit)).await
    }
}

fn make(
    connection: &Connection,
    tenant: TenantNo,
    new: &NewTarget,
    now: Timestamp,
) -> Answer<CreatedTarget> {
    let next: i64 = connection.value(sql!("create_target_number"), &[&tenant])?;
    let number = match new.number {
        Some(chosen) => chosen,
        None => connection.value(sql!("create_target_free"), &[&tenant, &next])?,
    };
    let TargetFields { source_id, name, url } = &new.fields;
    let existing: Params<'_> = &[&tenant, &number, source_id];
    if let Some(existing) = connection.maybe_value(sql!("create_target_find"), existing)? {
        return Ok(CreatedTarget::Exists(known(connection, tenant, existing)?));
    }
    connection.run(sql!("create_target"), &[&tenant, &number, source_id, name, url, &now])?;
    let next = new.number.is_none().then_some(number + 1);
    connection.run(sql!("create_target_count"), &[&tenant, &next])?;
    Ok(CreatedTarget::Created(known(connection, tenant, number)?))
}

fn find(connection: &Connection, tenant: TenantNo, number: i64) -> Answer<Option<Target>> {
    connection.maybe_row(sql!("get_targets"), &[&tenant, &number], target_from)
}

/// Returns a target that must exist.
fn known(connection: &Connection, tenant: TenantNo, number: i64) -> Answer<Target> {
    let lost =
        || StoreError::corrupt(format_args!("target {number}"), "number", "the row is missing");
    Ok(find(connection, tenant, number)?.ok_or_else(lost)?)
}

fn target_from(row: &Row<'_>) -> Answer<Target> {
    Ok(Target {
        number: row.get("number")?,
        fields: TargetFields {
            source_id: row.get("source_id")?,
            name: row.get("name")?,
            url: row.get("url")?,
        },
        last_success_at: sql_time(row.get("last_success_at")?),
        jobs: count(row, "jobs")?,
        generation: row.get("generation")?,
        created_at: Timestamp::from_micros(row.get("created_at")?),
        updated_at: Timestamp::from_micros(row.get("updated_at")?),
    })
}

fn list(
    connection: &Connection,
    tenant: TenantNo,
    page: PageRequest<i64>,
) -> Answer<Page<Target, i64>> {
    let total = connection.row(sql!("list_targets_count"), &[&tenant], |row| count(row, 0))?;
    let (after, limit) = (page.after.unwrap_or(0), i64::from(page.limit) + 1);
    let which: Params<'_> = &[&tenant, &after, &limit, &page.offset];
    let items = connection.rows(sql!("list_targets"), which, target_from)?;
    Ok(page_of(items, page.limit, (total, false), |target| target.number))
}

fn change(
    connection: &Connection,
    (tenant, number): (TenantNo, i64),
    if_generation: Option<i32>,
    fields: &TargetFields,
    now: Timestamp,
) -> Answer<ChangedTarget> {
    let Some(before) = find(connection, tenant, number)? else {
        return Ok(ChangedTarget::NotFound);
    };
    if if_generation.is_some_and(|wanted| wanted != before.generation) {
        return Ok(ChangedTarget::Stale(before));
    }
    let TargetFields { source_id, name, url } = fields;
    let others: Params<'_> = &[&tenant, source_id, &number];
    if let Some(holder) = connection.maybe_value(sql!("change_target_source"), others)? {
        return Ok(ChangedTarget::SourceTaken(holder));
    }
    connection.run(sql!("change_target"), &[&tenant, &number, source_id, name, url, &now])?;
    if *name != before.fields.name {
        search_index::add_target(connection, tenant, number)?;
    }
    Ok(ChangedTarget::Done(known(connection, tenant, number)?))
}

fn delete(
    connection: &Connection,
    tenant: TenantNo,
    number: i64,
    detach: bool,
) -> Answer<DeletedTarget> {
    let Some(target) = find(connection, tenant, number)? else {
        return Ok(DeletedTarget::NotFound);
    };
    if target.jobs > 0 && !detach {
        return Ok(DeletedTarget::InUse(target.jobs));
    }
    for sql in [
        // The jobs of the target get a new generation, and the schedulers load these jobs again.
        sql!("delete_target_raise"),
        sql!("delete_target_notify"),
        sql!("delete_target_detach"),
        sql!("delete_target"),
    ] {
        connection.run(sql, &[&tenant, &number])?;
    }
    connection.run(sql!("delete_target_count"), &[&tenant])?;
    Ok(DeletedTarget::Done { detached: target.jobs })
}

/// Gives a job another target, or none. The job's earlier successes still count for its previous
/// target.
pub(crate) fn change_of_job(
    connection: &Connection,
    job: &Job,
    target: Option<i64>,
    now: Timestamp,
) -> Answer<()> {
    if job.about.target.is_some() {
        connection.run(sql!("command_leave_targets"), &[&job.no])?;
    }
    if job.about.target.is_some() || target.is_some() {
        connection.run(sql!("command_name_target"), &[&job.no, &target, &now])?;
    }
    Ok(())
}

fn stale(
    connection: &Connection,
    before: Timestamp,
    after: Option<(TenantNo, i64)>,
    limit: u32,
) -> Answer<StaleTargets> {
    let (tenant, number) = after.unwrap_or((TenantNo(0), 0));
    let mut targets = Vec::new();
    let read = connection.rows(sql!("stale_targets"), &[&tenant, &number, &limit], |row| {
        let (tenant, number) = (TenantNo(row.get("tenant_no")?), row.get("number")?);
        let last_success_at = sql_time(row.get("last_success_at")?);
        if is_stale(last_success_at, Timestamp::from_micros(row.get("created_at")?), before) {
            targets.push(StaleTarget {
                tenant,
                number,
                last_success_at,
                job: row.get::<_, Option<Vec<u8>>>("job")?.map(job_id).transpose()?,
                next_at: sql_time(row.get("next_at")?),
                is_live: row.get("is_live")?,
            });
        }
        Ok((tenant, number))
    })?;
    Ok(StaleTargets { targets, next: next_after(&read, limit).copied() })
}
