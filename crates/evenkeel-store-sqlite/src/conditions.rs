//! Marks jobs as at risk, evaluates their conditions, and lists the conditions.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{AttemptKey, JobNo, Shard, TenantNo, Timestamp};
use evenkeel_store::{
    AtRisk, AtRiskStore, ConditionCounts, JobToJudge, Judgement, Now, OverdueInQueue, Page,
    PageRequest, RiskCursor, RiskFilter, Scope, StoreError, ToJudge, from_code, sql_time,
};
use rusqlite::{Connection, Row};

use crate::SqliteStore;
use crate::connection::Urgency::Batch;
use crate::connection::{Params, RunPrepared, RunSql, resolve};
use crate::error::Answer;
use crate::rows::{
    FIRST_KEY, count, head_from, history_from, job_id, key_from, newest_running, next_after,
    page_of,
};
use crate::schedules::claim_windows::shard_list;

/// Marks a job as at risk, to be evaluated at once, unless it is cancelled or deleted.
pub(crate) fn mark(connection: &Connection, job: JobNo) -> Answer<()> {
    if connection.change(sql!("mark_at_risk_insert"), &[&job])? == 1 {
        connection.run(sql!("mark_at_risk_state"), &[&job])?;
    }
    Ok(())
}

/// Marks a job as at risk after a failed run, and makes the scheduler load the job again.
pub(crate) fn mark_after_failure(connection: &Connection, job: JobNo) -> Answer<()> {
    mark(connection, job)?;
    connection.run(sql!("mark_at_risk_changed"), &[&job])
}

/// Requests a new evaluation of a job that is at risk.
pub(crate) fn touch(connection: &Connection, job: JobNo) -> Answer<()> {
    connection.run(sql!("mark_at_risk_touch"), &[&job])
}

pub(crate) fn delete(connection: &Connection, job: JobNo) -> Answer<()> {
    let found: Option<(i32, Option<i16>)> =
        connection.maybe_row(sql!("command_delete_condition"), &[&job], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
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
                connection.run(sql!("judge_count"), &[&tenant, &warnings, &errors])?;
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
        due.extend(statement.rows(&[&shard, &now, &left], |row| Ok(row.get::<_, i64>(0)?))?);
        if due.len() >= limit as usize {
            break;
        }
    }
    let mut load = connection.prepare_cached(sql!("to_judge_job"))?;
    let mut jobs = Vec::with_capacity(due.len());
    for no in due {
        jobs.extend(load.maybe_row(&[&no], |row| job_to_judge_from(connection, row))?);
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
        let Judgement { job, touched, reason, error_at, again_at, .. } = judgement;
        let found: Option<(i32, Option<i16>, Option<i64>)> =
            find.maybe_row(&[job, touched], |row| Ok(row.try_into()?))?;
        let Some((tenant, before, since)) = found else { continue };
        let (before, level) = (level_from(before)?, reason.level());
        if again_at.is_none() {
            connection.run(sql!("judge_delete"), &[job])?;
            connection.run(sql!("judge_unmark"), &[job])?;
            counts.change(tenant, before, None);
            continue;
        }
        let since = since.filter(|_| before == Some(level)).unwrap_or(now.as_micros());
        let row: Params<'_> = &[job, again_at, &level, reason, error_at, &since];
        connection.run(sql!("judge_write"), row)?;
        counts.change(tenant, before, Some(level));
    }
    counts.write(connection)
}

fn overdue_in_queue(
    connection: &Connection,
    shards: &[Shard],
    after: Option<AttemptKey>,
    limit: u32,
    now: Timestamp,
) -> Answer<OverdueInQueue> {
    let (shards, after) = (shard_list(shards)?, after.unwrap_or(FIRST_KEY));
    let mut jobs = BTreeSet::new();
    let which: Params<'_> = &[&now, &shards, &after, &limit];
    let read = connection.rows(sql!("overdue_in_queue"), which, |row| {
        let key = key_from(row)?;
        if row.get::<_, Option<bool>>("is_overdue")? == Some(true) {
            jobs.insert(key.job_no);
        }
        Ok(key)
    })?;
    let next = next_after(&read, limit).copied();
    Ok(OverdueInQueue { jobs: jobs.into_iter().collect(), next })
}

fn counts_from(row: &Row<'_>) -> Answer<ConditionCounts> {
    Ok(ConditionCounts {
        jobs: count(row, "job_count")?,
        warning: count(row, "warnings")?,
        error: count(row, "errors")?,
        held: count(row, "held")?,
    })
}

fn condition_counts(connection: &Connection, tenant: TenantNo) -> Answer<ConditionCounts> {
    Ok(connection.maybe_row(sql!("condition_counts"), &[&tenant], counts_from)?.unwrap_or_default())
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
    let (at, no) = page.after.unwrap_or((Timestamp::from_micros(-1), JobNo(0)));
    let limit = i64::from(page.limit) + 1;
    let which: Params<'_> = &[&tenant, &at, &no, &filter.level, &limit, &page.offset];
    let items = connection.rows(sql!("list_at_risk"), which, at_risk_from)?;
    Ok(page_of(items, page.limit, (total, false), |item| (item.error_at, item.no)))
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
            .write(Batch, jobs.len(), move |db| jobs.iter().try_for_each(|job| mark(db, *job)))
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
        self.writer.write(Batch, batch.len(), move |db| judge(db, &batch, resolve(now))).await
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
        self.engine_readers.read(|db| db.row(sql!("all_condition_counts"), &[], counts_from)).await
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
