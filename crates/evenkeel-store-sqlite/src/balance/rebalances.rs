//! Stores rebalances from the plan to the result, and balance scores.

use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    BeganRebalance, Page, PageRequest, Rebalance, RebalancePart, RebalanceState, SavedScore,
    StoreError, from_code, sql_time,
};
use rusqlite::{Connection, Row};
use uuid::Uuid;

use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::{count, page_of};

pub(super) fn plan(
    connection: &Connection,
    tenant: TenantNo,
    plan: &Rebalance,
    parts: &[Vec<u8>],
) -> Answer<()> {
    let row: Params<'_> = &[
        &plan.id, &tenant, &plan.state, &plan.undoes, &plan.undone_by, &plan.created_by,
        &plan.created_at, &plan.touched_at, &plan.ended_at, &plan.parts, &plan.parts_done,
        &plan.planned, &plan.moved, &plan.changed, &plan.skipped, &plan.summary,
    ];
    connection.run(sql!("plan_rebalance"), row)?;
    let no = connection.last_insert_rowid();
    let mut statement = connection.prepare_cached(sql!("plan_rebalance_parts"))?;
    for (part, moves) in parts.iter().enumerate() {
        statement.run(&[&no, &part, moves])?;
    }
    Ok(())
}

pub(super) fn get(db: &Connection, tenant: TenantNo, id: Uuid) -> Answer<Option<Rebalance>> {
    db.maybe_row(sql!("get_rebalance"), &[&tenant, &id], rebalance_from)
}

pub(super) fn part(
    db: &Connection,
    tenant: TenantNo,
    id: Uuid,
    part: u32,
) -> Answer<Option<RebalancePart>> {
    db.maybe_row(sql!("rebalance_part"), &[&tenant, &id, &part], |row| {
        let made: Option<Vec<u8>> = row.get(1)?;
        let made = made.map(|made| made.into_iter().map(|byte| byte != 0).collect());
        Ok(RebalancePart { moves: row.get(0)?, made })
    })
}

pub(super) fn list(
    db: &Connection,
    tenant: TenantNo,
    page: PageRequest<(Timestamp, Uuid)>,
) -> Answer<Page<Rebalance, (Timestamp, Uuid)>> {
    let (at, id) = page.after.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.as_micros(), id));
    let after: Params<'_> = &[&tenant, &at, &id, &(i64::from(page.limit) + 1), &page.offset];
    let items = db.rows(sql!("list_rebalances"), after, rebalance_from)?;
    let total = db.value(sql!("list_rebalances_count"), &[&tenant])?;
    Ok(page_of(items, page.limit, (total, false), |item| (item.created_at, item.id)))
}

pub(super) fn begin(
    connection: &Connection,
    tenant: TenantNo,
    id: Uuid,
    silent_before: Timestamp,
    now: Timestamp,
) -> Answer<Option<BeganRebalance>> {
    let Some(rebalance) = get(connection, tenant, id)? else { return Ok(None) };
    let other: Option<Vec<u8>> =
        connection.maybe_value(sql!("begin_rebalance_other"), &[&tenant, &id, &silent_before])?;
    if let Some(other) = other {
        return Ok(get(connection, tenant, uuid_from(&other)?)?.map(BeganRebalance::Other));
    }
    if !rebalance.may_begin(silent_before) {
        return Ok(Some(BeganRebalance::Other(rebalance)));
    }
    if let Some(other) = undone_by_another(connection, tenant, &rebalance)? {
        return Ok(Some(BeganRebalance::Other(other)));
    }
    // Other rebalances of the tenant have made no progress recently, so they are stopped.
    let which: Params<'_> = &[&tenant, &id, &now];
    connection.run(sql!("begin_rebalance_stop"), which)?;
    connection.run(sql!("begin_rebalance"), which)?;
    if let Some(undone) = rebalance.undoes {
        connection.run(sql!("begin_rebalance_undo"), &[&tenant, &undone, &id])?;
    }
    Ok(get(connection, tenant, id)?.map(BeganRebalance::Now))
}

/// Returns another rebalance, if it has already undone all moves that `rebalance` is to undo.
fn undone_by_another(
    connection: &Connection,
    tenant: TenantNo,
    rebalance: &Rebalance,
) -> Answer<Option<Rebalance>> {
    let Some(undoes) = rebalance.undoes else { return Ok(None) };
    let undone_by = get(connection, tenant, undoes)?.and_then(|undone| undone.undone_by);
    let Some(by) = undone_by.filter(|by| *by != rebalance.id) else { return Ok(None) };
    Ok(get(connection, tenant, by)?.filter(Rebalance::is_complete))
}

pub(super) fn end(
    connection: &Connection,
    tenant: TenantNo,
    id: Uuid,
    state: RebalanceState,
    now: Timestamp,
) -> Answer<Option<Rebalance>> {
    if matches!(state, RebalanceState::Done | RebalanceState::Stopped) {
        connection.run(sql!("end_rebalance"), &[&tenant, &id, &state, &now])?;
    }
    get(connection, tenant, id)
}

pub(super) fn save_score(
    connection: &Connection,
    tenant: TenantNo,
    score: SavedScore,
) -> Answer<bool> {
    let SavedScore { hour, score, next_score, cost_score, peak, mean, jobs } = score;
    let row: Params<'_> = &[&tenant, &hour, &score, &next_score, &cost_score, &peak, &mean, &jobs];
    Ok(connection.change(sql!("save_score"), row)? == 1)
}

pub(super) fn scores(
    db: &Connection,
    tenant: TenantNo,
    from: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Answer<Vec<SavedScore>> {
    db.rows(sql!("scores"), &[&tenant, &from, &until, &limit], |row| {
        Ok(SavedScore {
            hour: Timestamp::from_micros(row.get("hour")?),
            score: row.get("score")?,
            next_score: row.get("next_score")?,
            cost_score: row.get("cost_score")?,
            peak: row.get("peak")?,
            mean: row.get("mean")?,
            jobs: count(row, "jobs")?,
        })
    })
}

fn rebalance_from(row: &Row<'_>) -> Answer<Rebalance> {
    let id: Vec<u8> = row.get("id")?;
    let id = uuid_from(&id)?;
    let what = format_args!("rebalance {id}");
    let state = from_code(&RebalanceState::ALL, row.get("state")?, what, "state")?;
    let other = |column| -> Answer<Option<Uuid>> {
        let bytes: Option<Vec<u8>> = row.get(column)?;
        bytes.map(|bytes| uuid_from(&bytes)).transpose()
    };
    Ok(Rebalance {
        id,
        state,
        undoes: other("undoes")?,
        undone_by: other("undone_by")?,
        created_by: row.get("created_by")?,
        created_at: Timestamp::from_micros(row.get("created_at")?),
        touched_at: sql_time(row.get("touched_at")?),
        ended_at: sql_time(row.get("ended_at")?),
        parts: row.get("parts")?,
        parts_done: row.get("parts_done")?,
        planned: count(row, "planned")?,
        moved: count(row, "moved")?,
        changed: count(row, "changed")?,
        skipped: count(row, "skipped")?,
        summary: row.get("summary")?,
    })
}

fn uuid_from(bytes: &[u8]) -> Answer<Uuid> {
    let read = Uuid::from_slice(bytes);
    Ok(read.map_err(|cause| StoreError::corrupt("rebalance", "id", cause))?)
}
