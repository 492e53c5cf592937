//! Marks jobs as at risk, evaluates their conditions, and lists the conditions.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{AttemptKey, JobNo, Shard, TenantNo, Timestamp};
use evenkeel_store::{
    AtRisk, AtRiskStore, ConditionCounts, JobToJudge, Judgement, Now, OverdueInQueue, Page,
    PageRequest, RiskCursor, RiskFilter, Scope, StoreError, ToJudge, from_code, sql_time,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::connection::clock::resolve;
use crate::connection::urgency::Urgency::Batch;
use crate::error::Answer;
use crate::rows::{
    collect, head_from, history_from, job_id, key_from, key_params, micros, newest_running, page_of,
};
use crate::schedules::claim_windows::shard_list;

/// Marks a job as at risk, to be evaluated at once, unless it is cancelled or deleted.
pub(crate) fn mark(connection: &Connection, job: JobNo) -> Answer<()> {
    let listed = connection.prepare_cached(sql!("mark_at_risk_insert"))?.execute([job.0])?;
    if listed == 1 {
        connection.prepare_cached(sql!("mark_at_risk_state"))?.execute([job.0])?;
    }
    Ok(())
}

/// Marks a job as at risk after a failed run, and makes the scheduler load the job again.
pub(crate) fn mark_after_failure(connection: &Connection, job: JobNo) -> Answer<()> {
    mark(connection, job)?;
    connection.prepare_cached(sql!("mark_at_risk_changed"))?.execute([job.0])?;
    Ok(())
}

/// Requests a new evaluation of a job that is at risk.
pub(crate) fn touch(connection: &Connection, job: JobNo) -> Answer<()> {
    connection.prepare_cached(sql!("mark_at_risk_touch"))?.execute([job.0])?;
    Ok(())
}

pub(crate) fn delete(connection: &Connection, job: JobNo) -> Answer<()> {
    let found: Option<(i32, Option<i16>)> = connection
        .prepare_cached(sql!("command_delete_condition"))?
        .query_row([job.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let mut counts = Counts::default();
    if let Some((tenant, level)) = found {
        counts.change(tenant, level_from(level)?, None);
    }
    counts.write(connection)
}

/// Changes of the stored condition counts per tenant.
#[derive(Default)]
struct Counts(BTreeMap<i32, (i64, i64)>);

impl Counts {
    fn change(&mut self, tenant: i32, from: Option<Level>, to: Option<Level>) {
        let (warnings, errors) = self.0.entry(tenant).or_default();
        for (level, by) in [(from, -1), (to, 1)] {
            match level {
                Some(Level::Warning) => *warnings += by,
                Some(Level::Error) => *errors += by,
                Some(Level::Ok) | None => {}
            }
        }
    }

    fn write(self, connection: &Connection) -> Answer<()> {
        for (tenant, (warnings, errors)) in self.0 {
            if (warnings, errors) != (0, 0) {
                connection
                    .prepare_cached(sql!("judge_count"))?
                    .execute(params![tenant, warnings, errors])?;
            }
        }
        Ok(())
    }
}

fn level_from(code: Option<i16>) -> Answer<Option<Level>> {
    let level = code.map(|code| from_code(&Level::ALL, code, "job condition", "level"));
    Ok(level.transpose()?)
}

fn to_judge(
    connection: &Connection,
    shards: &[Shard],
    limit: u32,
    now: Timestamp,
) -> Answer<Vec<JobToJudge>> {
    let mut statement = connection.prepare_cached(sql!("to_judge"))?;
    let mut due: Vec<i64> = Vec::new();
    let shards: BTreeSet<Shard> = shards.iter().copied().collect();
    for shard in shards {
        let left = i64::from(limit) - due.len() as i64;
        let mut rows = statement.query(params![shard.0, now.as_micros(), left])?;
        while let Some(row) = rows.next()? {
            due.push(row.get(0)?);
        }
        if due.len() >= limit as usize {
            break;
        }
    }
    let mut load = connection.prepare_cached(sql!("to_judge_job"))?;
    let mut jobs = Vec::with_capacity(due.len());
    for no in due {
        if let Some(row) = load.query([no])?.next()? {
            jobs.push(job_to_judge_from(connection, row)?);
        }
    }
    Ok(jobs)
}

fn job_to_judge_from(connection: &Connection, row: &Row<'_>) -> Answer<JobToJudge> {
    let (no, live) = (JobNo(row.get("job_no")?), row.get("live")?);
    Ok(JobToJudge {
        no,
        tenant: TenantNo(row.get("tenant_no")?),
        touched: row.get("touched")?,
        before: level_from(row.get("level")?)?,
        active: row.get("active")?,
        next_at: sql_time(row.get("next_at")?),
        last_fired_at: sql_time(row.get("last_fired_at")?),
        live: live > 0,
        running_since: newest_running(connection, no, live, head_from(row)?)?
            .map(|(_, since)| since),
        history: history_from(row)?,
        since: Timestamp::from_micros(row.get("since")?),
        definition: row.get("definition")?,
    })
}

fn judge(connection: &Connection, batch: &[Judgement], now: Timestamp) -> Answer<()> {
    let mut find = connection.prepare_cached(sql!("judge_find"))?;
    let mut counts = Counts::default();
    for judgement in batch {
        let which = params![judgement.job.0, judgement.touched];
        let found: Option<(i32, Option<i16>, Option<i64>)> =
            find.query_row(which, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
        let Some((tenant, before, since)) = found else { continue };
        let (before, level) = (level_from(before)?, judgement.reason.level());
        if judgement.again_at.is_none() {
            delete_and_unmark(connection, judgement.job)?;
            counts.change(tenant, before, None);
            continue;
        }
        let since = since.filter(|_| before == Some(level)).unwrap_or(now.as_micros());
        connection.prepare_cached(sql!("judge_write"))?.execute(params![
            judgement.job.0,
            micros(judgement.again_at),
            level as u8,
            judgement.reason as u8,
            judgement.error_at.as_micros(),
            since,
        ])?;
        counts.change(tenant, before, Some(level));
    }
    counts.write(connection)
}

fn delete_and_unmark(connection: &Connection, job: JobNo) -> Answer<()> {
    connection.prepare_cached(sql!("judge_delete"))?.execute([job.0])?;
    connection.prepare_cached(sql!("judge_unmark"))?.execute([job.0])?;
    Ok(())
}

fn overdue_in_queue(
    connection: &Connection,
    shards: &[Shard],
    after: Option<AttemptKey>,
    limit: u32,
    now: Timestamp,
) -> Answer<OverdueInQueue> {
    let mut statement = connection.prepare_cached(sql!("overdue_in_queue"))?;
    // Without a cursor, the scan starts at a key that sorts before every attempt key.
    let (scheduled_at, job_no, sequence, attempt) =
        after.map_or((i64::MIN, i64::MIN, 0, 0), key_params);
    let mut rows = statement.query(params![
        now.as_micros(),
        shard_list(shards)?,
        scheduled_at,
        job_no,
        sequence,
        attempt,
        limit,
    ])?;
    let (mut jobs, mut last, mut read) = (BTreeSet::new(), None, 0);
    while let Some(row) = rows.next()? {
        let key = key_from(row)?;
        if row.get::<_, Option<bool>>("is_overdue")? == Some(true) {
            jobs.insert(key.job_no);
        }
        (last, read) = (Some(key), read + 1);
    }
    let next = last.filter(|_| read == limit);
    Ok(OverdueInQueue { jobs: jobs.into_iter().collect(), next })
}

fn counts_from(row: &Row<'_>) -> rusqlite::Result<ConditionCounts> {
    let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(ConditionCounts {
        jobs: count("job_count")?,
        warning: count("warnings")?,
        error: count("errors")?,
        held: count("held")?,
    })
}

fn condition_counts(connection: &Connection, tenant: TenantNo) -> Answer<ConditionCounts> {
    let mut statement = connection.prepare_cached(sql!("condition_counts"))?;
    Ok(statement.query_row([tenant.0], counts_from).optional()?.unwrap_or_default())
}

fn list_at_risk(
    connection: &Connection,
    tenant: TenantNo,
    filter: RiskFilter,
    page: PageRequest<RiskCursor>,
) -> Answer<Page<AtRisk, RiskCursor>> {
    let counts = condition_counts(connection, tenant)?;
    let total = match filter.level {
        None => counts.warning + counts.error,
        Some(Level::Ok) => 0,
        Some(Level::Warning) => counts.warning,
        Some(Level::Error) => counts.error,
    };
    let (after_at, after_no) = page.after.map_or((-1, 0), |(at, no)| (at.as_micros(), no.0));
    let limit = i64::from(page.limit) + 1;
    let level = filter.level.map(|level| level as u8);
    let mut statement = connection.prepare_cached(sql!("list_at_risk"))?;
    let items = collect(
        statement.query(params![tenant.0, after_at, after_no, level, limit, page.offset])?,
        at_risk_from,
    )?;
    Ok(page_of(items, page.limit, total.cast_signed(), |item| (item.error_at, item.no)))
}

fn at_risk_from(row: &Row<'_>) -> Answer<AtRisk> {
    let no = JobNo(row.get("job_no")?);
    Ok(AtRisk {
        no,
        job: job_id(row.get("id")?)?,
        name: row.get("name")?,
        reason: from_code(&Reason::ALL, row.get("reason")?, format_args!("job {no}"), "reason")?,
        error_at: Timestamp::from_micros(row.get("error_at")?),
        since: Timestamp::from_micros(row.get("since")?),
    })
}

#[async_trait]
impl AtRiskStore for SqliteStore {
    async fn mark_at_risk(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        let jobs = jobs.to_vec();
        self.writer
            .write(Batch, jobs.len(), move |session| {
                jobs.iter().try_for_each(|job| mark(session.connection(), *job))
            })
            .await
    }

    async fn to_judge(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<ToJudge, StoreError> {
        let (shards, now) = (shards.to_vec(), resolve(now));
        let jobs = self.engine_readers.read(move |db| to_judge(db, &shards, limit, now)).await?;
        Ok(ToJudge { now, jobs })
    }

    async fn judge(&self, batch: Vec<Judgement>, now: Now) -> Result<(), StoreError> {
        self.writer
            .write(Batch, batch.len(), move |session| {
                judge(session.connection(), &batch, resolve(now))
            })
            .await
    }

    async fn overdue_in_queue(
        &self,
        shards: &[Shard],
        after: Option<AttemptKey>,
        limit: u32,
        now: Now,
    ) -> Result<OverdueInQueue, StoreError> {
        let (shards, now) = (shards.to_vec(), resolve(now));
        self.engine_readers.read(move |db| overdue_in_queue(db, &shards, after, limit, now)).await
    }

    async fn condition_counts(&self, scope: &Scope) -> Result<ConditionCounts, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| condition_counts(db, tenant)).await
    }

    async fn all_condition_counts(&self) -> Result<ConditionCounts, StoreError> {
        self.engine_readers
            .read(|db| {
                let sql = sql!("all_condition_counts");
                Ok(db.prepare_cached(sql)?.query_row([], counts_from)?)
            })
            .await
    }

    async fn list_at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Result<Page<AtRisk, RiskCursor>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| list_at_risk(db, tenant, filter, page)).await
    }
}
