//! Evaluates the conditions of jobs, and lists the jobs at risk.

use async_trait::async_trait;
use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{AttemptKey, JobId, JobNo, Shard, TenantNo};
use evenkeel_store::{
    AtRisk, AtRiskStore, ConditionCounts, JobToJudge, Judgement, Now, OverdueInQueue, Page,
    PageRequest, RiskCursor, RiskFilter, Scope, StoreError, ToJudge, from_code,
};
use futures::future::try_join;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::connection::{Connection, Params, rounds};
use crate::error::Tried;
use crate::rows::{
    column, count, get, history, job_numbers, key, key_columns, maybe_time, micros, page_limit,
    page_of, shards, time,
};

#[async_trait]
impl AtRiskStore for PostgresStore {
    async fn mark_at_risk(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        self.hot.change(sql!("mark_at_risk"), params![job_numbers(jobs)]).await?;
        Ok(())
    }

    async fn to_judge(&self, of: &[Shard], limit: u32, now: Now) -> Result<ToJudge, StoreError> {
        let (now, limit) = (micros(now.literal()), i64::from(limit));
        run!(self.hot, shards(of), |connection, shards| {
            let (clock, rows) = try_join(
                connection.row(sql!("now"), &[&now]),
                connection.rows(sql!("to_judge"), &[&now, shards, &limit]),
            )
            .await?;
            let jobs = rows.iter().map(read_job_to_judge).collect::<Tried<_>>()?;
            Ok(ToJudge { now: time(&clock, 0)?, jobs })
        })
    }

    async fn judge(&self, batch: Vec<Judgement>, now: Now) -> Result<(), StoreError> {
        let now = micros(now.literal());
        run!(self.hot, batch, |connection, batch| {
            for round in rounds(batch, |judgement| judgement.job) {
                let judgements = column(round, |at| &batch[at]);
                judge_round(connection, &judgements, now).await?;
            }
            Ok(())
        })
    }

    async fn overdue_in_queue(
        &self,
        of: &[Shard],
        after: Option<AttemptKey>,
        limit: u32,
        now: Now,
    ) -> Result<OverdueInQueue, StoreError> {
        // Without a cursor, the scan starts at a key that sorts before every attempt key.
        let (at, job, run, nth) =
            after.map_or((i64::MIN, i64::MIN, i32::MIN, i16::MIN), key_columns);
        let (now, limit) = (micros(now.literal()), i64::from(limit));
        run!(self.hot, shards(of), |connection, shards| {
            let params: Params<'_> = &[&now, shards, &at, &job, &run, &nth, &limit];
            let Some(last) = connection.maybe_row(sql!("overdue_in_queue"), params).await? else {
                return Ok(OverdueInQueue::default());
            };
            let (scanned, jobs): (i64, Vec<i64>) = (get(&last, "scanned")?, get(&last, "jobs")?);
            let next = if scanned == limit { Some(key(&last)?) } else { None };
            Ok(OverdueInQueue { jobs: column(jobs, JobNo), next })
        })
    }

    async fn condition_counts(&self, scope: &Scope) -> Result<ConditionCounts, StoreError> {
        let params = params![scope.tenant.0];
        let counts = self.api.maybe_row(sql!("condition_counts"), params, read_counts).await?;
        Ok(counts.unwrap_or_default())
    }

    async fn all_condition_counts(&self) -> Result<ConditionCounts, StoreError> {
        self.api.row(sql!("all_condition_counts"), params![], read_counts).await
    }

    async fn list_at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Result<Page<AtRisk, RiskCursor>, StoreError> {
        let (tenant, level) = (scope.tenant.0, filter.level);
        run!(self.api, |connection| {
            let (error_at, job) = page
                .after
                .map_or((i64::MIN, i64::MIN), |(error_at, job)| (error_at.as_micros(), job.0));
            let code = level.map(|level| level as i16);
            let (offset, limit) = (i64::from(page.offset), page_limit(&page));
            let params: Params<'_> = &[&tenant, &error_at, &job, &code, &offset, &limit];
            let (rows, counts) = try_join(
                connection.rows(sql!("list_at_risk"), params),
                connection.maybe_row(sql!("condition_counts"), &[&tenant]),
            )
            .await?;
            let counts = counts.as_ref().map_or(Ok(ConditionCounts::default()), read_counts)?;
            let total = match level {
                None => counts.warning + counts.error,
                Some(Level::Ok) => 0,
                Some(Level::Warning) => counts.warning,
                Some(Level::Error) => counts.error,
            };
            let cursor = |last: &AtRisk| (last.error_at, last.no);
            page_of(&page, &rows, read_at_risk, cursor, (total, u64::MAX))
        })
    }
}

fn read_job_to_judge(row: &Row) -> Tried<JobToJudge> {
    let no = JobNo(get(row, "job_no")?);
    let level = |code: i16| from_code(&Level::ALL, code, format_args!("job {no}"), "level");
    Ok(JobToJudge {
        no,
        tenant: TenantNo(get(row, "tenant_no")?),
        touched: get(row, "touched")?,
        before: get::<Option<i16>>(row, "level")?.map(level).transpose()?,
        active: get(row, "active")?,
        next_at: maybe_time(row, "next_at")?,
        last_fired_at: maybe_time(row, "last_fired_at")?,
        live: get(row, "is_live")?,
        history: history(row)?,
        since: time(row, "since")?,
        definition: get(row, "definition")?,
        running_since: maybe_time(row, "running_since")?,
    })
}

async fn judge_round(
    connection: &Connection,
    judgements: &[&Judgement],
    now: Option<i64>,
) -> Tried<()> {
    let params: Params<'_> = &[
        &now,
        &column(judgements, |judgement| judgement.job.0),
        &column(judgements, |judgement| judgement.touched),
        &column(judgements, |judgement| judgement.reason.level() as i16),
        &column(judgements, |judgement| judgement.reason as i16),
        &column(judgements, |judgement| judgement.error_at.as_micros()),
        &column(judgements, |judgement| micros(judgement.again_at)),
    ];
    connection.change(sql!("judge"), params).await?;
    Ok(())
}

fn read_counts(row: &Row) -> Tried<ConditionCounts> {
    Ok(ConditionCounts {
        jobs: count(row, "jobs")?,
        warning: count(row, "warnings")?,
        error: count(row, "errors")?,
        held: count(row, "held")?,
    })
}

fn read_at_risk(row: &Row) -> Tried<AtRisk> {
    let no = JobNo(get(row, "job_no")?);
    Ok(AtRisk {
        no,
        job: JobId(get(row, "id")?),
        name: get(row, "name")?,
        reason: from_code(&Reason::ALL, get(row, "reason")?, format_args!("job {no}"), "reason")?,
        error_at: time(row, "error_at")?,
        since: time(row, "since")?,
    })
}
