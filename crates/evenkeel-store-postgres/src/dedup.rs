//! Deduplication keys prevent two equal jobs or runs from existing at the same time.
//!
//! A transaction locks deduplication keys in key order, after jobs and job states, and before it
//! takes job names. A separate statement reads the holder of a key after the key is locked, so that
//! it sees changes that were committed while the transaction waited for the lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use evenkeel_core::dedup::{DedupKey, KeyHolder};
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    DedupClaim, DedupStore, JobState, NewJob, PrunedDedup, Registered, StoreError,
    attempt_key_from_columns, from_code,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::jobs::{find_names, read_clock};
use crate::rows::{column, count, get, maybe_time, time};

#[derive(Copy, Clone, Debug)]
pub(crate) struct Held {
    pub(crate) job: JobId,
    holder: KeyHolder,
}

/// Deduplication keys, the jobs that hold them, and the changes to write.
#[derive(Debug)]
pub(crate) struct Keys {
    tenant: i32,
    held: HashMap<DedupKey, Held>,
    /// Deduplication keys that were inserted only to lock them, with the job that needs each key.
    inserted: BTreeMap<DedupKey, JobId>,
    taken: BTreeSet<DedupKey>,
    released: BTreeSet<DedupKey>,
}

pub(crate) fn key_column(key: DedupKey) -> Uuid {
    Uuid::from_bytes(key.to_bytes())
}

impl Keys {
    /// Reads which jobs hold the deduplication keys. Reading without locks is enough to reject a
    /// duplicate.
    pub(crate) async fn read_holders(
        connection: &Connection,
        tenant: i32,
        keys: impl Iterator<Item = DedupKey>,
    ) -> Tried<Self> {
        let keys: BTreeSet<DedupKey> = keys.collect();
        let held = find(connection, tenant, keys.into_iter()).await?;
        let (inserted, taken, released) = Default::default();
        Ok(Self { tenant, held, inserted, taken, released })
    }

    /// Locks deduplication keys until the end of the transaction. For each key, `wanted` names a
    /// job that takes or releases the key.
    pub(crate) async fn lock(
        connection: &Connection,
        tenant: i32,
        wanted: impl Iterator<Item = (DedupKey, JobId)>,
        now: Option<i64>,
    ) -> Tried<Self> {
        let mut first: BTreeMap<DedupKey, JobId> = BTreeMap::new();
        for (key, job) in wanted {
            first.entry(key).or_insert(job);
        }
        let keys: Vec<Uuid> = first.keys().map(|key| key_column(*key)).collect();
        let jobs: Vec<Uuid> = first.values().map(|job| job.0).collect();
        let params: Params<'_> = &[&tenant, &keys, &jobs, &now];
        let mut inserted = BTreeMap::new();
        for row in connection.rows(sql!("register_lock_dedup"), params).await? {
            let key = DedupKey::from_bytes(get::<Uuid>(&row, 0)?.into_bytes());
            inserted.extend(first.remove(&key).map(|job| (key, job)));
        }
        let held = find(connection, tenant, first.into_keys()).await?;
        let (taken, released) = Default::default();
        Ok(Self { tenant, held, inserted, taken, released })
    }

    /// Returns the job that holds the deduplication key and blocks the new job or run.
    pub(crate) fn kept_out_by(&self, wanted: &DedupClaim, now: Timestamp) -> Option<Held> {
        let held = self.held.get(&wanted.key)?;
        wanted.is_kept_out(held.job, &held.holder, now).then_some(*held)
    }

    pub(crate) fn take(&mut self, wanted: &DedupClaim) {
        self.released.remove(&wanted.key);
        if !self.held.get(&wanted.key).is_some_and(|held| wanted.keeps(held.job)) {
            let held = Held { job: wanted.job, holder: wanted.after };
            self.held.insert(wanted.key, held);
            self.taken.insert(wanted.key);
        }
    }

    /// Releases the deduplication key if the job holds it.
    pub(crate) fn release(&mut self, key: DedupKey, job: JobId) {
        if self.held.get(&key).is_some_and(|held| held.job == job) {
            self.held.remove(&key);
            self.taken.remove(&key);
            self.released.insert(key);
        }
    }

    pub(crate) async fn write(&self, connection: &Connection) -> Tried<()> {
        let is_written =
            |key: &DedupKey| self.inserted.get(key) == self.held.get(key).map(|held| &held.job);
        let taken: Vec<(Uuid, &Held)> = self
            .taken
            .iter()
            .filter(|key| !is_written(key))
            .filter_map(|key| Some((key_column(*key), self.held.get(key)?)))
            .collect();
        if !taken.is_empty() {
            let params: Params<'_> = &[
                &self.tenant,
                &column(&taken, |(key, _)| *key),
                &column(&taken, |(_, held)| held.job.0),
                &column(&taken, |(_, held)| held.holder.taken_at.as_micros()),
            ];
            connection.change(sql!("register_take_dedup"), params).await?;
        }
        // Keys that were inserted only to lock them are deleted if no job took them.
        let unused = self.inserted.keys().filter(|key| !self.taken.contains(key));
        let released: BTreeSet<&DedupKey> = self.released.iter().chain(unused).collect();
        let released: Vec<Uuid> = released.into_iter().map(|key| key_column(*key)).collect();
        if !released.is_empty() {
            connection.change(sql!("command_drop_dedup"), &[&self.tenant, &released]).await?;
        }
        Ok(())
    }
}

async fn find(
    connection: &Connection,
    tenant: i32,
    keys: impl Iterator<Item = DedupKey>,
) -> Tried<HashMap<DedupKey, Held>> {
    let keys: Vec<Uuid> = keys.map(key_column).collect();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = connection.rows(sql!("register_look_dedup"), &[&tenant, &keys]).await?;
    rows.iter().map(held).collect()
}

fn held(row: &Row) -> Tried<(DedupKey, Held)> {
    let job = JobId(get(row, "job_id")?);
    let state = get(row, "state")?;
    let holder = KeyHolder {
        state: from_code(&JobState::ALL, state, format_args!("job {job}"), "state")?,
        recurs: get(row, "recurs")?,
        next_at: maybe_time(row, "next_at")?,
        waits: get(row, "waits")?,
        live: get::<i32>(row, "live")?.max(0).cast_unsigned(),
        taken_at: time(row, "taken_at")?,
    };
    let key = DedupKey::from_bytes(get::<Uuid>(row, "key")?.into_bytes());
    Ok((key, Held { job, holder }))
}

/// Returns the run that is reported in place of a rejected duplicate: the job's pending run,
/// running run, next run or last run, whichever exists first in this order.
pub(crate) async fn run_instead(
    connection: &Connection,
    no: JobNo,
    running: Option<AttemptKey>,
) -> Tried<Option<AttemptKey>> {
    let sql = sql!("trigger_run_instead");
    let Some(row) = connection.maybe_row(sql, &[&no.0]).await? else { return Ok(None) };
    let run_at = |at: &str, sequence: &str| match (get(&row, at)?, get(&row, sequence)?) {
        (Some(at), Some(sequence)) => Ok(Some(attempt_key_from_columns(at, no.0, sequence, 0)?)),
        _ => Tried::Ok(None),
    };
    let next = maybe_time(&row, "next_at")?.map(|next_at| AttemptKey::regular(no, next_at));
    let run = run_at("scheduled_at", "sequence")?
        .or(running)
        .or(next)
        .or(run_at("head_at", "head_sequence")?);
    Ok(run.map(|run| run.with_attempt(AttemptNo::FIRST)))
}

#[async_trait]
impl DedupStore for PostgresStore {
    async fn prune_dedup(
        &self,
        before: Timestamp,
        after: Option<(TenantNo, DedupKey)>,
        limit: u32,
    ) -> Result<PrunedDedup, StoreError> {
        let (tenant, key) =
            after.map_or((i32::MIN, Uuid::nil()), |(tenant, key)| (tenant.0, key_column(key)));
        let (limit, before) = (i64::from(limit), before.as_micros());
        run!(self.api, |connection| {
            let params: Params<'_> = &[&tenant, &key, &limit, &before];
            let row = connection.row(sql!("prune_dedup"), params).await?;
            let is_last = get::<i64>(&row, "scanned")? < limit;
            let tenant = get::<Option<i32>>(&row, "tenant_no")?.map(TenantNo);
            let key = get::<Option<Uuid>>(&row, "key")?;
            let key = key.map(|key| DedupKey::from_bytes(key.into_bytes()));
            let next = tenant.zip(key).filter(|_| !is_last);
            Ok(PrunedDedup { deleted: count(&row, "deleted")?, next })
        })
    }
}

/// The answer for each job of a batch, or `None` for a job that is to be created.
pub(crate) type Answers = Vec<Option<Registered>>;

pub(crate) fn are_keyed(jobs: &[NewJob]) -> bool {
    jobs.iter().any(|job| job.about.dedup.is_some())
}

/// Finds duplicates without locks, so that requests that are certainly duplicates wait for no other
/// transaction.
pub(crate) async fn find_duplicates(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<Answers> {
    let now = clock(connection, now).await?;
    let wanted = wanted(jobs, now);
    let keys = wanted.iter().flatten().map(|wanted| wanted.key);
    let keys = Keys::read_holders(connection, tenant, keys).await?;
    let answer = |wanted: &Option<DedupClaim>| {
        let held = keys.kept_out_by(wanted.as_ref()?, now)?;
        Some(Registered::Duplicate(held.job))
    };
    Ok(wanted.iter().map(answer).collect())
}

/// Locks the deduplication keys of jobs and decides, one job after the other, which jobs are
/// created. The caller must write the changed keys afterwards.
pub(crate) async fn decide(
    connection: &Connection,
    tenant: i32,
    jobs: &[NewJob],
    now: Option<i64>,
) -> Tried<(Answers, Keys)> {
    let locked = wanted(jobs, Timestamp::from_micros(now.unwrap_or_default()));
    let locked = locked.iter().flatten().map(|wanted| (wanted.key, wanted.job));
    let mut keys = Keys::lock(connection, tenant, locked, now).await?;
    let now = clock(connection, now).await?;
    let named = jobs.iter().filter_map(name_of).collect();
    let mut names = find_names(connection, tenant, named).await?;
    let mut answers = Vec::with_capacity(jobs.len());
    for (job, wanted) in jobs.iter().zip(wanted(jobs, now)) {
        let held = wanted.as_ref().and_then(|wanted| keys.kept_out_by(wanted, now));
        if let Some(held) = held {
            answers.push(Some(Registered::Duplicate(held.job)));
            continue;
        }
        let name = name_of(job);
        if let Some(other) = name.and_then(|name| names.get(&name)) {
            answers.push(Some(Registered::NameTaken(*other)));
            continue;
        }
        names.extend(name.map(|name| (name, job.id)));
        wanted.iter().for_each(|wanted| keys.take(wanted));
        answers.push(None);
    }
    Ok((answers, keys))
}

async fn clock(connection: &Connection, now: Option<i64>) -> Tried<Timestamp> {
    let now = match now {
        Some(now) => now,
        None => read_clock(connection, None).await?,
    };
    Ok(Timestamp::from_micros(now))
}

pub(crate) type Name<'a> = (&'a str, &'a str);

pub(crate) fn name_of(job: &NewJob) -> Option<Name<'_>> {
    let configuration = job.about.configuration.as_deref().unwrap_or_default();
    Some((job.about.name.as_deref()?, configuration))
}

/// Job names, with the jobs that have them.
pub(crate) type Names<'a> = HashMap<Name<'a>, JobId>;

fn wanted(jobs: &[NewJob], now: Timestamp) -> Vec<Option<DedupClaim>> {
    jobs.iter().map(|job| DedupClaim::by_new(job, now)).collect()
}
