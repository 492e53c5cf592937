//! Stores rebalances from the plan to the result, and balance scores.

use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    BeganRebalance, Now, Page, PageRequest, Rebalance, RebalancePart, RebalanceState, SavedScore,
    StoreError, from_code, sql_time,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use crate::connection::clock::resolve;
use crate::error::Answer;
use crate::rows::{collect, count, micros, page_of};

pub(super) fn plan(
    connection: &Connection,
    tenant: TenantNo,
    plan: &Rebalance,
    parts: &[Vec<u8>],
) -> Answer<()> {
    connection.prepare_cached(sql!("plan_rebalance"))?.execute(params![
        plan.id.as_bytes(),
        tenant.0,
        plan.state as u8,
        plan.undoes.as_ref().map(Uuid::as_bytes),
        plan.undone_by.as_ref().map(Uuid::as_bytes),
        plan.created_by,
        plan.created_at.as_micros(),
        micros(plan.touched_at),
        micros(plan.ended_at),
        plan.parts,
        plan.parts_done,
        stored(plan.planned),
        stored(plan.moved),
        stored(plan.changed),
        stored(plan.skipped),
        plan.summary,
    ])?;
    let no = connection.last_insert_rowid();
    let mut statement = connection.prepare_cached(sql!("plan_rebalance_parts"))?;
    for (part, moves) in parts.iter().enumerate() {
        statement.execute(params![no, part as i64, moves])?;
    }
    Ok(())
}

pub(super) fn get(db: &Connection, tenant: TenantNo, id: Uuid) -> Answer<Option<Rebalance>> {
    let mut statement = db.prepare_cached(sql!("get_rebalance"))?;
    let mut rows = statement.query(params![tenant.0, id.as_bytes()])?;
    rows.next()?.map(rebalance_from).transpose()
}

pub(super) fn part(
    db: &Connection,
    tenant: TenantNo,
    id: Uuid,
    part: u32,
) -> Answer<Option<RebalancePart>> {
    let found = db
        .prepare_cached(sql!("rebalance_part"))?
        .query_row(params![tenant.0, id.as_bytes(), part], |row| {
            let made: Option<Vec<u8>> = row.get(1)?;
            let made = made.map(|made| made.into_iter().map(|byte| byte != 0).collect());
            Ok(RebalancePart { moves: row.get(0)?, made })
        })
        .optional()?;
    Ok(found)
}

pub(super) fn list(
    db: &Connection,
    tenant: TenantNo,
    page: PageRequest<(Timestamp, Uuid)>,
) -> Answer<Page<Rebalance, (Timestamp, Uuid)>> {
    let (at, id) = page.after.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.as_micros(), id));
    let limit = i64::from(page.limit) + 1;
    let mut statement = db.prepare_cached(sql!("list_rebalances"))?;
    let items = collect(
        statement.query(params![tenant.0, at, id.as_bytes(), limit, page.offset])?,
        rebalance_from,
    )?;
    let total = count(db, sql!("list_rebalances_count"), tenant)?;
    Ok(page_of(items, page.limit, total, |rebalance| (rebalance.created_at, rebalance.id)))
}

pub(super) fn begin(
    connection: &Connection,
    tenant: TenantNo,
    id: Uuid,
    silent_before: Timestamp,
    now: Now,
) -> Answer<Option<BeganRebalance>> {
    let now = resolve(now);
    let Some(rebalance) = get(connection, tenant, id)? else { return Ok(None) };
    let other: Option<Vec<u8>> = connection
        .prepare_cached(sql!("begin_rebalance_other"))?
        .query_row(params![tenant.0, id.as_bytes(), silent_before.as_micros()], |row| row.get(0))
        .optional()?;
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
    let which = params![tenant.0, id.as_bytes(), now.as_micros()];
    connection.prepare_cached(sql!("begin_rebalance_stop"))?.execute(which)?;
    connection.prepare_cached(sql!("begin_rebalance"))?.execute(which)?;
    if let Some(undone) = rebalance.undoes {
        connection.prepare_cached(sql!("begin_rebalance_undo"))?.execute(params![
            tenant.0,
            undone.as_bytes(),
            id.as_bytes()
        ])?;
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
    now: Now,
) -> Answer<Option<Rebalance>> {
    let now = resolve(now);
    if matches!(state, RebalanceState::Done | RebalanceState::Stopped) {
        connection.prepare_cached(sql!("end_rebalance"))?.execute(params![
            tenant.0,
            id.as_bytes(),
            state as u8,
            now.as_micros()
        ])?;
    }
    get(connection, tenant, id)
}

pub(super) fn save_score(
    connection: &Connection,
    tenant: TenantNo,
    score: SavedScore,
) -> Answer<bool> {
    let SavedScore { hour, score, next_score, cost_score, peak, mean, jobs } = score;
    let new = connection.prepare_cached(sql!("save_score"))?.execute(params![
        tenant.0,
        hour.as_micros(),
        score,
        next_score,
        cost_score,
        peak,
        mean,
        stored(jobs)
    ])?;
    Ok(new == 1)
}

pub(super) fn scores(
    db: &Connection,
    tenant: TenantNo,
    from: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Answer<Vec<SavedScore>> {
    let mut statement = db.prepare_cached(sql!("scores"))?;
    let values = params![tenant.0, from.as_micros(), until.as_micros(), limit];
    let found = statement.query_map(values, |row| {
        Ok(SavedScore {
            hour: Timestamp::from_micros(row.get("hour")?),
            score: row.get("score")?,
            next_score: row.get("next_score")?,
            cost_score: row.get("cost_score")?,
            peak: row.get("peak")?,
            mean: row.get("mean")?,
            jobs: row.get::<_, i64>("jobs")?.unsigned_abs(),
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
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
    let number = |column| -> Answer<u64> { Ok(row.get::<_, i64>(column)?.unsigned_abs()) };
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
        planned: number("planned")?,
        moved: number("moved")?,
        changed: number("changed")?,
        skipped: number("skipped")?,
        summary: row.get("summary")?,
    })
}

fn uuid_from(bytes: &[u8]) -> Answer<Uuid> {
    let read = Uuid::from_slice(bytes);
    Ok(read.map_err(|cause| StoreError::corrupt("rebalance", "id", cause))?)
}

fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
