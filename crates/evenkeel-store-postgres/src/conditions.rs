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
use crate::connection::Connection;
use crate::connection::rounds;
use crate::error::Tried;
use crate::rows::{
    attempt, count, get, history, job_numbers, key, maybe_time, micros, sequence, shards, time,
};

#[async_trait]
impl AtRiskStore for PostgresStore {
    async fn mark_at_risk(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        self.hot
            .run(job_numbers(jobs), |connection, jobs| async move {
                connection.change(sql!("mark_at_risk"), &[&*jobs]).await?;
                Ok(())
            })
            .await
    }

    async fn to_judge(&self, of: &[Shard], limit: u32, now: Now) -> Result<ToJudge, StoreError> {
        let args = (micros(now.literal()), shards(of), i64::from(limit));
        self.hot
            .run(args, |connection, args| async move {
                let (now, shards, limit) = &*args;
                let (clock, rows) = try_join(
                    connection.row(sql!("now"), &[now]),
                    connection.rows(sql!("to_judge"), &[now, shards, limit]),
                )
                .await?;
                let jobs = rows.iter().map(read_job_to_judge).collect::<Tried<_>>()?;
                Ok(ToJudge { now: time(&clock, 0)?, jobs })
            })
            .await
    }

    async fn judge(&self, batch: Vec<Judgement>, now: Now) -> Result<(), StoreError> {
        self.hot
            .run((batch, micros(now.literal())), |connection, args| async move {
                let (batch, now) = &*args;
                for round in rounds(batch, |judgement| judgement.job) {
                    let judgements: Vec<&Judgement> = round.iter().map(|at| &batch[*at]).collect();
                    judge_round(&connection, &judgements, *now).await?;
                }
                Ok(())
            })
            .await
    }

    async fn overdue_in_queue(
        &self,
        of: &[Shard],
        after: Option<AttemptKey>,
        limit: u32,
        now: Now,
    ) -> Result<OverdueInQueue, StoreError> {
        // Without a cursor, the scan starts at a key that sorts before every attempt key.
        let after = after.map_or((i64::MIN, i64::MIN, i32::MIN, i16::MIN), |key| {
            let (sequence, attempt) = (sequence(key.sequence), attempt(key));
            (key.scheduled_at.as_micros(), key.job_no.0, sequence, attempt)
        });
        let args = (micros(now.literal()), shards(of), after, i64::from(limit));
        self.hot
            .run(args, |connection, args| async move {
                let (now, shards, (scheduled_at, job_no, sequence, attempt), limit) = &*args;
                let sql = sql!("overdue_in_queue");
                let last = connection
                    .maybe_row(sql, &[now, shards, scheduled_at, job_no, sequence, attempt, limit])
                    .await?;
                let Some(last) = last else { return Ok(OverdueInQueue::default()) };
                let (scanned, jobs): (i64, Vec<i64>) =
                    (get(&last, "scanned")?, get(&last, "jobs")?);
                let next = if scanned == *limit { Some(key(&last)?) } else { None };
                Ok(OverdueInQueue { jobs: jobs.into_iter().map(JobNo).collect(), next })
            })
            .await
    }

    async fn condition_counts(&self, scope: &Scope) -> Result<ConditionCounts, StoreError> {
        self.api
            .run(scope.tenant.0, |connection, tenant| async move {
                let sql = sql!("condition_counts");
                let row = connection.maybe_row(sql, &[&*tenant]).await?;
                row.as_ref().map_or(Ok(ConditionCounts::default()), read_counts)
            })
            .await
    }

    async fn all_condition_counts(&self) -> Result<ConditionCounts, StoreError> {
        self.api
            .run((), |connection, _| async move {
                let sql = sql!("all_condition_counts");
                read_counts(&connection.row(sql, &[]).await?)
            })
            .await
    }

    async fn list_at_risk(
        &self,
        scope: &Scope,
        filter: RiskFilter,
        page: PageRequest<RiskCursor>,
    ) -> Result<Page<AtRisk, RiskCursor>, StoreError> {
        self.api
            .run((scope.tenant.0, filter.level, page), |connection, args| async move {
                let (tenant, level, page) = &*args;
                let (error_at, job) = page
                    .after
                    .map_or((i64::MIN, i64::MIN), |(error_at, job)| (error_at.as_micros(), job.0));
                let code = level.map(|level| level as i16);
                // One extra row shows whether there is another page.
                let (offset, limit) = (i64::from(page.offset), i64::from(page.limit) + 1);
                let (rows, counts) = try_join(
                    connection.rows(
                        sql!("list_at_risk"),
                        &[tenant, &error_at, &job, &code, &offset, &limit],
                    ),
                    connection.maybe_row(sql!("condition_counts"), &[tenant]),
                )
                .await?;
                let counts = counts.as_ref().map_or(Ok(ConditionCounts::default()), read_counts)?;
                let mut items = rows.iter().map(read_at_risk).collect::<Tried<Vec<AtRisk>>>()?;
                let is_last = items.len() <= page.limit as usize;
                items.truncate(page.limit as usize);
                let last = items.last().filter(|_| !is_last);
                Ok(Page {
                    next: last.map(|last| (last.error_at, last.no)),
                    total: match level {
                        None => counts.warning + counts.error,
                        Some(Level::Ok) => 0,
                        Some(Level::Warning) => counts.warning,
                        Some(Level::Error) => counts.error,
                    },
                    total_is_estimate: false,
                    items,
                })
            })
            .await
    }
}

fn read_job_to_judge(row: &Row) -> Tried<JobToJudge> {
    let no = JobNo(get(row, "job_no")?);
    Ok(JobToJudge {
        no,
        tenant: TenantNo(get(row, "tenant_no")?),
        touched: get(row, "touched")?,
        before: get::<Option<i16>>(row, "level")?.map(|code| level(no, code)).transpose()?,
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

fn level(job: JobNo, code: i16) -> Result<Level, StoreError> {
    from_code(&Level::ALL, code, format_args!("job {job}"), "level")
}

async fn judge_round(
    connection: &Connection,
    judgements: &[&Judgement],
    now: Option<i64>,
) -> Tried<()> {
    let all = || judgements.iter();
    let job_no: Vec<i64> = all().map(|judgement| judgement.job.0).collect();
    let touched: Vec<i32> = all().map(|judgement| judgement.touched).collect();
    let level: Vec<i16> = all().map(|judgement| judgement.reason.level() as i16).collect();
    let reason: Vec<i16> = all().map(|judgement| judgement.reason as i16).collect();
    let error_at: Vec<i64> = all().map(|judgement| judgement.error_at.as_micros()).collect();
    let again_at: Vec<Option<i64>> = all().map(|judgement| micros(judgement.again_at)).collect();
    let sql = sql!("judge");
    connection
        .change(sql, &[&now, &job_no, &touched, &level, &reason, &error_at, &again_at])
        .await?;
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
