//! Keys that jobs hold so that they are not there twice.

use async_trait::async_trait;
use evenkeel_core::dedup::{DedupKey, KeyHolder};
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    DedupClaim, DedupStore, JobState, PrunedDedup, StoreError, from_code, sql_time,
};
use rusqlite::{Connection, params};

use crate::SqliteStore;
use crate::connection::urgency::Urgency::Batch;
use crate::error::Answer;
use crate::rows::{JobHead, job_head, job_id, key_from, newest_running};

/// A job that has a key.
struct Held {
    no: JobNo,
    id: JobId,
    holder: KeyHolder,
}

/// A job that keeps another from what it wants.
pub(crate) struct KeptOut {
    pub(crate) no: JobNo,
    pub(crate) id: JobId,
}

/// Who keeps a job from what it wants a key for.
pub(crate) fn kept_out_by(
    connection: &Connection,
    tenant: TenantNo,
    wanted: Option<&DedupClaim>,
    now: Timestamp,
) -> Answer<Option<KeptOut>> {
    let Some(wanted) = wanted else { return Ok(None) };
    let held = find(connection, tenant, wanted.key)?;
    let held = held.filter(|held| wanted.is_kept_out(held.id, &held.holder, now));
    Ok(held.map(|held| KeptOut { no: held.no, id: held.id }))
}

/// The job has the key it wanted from here on.
pub(crate) fn take(
    connection: &Connection,
    tenant: TenantNo,
    wanted: Option<&DedupClaim>,
    no: JobNo,
    now: Timestamp,
) -> Answer<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let held = find(connection, tenant, wanted.key)?;
    if !held.is_some_and(|held| wanted.keeps(held.id)) {
        let key = wanted.key.to_bytes();
        connection.prepare_cached(sql!("register_take_dedup"))?.execute(params![
            tenant.0,
            key.as_slice(),
            no.0,
            now.as_micros()
        ])?;
    }
    Ok(())
}

/// The job has the key no more, if it had it.
pub(crate) fn let_go(
    connection: &Connection,
    tenant: TenantNo,
    key: Option<DedupKey>,
    no: JobNo,
) -> Answer<()> {
    if let Some(key) = key {
        connection.prepare_cached(sql!("command_drop_dedup"))?.execute(params![
            tenant.0,
            key.to_bytes().as_slice(),
            no.0
        ])?;
    }
    Ok(())
}

fn find(connection: &Connection, tenant: TenantNo, key: DedupKey) -> Answer<Option<Held>> {
    let sql = sql!("register_find_dedup");
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![tenant.0, key.to_bytes().as_slice()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let id = job_id(row.get("id")?)?;
    let state = from_code(&JobState::ALL, row.get("state")?, format_args!("job {id}"), "state")?;
    let holder = KeyHolder {
        state,
        recurs: row.get("recurs")?,
        next_at: sql_time(row.get("next_at")?),
        waits: row.get("waits")?,
        live: row.get("live")?,
        taken_at: Timestamp::from_micros(row.get("taken_at")?),
    };
    Ok(Some(Held { no: JobNo(row.get("job_no")?), id, holder }))
}

/// What there is of a job in place of a run that is not to be: what waits, what runs, its next time,
/// or its last run.
pub(crate) fn run_instead(connection: &Connection, no: JobNo) -> Answer<Option<AttemptKey>> {
    let waiting = connection
        .prepare_cached(sql!("get_jobs_newest_waiting"))?
        .query([no.0])?
        .next()?
        .map(key_from)
        .transpose()?;
    let Some(JobHead { next_at, live, head }) = job_head(connection, no)? else {
        return Ok(None);
    };
    let running = newest_running(connection, no, live, head)?.map(|(key, _)| key);
    let next = next_at.map(|next_at| AttemptKey::regular(no, next_at));
    let last = head.map(|head| AttemptKey {
        sequence: head.sequence,
        ..AttemptKey::regular(no, head.scheduled_at)
    });
    let run = waiting.or(running).or(next).or(last);
    Ok(run.map(|run| run.with_attempt(AttemptNo::FIRST)))
}

/// Keys of jobs that were deleted, among so many, and where the next look goes on.
type Look = (Vec<(i32, Vec<u8>)>, Option<(TenantNo, DedupKey)>);

fn look(
    db: &Connection,
    before: Timestamp,
    after: Option<(TenantNo, DedupKey)>,
    limit: u32,
) -> Answer<Look> {
    let (tenant, key) =
        after.map_or((i32::MIN, Vec::new()), |(tenant, key)| (tenant.0, key.to_bytes().into()));
    let mut statement = db.prepare_cached(sql!("prune_dedup_find"))?;
    let mut rows = statement.query(params![tenant, key, limit, before.as_micros()])?;
    let (mut gone, mut last, mut looked) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let (tenant, key): (i32, Vec<u8>) = (row.get("tenant_no")?, row.get("key")?);
        let bytes = <[u8; 16]>::try_from(key.as_slice())
            .map_err(|error| StoreError::corrupt("a key of dedup", "key", error))?;
        last = Some((TenantNo(tenant), DedupKey::from_bytes(bytes)));
        looked += 1;
        if row.get("is_free")? {
            gone.push((tenant, key));
        }
    }
    Ok((gone, last.filter(|_| looked == limit)))
}

fn forget(connection: &Connection, before: Timestamp, gone: &[(i32, Vec<u8>)]) -> Answer<u64> {
    let mut statement = connection.prepare_cached(sql!("prune_dedup"))?;
    let mut forgotten = 0;
    for (tenant, key) in gone {
        forgotten += statement.execute(params![tenant, key, before.as_micros()])? as u64;
    }
    Ok(forgotten)
}

#[async_trait]
impl DedupStore for SqliteStore {
    async fn prune_dedup(
        &self,
        before: Timestamp,
        after: Option<(TenantNo, DedupKey)>,
        limit: u32,
    ) -> Result<PrunedDedup, StoreError> {
        let (gone, next) =
            self.engine_readers.read(move |db| look(db, before, after, limit)).await?;
        if gone.is_empty() {
            return Ok(PrunedDedup { forgotten: 0, next });
        }
        let forgotten = self
            .writer
            .write(Batch, gone.len(), move |session| forget(session.connection(), before, &gone))
            .await?;
        Ok(PrunedDedup { forgotten, next })
    }
}
