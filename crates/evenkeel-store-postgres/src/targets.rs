//! Targets, the data sources or websites that jobs work on.

use std::collections::HashMap;

use async_trait::async_trait;
use evenkeel_core::{JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    ChangedTarget, CreatedTarget, DeletedTarget, NewTarget, Now, Page, PageRequest, Scope,
    StaleTarget, StaleTargets, StoreError, Target, TargetFields, TargetStore, is_stale,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::{Failure, Tried};
use crate::jobs::search_index;
use crate::rows::{count, get, maybe_time, micros, page_limit, page_of, time};

#[async_trait]
impl TargetStore for PostgresStore {
    async fn create_target(
        &self,
        scope: &Scope,
        target: NewTarget,
        now: Now,
    ) -> Result<CreatedTarget, StoreError> {
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        transaction!(self.api, target, |connection, new| make(connection, tenant, new, now).await)
    }

    async fn get_targets(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<Target>>, StoreError> {
        let tenant = scope.tenant.0;
        run!(self.api, numbers.to_vec(), |connection, numbers| {
            let found = find(connection, tenant, numbers).await?;
            Ok(numbers.iter().map(|number| found.get(number).cloned()).collect())
        })
    }

    async fn target_urls(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<HashMap<i64, Option<String>>, StoreError> {
        let params = params![scope.tenant.0, numbers.to_vec()];
        let read = |row: &Row| Ok((get(row, 0)?, get(row, 1)?));
        Ok(self.api.rows(sql!("target_urls"), params, read).await?.into_iter().collect())
    }

    async fn list_targets(
        &self,
        scope: &Scope,
        page: PageRequest<i64>,
    ) -> Result<Page<Target, i64>, StoreError> {
        let tenant = scope.tenant.0;
        run!(self.api, |connection| {
            let after = page.after.unwrap_or(0);
            let (limit, offset) = (page_limit(&page), i64::from(page.offset));
            let params: Params<'_> = &[&tenant, &after, &limit, &offset];
            let rows = connection.rows(sql!("list_targets"), params).await?;
            let counted = connection.row(sql!("list_targets_count"), &[&tenant]).await?;
            let total = (count(&counted, 0)?, u64::MAX);
            page_of(&page, &rows, read_target, |target| target.number, total)
        })
    }

    async fn change_target(
        &self,
        scope: &Scope,
        number: i64,
        if_generation: Option<i32>,
        fields: TargetFields,
        now: Now,
    ) -> Result<ChangedTarget, StoreError> {
        let (which, now) = ((scope.tenant.0, number), micros(now.literal()));
        run!(self.api, fields, |connection, fields| {
            let changed = change(connection, which, if_generation, fields, now);
            match connection.transaction(changed).await {
                // Another target took the source id in the meantime, so the request is decided
                // again.
                Err(failure) if failure.is_taken() => Err(Failure::Again),
                tried => tried,
            }
        })
    }

    async fn delete_target(
        &self,
        scope: &Scope,
        number: i64,
        detach: bool,
    ) -> Result<DeletedTarget, StoreError> {
        let tenant = scope.tenant.0;
        transaction!(self.api, |connection| delete(connection, tenant, number, detach).await)
    }

    async fn jobs_of_target(
        &self,
        scope: &Scope,
        number: i64,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<(JobNo, JobId)>, StoreError> {
        let after = after.map_or(0, |after| after.0);
        let params = params![scope.tenant.0, number, after, i64::from(limit)];
        let read = |row: &Row| Ok((JobNo(get(row, 0)?), JobId(get(row, 1)?)));
        self.api.rows(sql!("jobs_of_target"), params, read).await
    }

    async fn stale_targets(
        &self,
        before: Timestamp,
        after: Option<(TenantNo, i64)>,
        limit: u32,
    ) -> Result<StaleTargets, StoreError> {
        let (tenant, number) = after.map_or((0, 0), |(tenant, number)| (tenant.0, number));
        run!(self.api, |connection| {
            let params: Params<'_> = &[&tenant, &number, &i64::from(limit)];
            let rows = connection.rows(sql!("stale_targets"), params).await?;
            let is_full = rows.len() == limit as usize;
            let next = rows.last().filter(|_| is_full).map(cursor).transpose()?;
            let targets = rows.iter().map(|row| stale(row, before));
            let targets = targets.filter_map(Result::transpose).collect::<Tried<_>>()?;
            Ok(StaleTargets { targets, next })
        })
    }
}

async fn make(
    connection: &Connection,
    tenant: i32,
    new: &NewTarget,
    now: Option<i64>,
) -> Tried<CreatedTarget> {
    let TargetFields { source_id, name, url } = &new.fields;
    let next: i64 = get(&connection.row(sql!("create_target_number"), &[&tenant]).await?, 0)?;
    let (number, after) = match new.number {
        Some(chosen) => (chosen, None),
        None => {
            let row = connection.row(sql!("create_target_free"), &[&tenant, &next]).await?;
            let free: i64 = get(&row, 0)?;
            (free, Some(free + 1))
        }
    };
    let params: Params<'_> = &[&now, &tenant, &number, source_id, name, url, &after];
    if connection.change(sql!("create_target"), params).await? > 0 {
        return Ok(CreatedTarget::Created(known(connection, tenant, number).await?));
    }
    let params: Params<'_> = &[&tenant, &number, source_id];
    match connection.maybe_row(sql!("create_target_find"), params).await? {
        Some(row) => Ok(CreatedTarget::Exists(known(connection, tenant, get(&row, 0)?).await?)),
        // The target that had the same source id was deleted in the meantime.
        None => Err(Failure::Again),
    }
}

async fn find(
    connection: &Connection,
    tenant: i32,
    numbers: &[i64],
) -> Tried<HashMap<i64, Target>> {
    let rows = connection.rows(sql!("get_targets"), &[&tenant, &numbers]).await?;
    rows.iter().map(|row| read_target(row).map(|target| (target.number, target))).collect()
}

/// Returns a target that must exist.
async fn known(connection: &Connection, tenant: i32, number: i64) -> Tried<Target> {
    find(connection, tenant, &[number]).await?.remove(&number).ok_or(Failure::Again)
}

fn read_target(row: &Row) -> Tried<Target> {
    Ok(Target {
        number: get(row, "number")?,
        fields: TargetFields {
            source_id: get(row, "source_id")?,
            name: get(row, "name")?,
            url: get(row, "url")?,
        },
        generation: get(row, "generation")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        last_success_at: maybe_time(row, "last_success_at")?,
        jobs: count(row, "jobs")?,
    })
}

async fn change(
    connection: &Connection,
    (tenant, number): (i32, i64),
    if_generation: Option<i32>,
    fields: &TargetFields,
    now: Option<i64>,
) -> Tried<ChangedTarget> {
    let locked = connection.maybe_row(sql!("change_target_lock"), &[&tenant, &number]).await?;
    let Some(row) = locked else { return Ok(ChangedTarget::NotFound) };
    let (generation, name_before): (i32, Option<String>) = (get(&row, 0)?, get(&row, 1)?);
    if if_generation.is_some_and(|wanted| wanted != generation) {
        return Ok(ChangedTarget::Stale(known(connection, tenant, number).await?));
    }
    let TargetFields { source_id, name, url } = fields;
    let params: Params<'_> = &[&tenant, source_id, &number];
    if let Some(row) = connection.maybe_row(sql!("change_target_source"), params).await? {
        return Ok(ChangedTarget::SourceTaken(get(&row, 0)?));
    }
    let params: Params<'_> = &[&tenant, &number, source_id, name, url, &now];
    connection.change(sql!("change_target"), params).await?;
    if *name != name_before {
        search_index::add_target(connection, tenant, number).await?;
    }
    Ok(ChangedTarget::Done(known(connection, tenant, number).await?))
}

async fn delete(
    connection: &Connection,
    tenant: i32,
    number: i64,
    detach: bool,
) -> Tried<DeletedTarget> {
    connection.maybe_row(sql!("delete_target_lock"), &[&tenant]).await?;
    let Some(target) = find(connection, tenant, &[number]).await?.remove(&number) else {
        return Ok(DeletedTarget::NotFound);
    };
    if target.jobs > 0 && !detach {
        return Ok(DeletedTarget::InUse(target.jobs));
    }
    connection.change(sql!("delete_target_detach"), &[&tenant, &number]).await?;
    connection.change(sql!("delete_target"), &[&tenant, &number]).await?;
    Ok(DeletedTarget::Done { detached: target.jobs })
}

fn cursor(row: &Row) -> Tried<(TenantNo, i64)> {
    Ok((TenantNo(get(row, "tenant_no")?), get(row, "number")?))
}

/// Returns the target if its last success is before `before`.
fn stale(row: &Row, before: Timestamp) -> Tried<Option<StaleTarget>> {
    let (tenant, number) = cursor(row)?;
    let last_success_at = maybe_time(row, "last_success_at")?;
    if !is_stale(last_success_at, time(row, "created_at")?, before) {
        return Ok(None);
    }
    Ok(Some(StaleTarget {
        tenant,
        number,
        last_success_at,
        job: get::<Option<Uuid>>(row, "job")?.map(JobId),
        next_at: maybe_time(row, "next_at")?,
        is_live: get(row, "is_live")?,
    }))
}
