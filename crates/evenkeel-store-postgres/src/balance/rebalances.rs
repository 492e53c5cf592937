//! Stores rebalances from the plan to the result.

use evenkeel_core::Timestamp;
use evenkeel_store::{
    BeganRebalance, Now, Page, PageRequest, Rebalance, RebalancePart, RebalanceState, Scope,
    StoreError, from_code,
};
use futures::future::try_join;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get, maybe_time, micros, time};

/// Number of parts of a rebalance plan that are sent together, about 1.5 MB.
const SENT_MAX: usize = 64;

pub(super) async fn plan_rebalance(
    store: &PostgresStore,
    scope: &Scope,
    rebalance: Rebalance,
    parts: Vec<Vec<u8>>,
) -> Result<(), StoreError> {
    store
        .api
        .run((scope.tenant.0, rebalance, parts), |connection, args| async move {
            let (tenant, rebalance, parts) = &*args;
            connection.transaction(keep(&connection, *tenant, rebalance, parts)).await
        })
        .await
}

async fn keep(
    connection: &Connection,
    tenant: i32,
    plan: &Rebalance,
    parts: &[Vec<u8>],
) -> Tried<()> {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    connection
        .change(
            sql!("plan_rebalance"),
            &[
                &plan.id,
                &tenant,
                &(plan.state as i16),
                &plan.undoes,
                &plan.undone_by,
                &plan.created_by,
                &plan.created_at.as_micros(),
                &micros(plan.touched_at),
                &micros(plan.ended_at),
                &part_number(plan.parts),
                &part_number(plan.parts_done),
                &whole(plan.planned),
                &whole(plan.moved),
                &whole(plan.changed),
                &whole(plan.skipped),
                &plan.summary,
            ],
        )
        .await?;
    for (nth, sent) in parts.chunks(SENT_MAX).enumerate() {
        let first = i32::try_from(nth * SENT_MAX).unwrap_or(i32::MAX);
        let sql = sql!("plan_rebalance_parts");
        connection.change(sql, &[&plan.id, &first, &sent]).await?;
    }
    Ok(())
}

pub(super) fn part_number(part: u32) -> i32 {
    i32::try_from(part).unwrap_or(i32::MAX)
}

pub(super) async fn get_rebalance(
    store: &PostgresStore,
    scope: &Scope,
    id: Uuid,
) -> Result<Option<Rebalance>, StoreError> {
    store
        .api
        .run((scope.tenant.0, id), |connection, args| async move {
            find(&connection, args.0, args.1).await
        })
        .await
}

async fn find(connection: &Connection, tenant: i32, id: Uuid) -> Tried<Option<Rebalance>> {
    let sql = sql!("get_rebalance");
    connection.maybe_row(sql, &[&id, &tenant]).await?.as_ref().map(read_rebalance).transpose()
}

fn read_rebalance(row: &Row) -> Tried<Rebalance> {
    let id: Uuid = get(row, "id")?;
    let state = get(row, "state")?;
    let part = |column| get::<i32>(row, column).map(|part| part.max(0).cast_unsigned());
    Ok(Rebalance {
        id,
        state: from_code(&RebalanceState::ALL, state, format_args!("rebalance {id}"), "state")?,
        undoes: get(row, "undoes")?,
        undone_by: get(row, "undone_by")?,
        created_by: get(row, "created_by")?,
        created_at: time(row, "created_at")?,
        touched_at: maybe_time(row, "touched_at")?,
        ended_at: maybe_time(row, "ended_at")?,
        parts: part("parts")?,
        parts_done: part("parts_done")?,
        planned: count(row, "planned")?,
        moved: count(row, "moved")?,
        changed: count(row, "changed")?,
        skipped: count(row, "skipped")?,
        summary: get(row, "summary")?,
    })
}

pub(super) async fn rebalance_part(
    store: &PostgresStore,
    scope: &Scope,
    id: Uuid,
    part: u32,
) -> Result<Option<RebalancePart>, StoreError> {
    store
        .api
        .run((scope.tenant.0, id, part_number(part)), |connection, args| async move {
            let (tenant, id, part) = &*args;
            let sql = sql!("rebalance_part");
            let row = connection.maybe_row(sql, &[id, tenant, part]).await?;
            row.map(|row| Ok(RebalancePart { moves: get(&row, 0)?, made: get(&row, 1)? }))
                .transpose()
        })
        .await
}

pub(super) async fn list_rebalances(
    store: &PostgresStore,
    scope: &Scope,
    page: PageRequest<(Timestamp, Uuid)>,
) -> Result<Page<Rebalance, (Timestamp, Uuid)>, StoreError> {
    store
        .api
        .run((scope.tenant.0, page), |connection, args| async move {
            let (tenant, page) = &*args;
            let (before, id) =
                page.after.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.as_micros(), id));
            // One extra row shows whether there is another page.
            let (limit, offset) = (i64::from(page.limit) + 1, i64::from(page.offset));
            let (rows, counted) = try_join(
                connection.rows(sql!("list_rebalances"), &[tenant, &before, &id, &limit, &offset]),
                connection.row(sql!("list_rebalances_count"), &[tenant]),
            )
            .await?;
            let mut items = rows.iter().map(read_rebalance).collect::<Tried<Vec<Rebalance>>>()?;
            let is_last = items.len() <= page.limit as usize;
            items.truncate(page.limit as usize);
            let last = items.last().map(|rebalance| (rebalance.created_at, rebalance.id));
            let total = count(&counted, 0)?;
            Ok(Page { items, total, total_is_estimate: false, next: last.filter(|_| !is_last) })
        })
        .await
}

struct Begin {
    tenant: i32,
    id: Uuid,
    silent_before: Timestamp,
    now: Option<i64>,
}

pub(super) async fn begin_rebalance(
    store: &PostgresStore,
    scope: &Scope,
    id: Uuid,
    silent_before: Timestamp,
    now: Now,
) -> Result<Option<BeganRebalance>, StoreError> {
    let args = Begin { tenant: scope.tenant.0, id, silent_before, now: micros(now.literal()) };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(begin(&connection, &args)).await
        })
        .await
}

async fn begin(connection: &Connection, args: &Begin) -> Tried<Option<BeganRebalance>> {
    let Begin { tenant, id, silent_before, now } = args;
    let lock = sql!("begin_rebalance_lock");
    let now: i64 = get(&connection.row(lock, &[tenant, now]).await?, 0)?;
    // The statement waits for transactions that move jobs of a rebalance or stop a rebalance.
    let sql = sql!("begin_rebalance_find");
    let rows = connection.rows(sql, &[tenant, id]).await?;
    let found = rows.iter().map(read_rebalance).collect::<Tried<Vec<Rebalance>>>()?;
    let Some(wanted) = found.iter().find(|rebalance| rebalance.id == *id) else { return Ok(None) };
    let is_running =
        |rebalance: &&Rebalance| rebalance.id != *id && !rebalance.is_silent(*silent_before);
    if let Some(other) = found.iter().find(is_running) {
        return Ok(Some(BeganRebalance::Other(other.clone())));
    }
    if !wanted.may_begin(*silent_before) {
        return Ok(Some(BeganRebalance::Other(wanted.clone())));
    }
    if let Some(other) = undone_by_another(connection, *tenant, wanted).await? {
        return Ok(Some(BeganRebalance::Other(other)));
    }
    let silent: Vec<Uuid> =
        found.iter().map(|rebalance| rebalance.id).filter(|rebalance| rebalance != id).collect();
    let sql = sql!("begin_rebalance");
    connection.change(sql, &[tenant, id, &silent, &wanted.undoes, &now]).await?;
    Ok(find(connection, *tenant, *id).await?.map(BeganRebalance::Now))
}

/// Returns another rebalance that has already undone all moves that `wanted` is to undo. Only the
/// transaction that holds the tenant's rebalance lock marks rebalances as undone.
async fn undone_by_another(
    connection: &Connection,
    tenant: i32,
    wanted: &Rebalance,
) -> Tried<Option<Rebalance>> {
    let Some(undoes) = wanted.undoes else { return Ok(None) };
    let undone = find(connection, tenant, undoes).await?;
    let undone_by = undone.and_then(|undone| undone.undone_by);
    let Some(by) = undone_by.filter(|by| *by != wanted.id) else { return Ok(None) };
    Ok(find(connection, tenant, by).await?.filter(Rebalance::is_complete))
}

pub(super) async fn end_rebalance(
    store: &PostgresStore,
    scope: &Scope,
    id: Uuid,
    state: RebalanceState,
    now: Now,
) -> Result<Option<Rebalance>, StoreError> {
    let args = (scope.tenant.0, id, state, micros(now.literal()));
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, id, state, now) = &*args;
            if matches!(state, RebalanceState::Done | RebalanceState::Stopped) {
                let sql = sql!("end_rebalance");
                connection.change(sql, &[id, tenant, &(*state as i16), now]).await?;
            }
            find(&connection, *tenant, *id).await
        })
        .await
}
