//! The watch list, and what is written on it.

use evenkeel_core::condition::Level;
use evenkeel_core::{AttemptKey, JobNo, Shard, TenantNo};
use evenkeel_store::{JobToJudge, Judgement, Now, OverdueInQueue, StoreError, ToJudge};
use futures::future::try_join;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{
    attempt, get, history, job_numbers, key, maybe_time, micros, sequence, shards, time,
};
use crate::error::Tried;
use crate::pool::Connection;
use crate::rounds::rounds;

pub(super) async fn watch(store: &PostgresStore, jobs: &[JobNo]) -> Result<(), StoreError> {
    store
        .hot
        .run(job_numbers(jobs), |connection, jobs| async move {
            connection.change(sql!("watch"), &[&*jobs]).await?;
            Ok(())
        })
        .await
}

pub(super) async fn to_judge(
    store: &PostgresStore,
    of: &[Shard],
    limit: u32,
    now: Now,
) -> Result<ToJudge, StoreError> {
    let args = (micros(now.literal()), shards(of), i64::from(limit));
    store
        .hot
        .run(args, |connection, args| async move {
            let (now, shards, limit) = &*args;
            let (clock, rows) = try_join(
                connection.row(sql!("now"), &[now]),
                connection.rows(sql!("to_judge"), &[now, shards, limit]),
            )
            .await?;
            let jobs = rows.iter().map(read_watched).collect::<Tried<_>>()?;
            Ok(ToJudge { now: time(&clock, 0)?, jobs })
        })
        .await
}

fn read_watched(row: &Row) -> Tried<JobToJudge> {
    let no = JobNo(get(row, 0)?);
    Ok(JobToJudge {
        no,
        tenant: TenantNo(get(row, 1)?),
        touched: get(row, 2)?,
        before: get::<Option<i16>>(row, 3)?.map(|code| level(no, code)).transpose()?,
        active: get(row, 4)?,
        next_at: maybe_time(row, 5)?,
        last_fired_at: maybe_time(row, 6)?,
        live: get(row, 7)?,
        history: history(row, 8)?,
        since: time(row, 15)?,
        definition: get(row, 16)?,
        running_since: maybe_time(row, 17)?,
    })
}

fn level(job: JobNo, code: i16) -> Result<Level, StoreError> {
    let known = usize::try_from(code).ok().and_then(|code| Level::ALL.get(code)).copied();
    known.ok_or_else(|| {
        StoreError::corrupt(format!("job {job}"), "level", format!("{code} is unknown"))
    })
}

pub(super) async fn judge(
    store: &PostgresStore,
    batch: Vec<Judgement>,
    now: Now,
) -> Result<(), StoreError> {
    store
        .hot
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

pub(super) async fn overdue_in_queue(
    store: &PostgresStore,
    of: &[Shard],
    after: Option<AttemptKey>,
    limit: u32,
    now: Now,
) -> Result<OverdueInQueue, StoreError> {
    // No key is before this one.
    let after = after.map_or((i64::MIN, i64::MIN, i32::MIN, i16::MIN), |key| {
        let (sequence, attempt) = (sequence(key.sequence), attempt(key));
        (key.scheduled_at.as_micros(), key.job_no.0, sequence, attempt)
    });
    let args = (micros(now.literal()), shards(of), after, i64::from(limit));
    store
        .hot
        .run(args, |connection, args| async move {
            let (now, shards, (scheduled_at, job_no, sequence, attempt), limit) = &*args;
            let sql = sql!("overdue_in_queue");
            let last = connection
                .maybe_row(sql, &[now, shards, scheduled_at, job_no, sequence, attempt, limit])
                .await?;
            let Some(last) = last else { return Ok(OverdueInQueue::default()) };
            let (looked_at, jobs): (i64, Vec<i64>) = (get(&last, 4)?, get(&last, 5)?);
            let next = if looked_at == *limit { Some(key(&last, 0)?) } else { None };
            Ok(OverdueInQueue { jobs: jobs.into_iter().map(JobNo).collect(), next })
        })
        .await
}
