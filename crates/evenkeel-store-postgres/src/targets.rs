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
use crate::connection::Connection;
use crate::error::{Failure, Tried};
use crate::rows::{count, get, maybe_time, micros, time};

#[async_trait]
impl TargetStore for PostgresStore {
    async fn create_target(
        &self,
        scope: &Scope,
        target: NewTarget,
        now: Now,
    ) -> Result<CreatedTarget, StoreError> {
        self.api
            .run((scope.tenant.0, target, micros(now.literal())), |connection, args| async move {
                let (tenant, new, now) = &*args;
                connection.transaction(make(&connection, *tenant, new, *now)).await
            })
            .await
    }

    async fn get_targets(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<Target>>, StoreError> {
        self.api
            .run((scope.tenant.0, numbers.to_vec()), |connection, args| async move {
                let (tenant, numbers) = &*args;
                let found = find(&connection, *tenant, numbers).await?;
                Ok(numbers.iter().map(|number| found.get(number).cloned()).collect())
            })
            .await
    }

    async fn target_urls(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<HashMap<i64, Option<String>>, StoreError> {
        self.api
            .run((scope.tenant.0, numbers.to_vec()), |connection, args| async move {
                let (tenant, numbers) = &*args;
                let sql = sql!("target_urls");
                let rows = connection.rows(sql, &[tenant, numbers]).await?;
                rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
            })
            .await
    }

    async fn list_targets(
        &self,
        scope: &Scope,
        page: PageRequest<i64>,
    ) -> Result<Page<Target, i64>, StoreError> {
        self.api
            .run((scope.tenant.0, page), |connection, args| async move {
                let (tenant, page) = *args;
                list(&connection, tenant, page).await
            })
            .await
    }

    async fn change_target(
        &self,
        scope: &Scope,
        number: i64,
        if_generation: Option<i32>,
        fields: TargetFields,
        now: Now,
    ) -> Result<ChangedTarget, StoreError> {
        let args = (scope.tenant.0, number, if_generation, fields, micros(now.literal()));
        self.api
            .run(args, |connection, args| async move {
                let (tenant, number, if_generation, fields, now) = &*args;
                let which = (*tenant, *number);
                let changed = change(&connection, which, *if_generation, fields, *now);
                match connection.transaction(changed).await {
                    // Another target took the source id in the meantime, so the request is decided
                    // again.
                    Err(failure) if failure.is_taken() => Err(Failure::Again),
                    tried => tried,
                }
            })
            .await
    }

    async fn delete_target(
        &self,
        scope: &Scope,
        number: i64,
        detach: bool,
    ) -> Result<DeletedTarget, StoreError> {
        self.api
            .run((scope.tenant.0, number, detach), |connection, args| async move {
                let (tenant, number, detach) = *args;
                connection.transaction(delete(&connection, tenant, number, detach)).await
            })
            .await
    }

    async fn jobs_of_target(
        &self,
        scope: &Scope,
        number: i64,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<(JobNo, JobId)>, StoreError> {
        let after = after.map_or(0, |after| after.0);
        self.api
            .run((scope.tenant.0, number, after, i64::from(limit)), |connection, args| async move {
                let (tenant, number, after, limit) = &*args;
                let sql = sql!("jobs_of_target");
                let rows = connection.rows(sql, &[tenant, number, after, limit]).await?;
                rows.iter().map(|row| Ok((JobNo(get(row, 0)?), JobId(get(row, 1)?)))).collect()
            })
            .await
    }

    async fn stale_targets(
        &self,
        before: Timestamp,
        after: Option<(TenantNo, i64)>,
        limit: u32,
    ) -> Result<StaleTargets, StoreError> {
        let (tenant, number) = after.map_or((0, 0), |(tenant, number)| (tenant.0, number));
        self.api
            .run((tenant, number, i64::from(limit)), move |connection, args| async move {
                let (tenant, number, limit) = &*args;
                let sql = sql!("stale_targets");
                let rows = connection.rows(sql, &[tenant, number, limit]).await?;
                let is_full = i64::try_from(rows.len()).is_ok_and(|looked| looked == *limit);
                let next = rows.last().filter(|_| is_full);
                let next = next.map(cursor).transpose()?;
                let targets = rows.iter().map(|row| stale(row, before));
                let targets = targets.filter_map(Result::transpose).collect::<Tried<_>>()?;
                Ok(StaleTargets { targets, next })
            })
            .await
    }
}

async fn make(
    connection: &Connection,
    tenant: i32,
    new: &NewTarget,
    now: Option<i64>,
) -> Tried<CreatedTarget> {
    let TargetFields { source_id, name, url } = &new.fields;
    let sql = sql!("create_target_number");
    let next: i64 = get(&connection.row(sql, &[&tenant]).await?, 0)?;
    let (number, after) = match new.number {
        Some(chosen) => (chosen, None),
        None => {
            let sql = sql!("create_target_free");
            let free: i64 = get(&connection.row(sql, &[&tenant, &next]).await?, 0)?;
            (free, Some(free + 1))
        }
    };
    let sql = sql!("create_target");
    let made =
        connection.change(sql, &[&now, &tenant, &number, source_id, name, url, &after]).await?;
    if made > 0 {
        return Ok(CreatedTarget::Created(known(connection, tenant, number).await?));
    }
    let sql = sql!("create_target_find");
    match connection.maybe_row(sql, &[&tenant, &number, source_id]).await? {
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
    let targets = rows.iter().map(|row| read_target(row).map(|target| (target.number, target)));
    targets.collect()
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

async fn list(
    connection: &Connection,
    tenant: i32,
    page: PageRequest<i64>,
) -> Tried<Page<Target, i64>> {
    let (after, limit) = (page.after.unwrap_or(0), page.limit as usize);
    // One extra row shows whether there is another page.
    let (wanted, offset) = (i64::from(page.limit) + 1, i64::from(page.offset));
    let sql = sql!("list_targets");
    let rows = connection.rows(sql, &[&tenant, &after, &wanted, &offset]).await?;
    let items = rows.iter().take(limit).map(read_target).collect::<Tried<Vec<Target>>>()?;
    let next = items.last().filter(|_| rows.len() > limit).map(|target| target.number);
    let sql = sql!("list_targets_count");
    let total = count(&connection.row(sql, &[&tenant]).await?, 0)?;
    Ok(Page { items, total, total_is_estimate: false, next })
}

async fn change(
    connection: &Connection,
    (tenant, number): (i32, i64),
    if_generation: Option<i32>,
    fields: &TargetFields,
    now: Option<i64>,
) -> Tried<ChangedTarget> {
    let sql = sql!("change_target_lock");
    let Some(row) = connection.maybe_row(sql, &[&tenant, &number]).await? else {
        return Ok(ChangedTarget::NotFound);
    };
    let generation: i32 = get(&row, 0)?;
    if if_generation.is_some_and(|wanted| wanted != generation) {
        return Ok(ChangedTarget::Stale(known(connection, tenant, number).await?));
    }
    let TargetFields { source_id, name, url } = fields;
    let sql = sql!("change_target_source");
    if let Some(row) = connection.maybe_row(sql, &[&tenant, source_id, &number]).await? {
        return Ok(ChangedTarget::SourceTaken(get(&row, 0)?));
    }
    let sql = sql!("change_target");
    connection.change(sql, &[&tenant, &number, source_id, name, url, &now]).await?;
    Ok(ChangedTarget::Done(known(connection, tenant, number).await?))
}

async fn delete(
    connection: &Connection,
    tenant: i32,
    number: i64,
    detach: bool,
) -> Tried<DeletedTarget> {
    let sql = sql!("delete_target_lock");
    connection.maybe_row(sql, &[&tenant]).await?;
    let Some(target) = find(connection, tenant, &[number]).await?.remove(&number) else {
        return Ok(DeletedTarget::NotFound);
    };
    if target.jobs > 0 && !detach {
        return Ok(DeletedTarget::InUse(target.jobs));
    }
    let sql = sql!("delete_target_detach");
    connection.change(sql, &[&tenant, &number]).await?;
    let sql = sql!("delete_target");
    connection.change(sql, &[&tenant, &number]).await?;
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
