//! Deduplication keys, each held by one job at a time.

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

/// The job that last took a deduplication key.
struct Held {
    no: JobNo,
    id: JobId,
    holder: KeyHolder,
}

/// The job that holds a deduplication key that another job requests.
pub(crate) struct KeyOwner {
    pub(crate) no: JobNo,
    pub(crate) id: JobId,
}

/// Returns the job that holds the deduplication key and blocks the new job or run.
pub(crate) fn holder_of(
    connection: &Connection,
    tenant: TenantNo,
    claim: Option<&DedupClaim>,
    now: Timestamp,
) -> Answer<Option<KeyOwner>> {
    let Some(claim) = claim else { return Ok(None) };
    let held = find(connection, tenant, claim.key)?;
    let held = held.filter(|held| claim.is_kept_out(held.id, &held.holder, now));
    Ok(held.map(|held| KeyOwner { no: held.no, id: held.id }))
}

/// Makes the job the holder of the deduplication key.
pub(crate) fn take(
    connection: &Connection,
    tenant: TenantNo,
    claim: Option<&DedupClaim>,
    no: JobNo,
    now: Timestamp,
) -> Answer<()> {
    let Some(claim) = claim else { return Ok(()) };
    let held = find(connection, tenant, claim.key)?;
    if !held.is_some_and(|held| claim.keeps(held.id)) {
        let key = claim.key.to_bytes();
        connection.prepare_cached(sql!("register_take_dedup"))?.execute(params![
            tenant.0,
            key.as_slice(),
            no.0,
            now.as_micros()
        ])?;
    }
    Ok(())
}

/// Releases the deduplication key, if the job holds it.
pub(crate) fn release(
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

/// Returns the run that is reported in place of a rejected duplicate: the job's waiting run,
/// running run, next run or last run, whichever exists first in this order.
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

/// The deduplication keys to delete, and the position at which the next step starts.
type FreeKeys = (Vec<(i32, Vec<u8>)>, Option<(TenantNo, DedupKey)>);

fn find_free(
    db: &Connection,
    before: Timestamp,
    after: Option<(TenantNo, DedupKey)>,
    limit: u32,
) -> Answer<FreeKeys> {
    let (tenant, key) =
        after.map_or((i32::MIN, Vec::new()), |(tenant, key)| (tenant.0, key.to_bytes().into()));
    let mut statement = db.prepare_cached(sql!("prune_dedup_find"))?;
    let mut rows = statement.query(params![tenant, key, limit, before.as_micros()])?;
    let (mut free, mut last, mut seen) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let (tenant, key): (i32, Vec<u8>) = (row.get("tenant_no")?, row.get("key")?);
        let bytes = <[u8; 16]>::try_from(key.as_slice())
            .map_err(|error| StoreError::corrupt("deduplication key", "key", error))?;
        last = Some((TenantNo(tenant), DedupKey::from_bytes(bytes)));
        seen += 1;
        if row.get("is_free")? {
            free.push((tenant, key));
        }
    }
    Ok((free, last.filter(|_| seen == limit)))
}

fn prune(connection: &Connection, before: Timestamp, free: &[(i32, Vec<u8>)]) -> Answer<u64> {
    let mut statement = connection.prepare_cached(sql!("prune_dedup"))?;
    let mut deleted = 0;
    for (tenant, key) in free {
        deleted += statement.execute(params![tenant, key, before.as_micros()])? as u64;
    }
    Ok(deleted)
}

#[async_trait]
impl DedupStore for SqliteStore {
    async fn prune_dedup(
        &self,
        before: Timestamp,
        after: Option<(TenantNo, DedupKey)>,
        limit: u32,
    ) -> Result<PrunedDedup, StoreError> {
        let (free, next) =
            self.engine_readers.read(move |db| find_free(db, before, after, limit)).await?;
        if free.is_empty() {
            return Ok(PrunedDedup { deleted: 0, next });
        }
        let deleted = self
            .writer
            .write(Batch, free.len(), move |session| prune(session.connection(), before, &free))
            .await?;
        Ok(PrunedDedup { deleted, next })
    }
}
