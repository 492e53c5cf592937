//! Deduplication keys, each held by one job at a time.

use async_trait::async_trait;
use evenkeel_core::dedup::{DedupKey, KeyHolder};
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    DedupClaim, DedupStore, JobState, PrunedDedup, StoreError, from_code, sql_time,
};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::connection::Urgency::Batch;
use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::{JobHead, job_head, job_id, newest_running, newest_waiting, next_after};

/// The job that last took a deduplication key.
pub(crate) struct KeyOwner {
    pub(crate) no: JobNo,
    pub(crate) id: JobId,
    holder: KeyHolder,
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
    Ok(held.filter(|held| claim.is_kept_out(held.id, &held.holder, now)))
}

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
        connection.run(sql!("register_take_dedup"), &[&tenant, &claim.key, &no, &now])?;
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
        connection.run(sql!("command_drop_dedup"), &[&tenant, &key, &no])?;
    }
    Ok(())
}

fn find(connection: &Connection, tenant: TenantNo, key: DedupKey) -> Answer<Option<KeyOwner>> {
    connection.maybe_row(sql!("register_find_dedup"), &[&tenant, &key], |row| {
        let id = job_id(row.get("id")?)?;
        let what = format_args!("job {id}");
        let holder = KeyHolder {
            state: from_code(&JobState::ALL, row.get("state")?, what, "state")?,
            recurs: row.get("recurs")?,
            next_at: sql_time(row.get("next_at")?),
            waits: row.get("waits")?,
            live: row.get("live")?,
            taken_at: Timestamp::from_micros(row.get("taken_at")?),
        };
        Ok(KeyOwner { no: JobNo(row.get("job_no")?), id, holder })
    })
}

/// Returns the run that is reported in place of a rejected duplicate: the job's waiting run,
/// running run, next run or last run, whichever exists first in this order.
pub(crate) fn run_instead(connection: &Connection, no: JobNo) -> Answer<Option<AttemptKey>> {
    let waiting = newest_waiting(connection, no)?;
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
type FreeKeys = (Vec<(TenantNo, DedupKey)>, Option<(TenantNo, DedupKey)>);

fn find_free(
    db: &Connection,
    before: Timestamp,
    after: Option<(TenantNo, DedupKey)>,
    limit: u32,
) -> Answer<FreeKeys> {
    let (tenant, key) =
        after.map_or((i32::MIN, Vec::new()), |(tenant, key)| (tenant.0, key.to_bytes().into()));
    let mut free = Vec::new();
    let which: Params<'_> = &[&tenant, &key, &limit, &before];
    let seen = db.rows(sql!("prune_dedup_find"), which, |row| {
        let bytes: Vec<u8> = row.get("key")?;
        let bytes = <[u8; 16]>::try_from(bytes.as_slice())
            .map_err(|error| StoreError::corrupt("deduplication key", "key", error))?;
        let key = (TenantNo(row.get("tenant_no")?), DedupKey::from_bytes(bytes));
        if row.get("is_free")? {
            free.push(key);
        }
        Ok(key)
    })?;
    Ok((free, next_after(&seen, limit).copied()))
}

fn prune(connection: &Connection, before: Timestamp, free: &[(TenantNo, DedupKey)]) -> Answer<u64> {
    let mut statement = connection.prepare_cached(sql!("prune_dedup"))?;
    let mut deleted = 0;
    for (tenant, key) in free {
        deleted += statement.change(&[tenant, key, &before])?;
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
        let rows = free.len();
        let deleted = self.writer.write(Batch, rows, move |db| prune(db, before, &free)).await?;
        Ok(PrunedDedup { deleted, next })
    }
}
