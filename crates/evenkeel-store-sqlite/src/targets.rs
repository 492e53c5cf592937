//! Targets, the systems that jobs work on.

use std::collections::HashMap;

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    ChangedTarget, CreatedTarget, DeletedTarget, Job, NewTarget, Now, Page, PageRequest, Scope,
    StaleTarget, StaleTargets, StoreError, Target, TargetFields, TargetStore, is_stale, sql_time,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::connection::clock::resolve;
use crate::connection::urgency::Urgency::Command;
use crate::error::Answer;
use crate::rows::{collect, count, job_id, page_of};

#[async_trait]
impl TargetStore for SqliteStore {
    async fn create_target(
        &self,
        scope: &Scope,
        target: NewTarget,
        now: Now,
    ) -> Result<CreatedTarget, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 1, move |session| {
                make(session.connection(), tenant, &target, resolve(now))
            })
            .await
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
                    let mut rows = statement.query(params![tenant.0, number])?;
                    if let Some(row) = rows.next()? {
                        urls.insert(number, row.get(0)?);
                    }
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
            .write(Command, 1, move |session| {
                change(session.connection(), (tenant, number), if_generation, &fields, resolve(now))
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
        self.writer
            .write(Command, 1, move |session| delete(session.connection(), tenant, number, detach))
            .await
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
                let sql = sql!("jobs_of_target");
                let mut statement = db.prepare_cached(sql)?;
                collect(statement.query(params![tenant.0, number, after, limit])?, |row| {
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
    let next: i64 = connection
        .prepare_cached(sql!("create_target_number"))?
        .query_row([tenant.0], |row| row.get(0))?;
    let number = match new.number {
        Some(chosen) => chosen,
        None => connection
            .prepare_cached(sql!("create_target_free"))?
            .query_row(params![tenant.0, next], |row| row.get(0))?,
    };
    let TargetFields { source_id, name, url } = &new.fields;
    let existing: Option<i64> = connection
        .prepare_cached(sql!("create_target_find"))?
        .query_row(params![tenant.0, number, source_id], |row| row.get(0))
        .optional()?;
    if let Some(existing) = existing {
        return Ok(CreatedTarget::Exists(known(connection, tenant, existing)?));
    }
    connection.prepare_cached(sql!("create_target"))?.execute(params![
        tenant.0,
        number,
        source_id,
        name,
        url,
        now.as_micros()
    ])?;
    connection
        .prepare_cached(sql!("create_target_count"))?
        .execute(params![tenant.0, new.number.is_none().then_some(number + 1)])?;
    Ok(CreatedTarget::Created(known(connection, tenant, number)?))
}

fn find(connection: &Connection, tenant: TenantNo, number: i64) -> Answer<Option<Target>> {
    let mut statement = connection.prepare_cached(sql!("get_targets"))?;
    let mut rows = statement.query(params![tenant.0, number])?;
    rows.next()?.map(target_from).transpose()
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
        jobs: row.get::<_, i64>("jobs")?.unsigned_abs(),
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
    let total = count(connection, sql!("list_targets_count"), tenant)?;
    let mut statement = connection.prepare_cached(sql!("list_targets"))?;
    let (after, limit) = (page.after.unwrap_or(0), i64::from(page.limit));
    let items =
        collect(statement.query(params![tenant.0, after, limit + 1, page.offset])?, target_from)?;
    Ok(page_of(items, page.limit, total, |target| target.number))
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
    let holder: Option<i64> = connection
        .prepare_cached(sql!("change_target_source"))?
        .query_row(params![tenant.0, source_id, number], |row| row.get(0))
        .optional()?;
    if let Some(holder) = holder {
        return Ok(ChangedTarget::SourceTaken(holder));
    }
    connection.prepare_cached(sql!("change_target"))?.execute(params![
        tenant.0,
        number,
        source_id,
        name,
        url,
        now.as_micros()
    ])?;
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
    let which = params![tenant.0, number];
    for sql in [
        // The jobs of the target get a new generation, and the schedulers load these jobs again.
        sql!("delete_target_raise"),
        sql!("delete_target_notify"),
        sql!("delete_target_detach"),
        sql!("delete_target"),
    ] {
        connection.prepare_cached(sql)?.execute(which)?;
    }
    connection.prepare_cached(sql!("delete_target_count"))?.execute([tenant.0])?;
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
        connection.prepare_cached(sql!("command_leave_targets"))?.execute([job.no.0])?;
    }
    if job.about.target.is_some() || target.is_some() {
        connection.prepare_cached(sql!("command_name_target"))?.execute(params![
            job.no.0,
            target,
            now.as_micros()
        ])?;
    }
    Ok(())
}

fn stale(
    connection: &Connection,
    before: Timestamp,
    after: Option<(TenantNo, i64)>,
    limit: u32,
) -> Answer<StaleTargets> {
    let (tenant, number) = after.map_or((0, 0), |(tenant, number)| (tenant.0, number));
    let mut statement = connection.prepare_cached(sql!("stale_targets"))?;
    let mut rows = statement.query(params![tenant, number, limit])?;
    let (mut targets, mut read, mut last) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        let (tenant, number) = (TenantNo(row.get("tenant_no")?), row.get("number")?);
        read += 1;
        last = Some((tenant, number));
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
    }
    Ok(StaleTargets { targets, next: last.filter(|_| read == limit) })
}
