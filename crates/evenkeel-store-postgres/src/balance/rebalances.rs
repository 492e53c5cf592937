//! Stores rebalances from the plan to the result.

use evenkeel_core::Timestamp;
use evenkeel_store::{
    BeganRebalance, Page, PageRequest, Rebalance, RebalancePart, RebalanceState, from_code,
};
use futures::future::try_join;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{count, get, maybe_time, micros, page_limit, page_of, time};

/// Number of parts of a rebalance plan that are sent together, about 1.5 MB.
const SENT_MAX: usize = 64;

pub(super) async fn plan_rebalance(
    connection: &Connection,
    tenant: i32,
    plan: &Rebalance,
    parts: &[Vec<u8>],
) -> Tried<()> {
    let [planned, moved, changed, skipped] = [plan.planned, plan.moved, plan.changed, plan.skipped]
        .map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let (state, created_at) = (plan.state as i16, plan.created_at.as_micros());
    let (touched_at, ended_at) = (micros(plan.touched_at), micros(plan.ended_at));
    let (whole, done) = (part_number(plan.parts), part_number(plan.parts_done));
    let params: Params<'_> = &[
        &plan.id, &tenant, &state, &plan.undoes, &plan.undone_by, &plan.created_by, &created_at,
        &touched_at, &ended_at, &whole, &done, &planned, &moved, &changed, &skipped, &plan.summary,
    ];
    connection.change(sql!("plan_rebalance"), params).await?;
    for (nth, sent) in parts.chunks(SENT_MAX).enumerate() {
        let first = i32::try_from(nth * SENT_MAX).unwrap_or(i32::MAX);
        connection.change(sql!("plan_rebalance_parts"), &[&plan.id, &first, &sent]).await?;
    }
    Ok(())
}

pub(super) fn part_number(part: u32) -> i32 {
    i32::try_from(part).unwrap_or(i32::MAX)
}

async fn find(connection: &Connection, tenant: i32, id: Uuid) -> Tried<Option<Rebalance>> {
    let row = connection.maybe_row(sql!("get_rebalance"), &[&id, &tenant]).await?;
    row.as_ref().map(read_rebalance).transpose()
}

pub(super) fn read_rebalance(row: &Row) -> Tried<Rebalance> {
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

pub(super) fn read_part(row: &Row) -> Tried<RebalancePart> {
    Ok(RebalancePart { moves: get(row, 0)?, made: get(row, 1)? })
}

pub(super) async fn list_rebalances(
    connection: &Connection,
    tenant: i32,
    page: PageRequest<(Timestamp, Uuid)>,
) -> Tried<Page<Rebalance, (Timestamp, Uuid)>> {
    let (before, id) = page.after.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.as_micros(), id));
    let (limit, offset) = (page_limit(&page), i64::from(page.offset));
    let (rows, counted) = try_join(
        connection.rows(sql!("list_rebalances"), &[&tenant, &before, &id, &limit, &offset]),
        connection.row(sql!("list_rebalances_count"), &[&tenant]),
    )
    .await?;
    let cursor = |rebalance: &Rebalance| (rebalance.created_at, rebalance.id);
    page_of(&page, &rows, read_rebalance, cursor, (count(&counted, 0)?, u64::MAX))
}

pub(super) async fn begin_rebalance(
    connection: &Connection,
    tenant: i32,
    id: Uuid,
    silent_before: Timestamp,
    now: Option<i64>,
) -> Tried<Option<BeganRebalance>> {
    let row = connection.row(sql!("begin_rebalance_lock"), &[&tenant, &now]).await?;
    let now: i64 = get(&row, 0)?;
    // The statement waits for transactions that move jobs of a rebalance or stop a rebalance.
    let rows = connection.rows(sql!("begin_rebalance_find"), &[&tenant, &id]).await?;
    let found = rows.iter().map(read_rebalance).collect::<Tried<Vec<Rebalance>>>()?;
    let Some(wanted) = found.iter().find(|rebalance| rebalance.id == id) else { return Ok(None) };
    let is_running =
        |rebalance: &&Rebalance| rebalance.id != id && !rebalance.is_silent(silent_before);
    if let Some(other) = found.iter().find(is_running) {
        return Ok(Some(BeganRebalance::Other(other.clone())));
    }
    if !wanted.may_begin(silent_before) {
        return Ok(Some(BeganRebalance::Other(wanted.clone())));
    }
    if let Some(other) = undone_by_another(connection, tenant, wanted).await? {
        return Ok(Some(BeganRebalance::Other(other)));
    }
    let others = found.iter().map(|rebalance| rebalance.id);
    let silent: Vec<Uuid> = others.filter(|other| *other != id).collect();
    let params: Params<'_> = &[&tenant, &id, &silent, &wanted.undoes, &now];
    connection.change(sql!("begin_rebalance"), params).await?;
    Ok(find(connection, tenant, id).await?.map(BeganRebalance::Now))
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
    connection: &Connection,
    tenant: i32,
    id: Uuid,
    state: RebalanceState,
    now: Option<i64>,
) -> Tried<Option<Rebalance>> {
    if matches!(state, RebalanceState::Done | RebalanceState::Stopped) {
        let params: Params<'_> = &[&id, &tenant, &(state as i16), &now];
        connection.change(sql!("end_rebalance"), params).await?;
    }
    find(connection, tenant, id).await
}
