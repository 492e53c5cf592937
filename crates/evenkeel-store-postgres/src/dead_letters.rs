//! Dead letters (runs that failed after all retries), and jobs that fail repeatedly.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use evenkeel_core::dedup::{DedupKey, DedupPurpose};
use evenkeel_core::on_failure::DeathReason;
use evenkeel_core::status::Command;
use evenkeel_core::{AttemptKey, JobId, JobNo, Origin, TenantNo, Timestamp};
use evenkeel_store::{
    COUNTED_MAX, DeadCursor, DeadFilter, DeadLetter, DeadStore, DedupClaim, FailingJob, Job, Now,
    Page, PageRequest, Redriven, Scope, StoreError, attempt_key_from_columns, from_code,
    outcome_from_code,
};
use futures::future::try_join;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::dedup::Keys;
use crate::error::{Failure, Tried};
use crate::jobs::{free_keys, get_jobs, read_clock};
use crate::rows::{KeyColumns, count, get, job_numbers, key, maybe_time, micros, sequence, time};

fn read_letter(row: &Row) -> Tried<DeadLetter> {
    let key = key(row)?;
    let status: i16 = get(row, "status")?;
    let name = format!("dead letter of {key}");
    let unknown = || StoreError::corrupt(&name, "status", format!("unknown code {status}"));
    Ok(DeadLetter {
        key,
        job: JobId(get(row, "job_id")?),
        job_name: get(row, "job_name")?,
        died_at: time(row, "died_at")?,
        reason: from_code(&DeathReason::ALL, get(row, "reason")?, &name, "reason")?,
        outcome: outcome_from_code(status).ok_or_else(unknown)?,
        error: get(row, "error")?,
        redriven: redriven(row, key.job_no)?,
    })
}

/// Reads when a dead letter was redriven, and which run the redrive started.
fn redriven(row: &Row, job: JobNo) -> Tried<Option<(Timestamp, AttemptKey)>> {
    let columns = (maybe_time(row, "redriven_at")?, get(row, "new_at")?, get(row, "new_sequence")?);
    match columns {
        (Some(at), Some(new_at), Some(new_sequence)) => {
            Ok(Some((at, attempt_key_from_columns(new_at, job.0, new_sequence, 0)?)))
        }
        _ => Ok(None),
    }
}

async fn list(
    connection: &Connection,
    tenant: i32,
    filter: DeadFilter,
    page: PageRequest<DeadCursor>,
) -> Tried<Page<DeadLetter, DeadCursor>> {
    let (died_at, at, job_no, number) = page.after.map_or(
        (i64::MAX, i64::MAX, i64::MAX, i32::MAX),
        |DeadCursor { died_at, key }| {
            let (at, number) = (key.scheduled_at.as_micros(), sequence(key.sequence));
            (died_at.as_micros(), at, key.job_no.0, number)
        },
    );
    let job = filter.job.map(|job| job.0);
    // One extra row shows whether there is another page, or whether there are more rows than are
    // counted.
    let (limit, offset) = (i64::from(page.limit) + 1, i64::from(page.offset));
    let counted_max = i64::from(COUNTED_MAX) + 1;
    let (rows, counted) = try_join(
        connection.rows(
            sql!("list_dead"),
            &[&tenant, &died_at, &at, &job_no, &number, &job, &filter.redriven, &limit, &offset],
        ),
        connection.row(sql!("list_dead_count"), &[&tenant, &job, &filter.redriven, &counted_max]),
    )
    .await?;
    let mut items = rows.iter().map(read_letter).collect::<Tried<Vec<DeadLetter>>>()?;
    let is_last = items.len() <= page.limit as usize;
    items.truncate(page.limit as usize);
    let next = items.last().map(DeadLetter::cursor).filter(|_| !is_last);
    let (total, most) = (count(&counted, 0)?, u64::from(COUNTED_MAX));
    Ok(Page { items, total: total.min(most), total_is_estimate: total > most, next })
}

struct Redrive {
    tenant: i32,
    runs: Vec<AttemptKey>,
    now: Option<i64>,
}

/// The key of a dead letter: job, scheduled time and sequence of the run.
type Run = (JobNo, i64, i32);

fn run_of(key: AttemptKey) -> Run {
    (key.job_no, key.scheduled_at.as_micros(), sequence(key.sequence))
}

/// Locks rows in the order that all transactions use: jobs, job states, then dead letters.
async fn redrive(connection: &Connection, args: &Redrive) -> Tried<Vec<Redriven>> {
    let keys: KeyColumns = args.runs.iter().copied().collect();
    let KeyColumns { job_no, scheduled_at, sequence: numbers, .. } = &keys;
    let sql = sql!("get_dead");
    let rows = connection.rows(sql, &[&args.tenant, job_no, scheduled_at, numbers]).await?;
    let mut ids: Vec<Uuid> = rows.iter().map(|row| get(row, "job_id")).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    let sql = sql!("command_lock_jobs");
    let rows = connection.rows(sql, &[&ids, &args.tenant]).await?;
    let locked = rows.iter().map(|row| Ok(get(row, 0)?)).collect::<Tried<Vec<i64>>>()?;
    let sql = sql!("command_lock_states");
    connection.rows(sql, &[&locked]).await?;
    let sql = sql!("redrive_lock");
    let rows = connection.rows(sql, &[&args.tenant, job_no, scheduled_at, numbers]).await?;
    let mut letters: HashMap<Run, Option<AttemptKey>> = HashMap::new();
    for row in &rows {
        let job = JobNo(get(row, "job_no")?);
        let before = redriven(row, job)?.map(|(_, run)| run);
        letters.insert((job, get(row, "scheduled_at")?, get(row, "sequence")?), before);
    }
    let now = read_clock(connection, args.now).await?;
    let jobs = get_jobs(connection, &ids, args.tenant).await?;
    let mut jobs: HashMap<JobNo, Job> = jobs.into_iter().map(|job| (job.no, job)).collect();
    let wanted = jobs
        .values()
        .filter_map(|job| Some((DedupKey::of_job(&job.about, &job.definition)?, job.id)));
    let wanted: Vec<(DedupKey, JobId)> = wanted.collect();
    let mut keys = match wanted.is_empty() {
        true => None,
        false => Some(Keys::lock(connection, args.tenant, wanted.into_iter(), args.now).await?),
    };
    let mut answers = Vec::with_capacity(args.runs.len());
    for run in &args.runs {
        let Some(letter) = letters.get_mut(&run_of(*run)) else {
            answers.push(Redriven::NotFound);
            continue;
        };
        let answer = match (*letter, jobs.get_mut(&run.job_no)) {
            (Some(before), _) => Redriven::AlreadyRedriven(before),
            (None, None) => Redriven::JobGone,
            (None, Some(job)) => redrive_one(connection, *run, job, &mut keys, now).await?,
        };
        if let Redriven::Accepted(key) = answer {
            *letter = Some(key);
        }
        answers.push(answer);
    }
    if let Some(keys) = keys {
        keys.write(connection).await?;
    }
    Ok(answers)
}

/// Starts a new run in place of a dead letter, if the job allows that.
async fn redrive_one(
    connection: &Connection,
    run: AttemptKey,
    job: &mut Job,
    keys: &mut Option<Keys>,
    now: i64,
) -> Tried<Redriven> {
    if let Err(refusal) = job.facts().apply(Command::Trigger) {
        return Ok(Redriven::NotAllowed(refusal));
    }
    let at = Timestamp::from_micros(now);
    let wanted = DedupClaim::by_run(job, DedupPurpose::RunAgain, at);
    let mut keyed = keys.as_mut().zip(wanted.as_ref());
    if let Some((keys, wanted)) = &keyed
        && let Some(held) = keys.kept_out_by(wanted, at)
    {
        return Ok(Redriven::Duplicate(held.job));
    }
    if !job.definition.overlap.may_start(job.live) {
        return Ok(Redriven::Busy);
    }
    if let Some((keys, wanted)) = &mut keyed {
        keys.take(wanted);
    }
    let keys = free_keys(connection, Origin::Redrive, &[(&*job, 0)], now).await?;
    let key = *keys.first().ok_or(Failure::Again)?;
    job.live += 1;
    job.waiting += 1;
    let (at, number) = (key.scheduled_at.as_micros(), sequence(key.sequence));
    let sql = sql!("trigger_open");
    connection.change(sql, &[&job.no.0, &at, &number, &None::<i16>]).await?;
    let (_, old_at, old_number) = run_of(run);
    let sql = sql!("redrive_mark");
    connection.change(sql, &[&job.no.0, &old_at, &old_number, &now, &at, &number]).await?;
    Ok(Redriven::Accepted(key))
}

fn failing_job(row: &Row) -> Tried<FailingJob> {
    Ok(FailingJob {
        no: JobNo(get(row, "job_no")?),
        id: JobId(get(row, "id")?),
        tenant: TenantNo(get(row, "tenant_no")?),
        failures: get::<i32>(row, "runs")?.max(0).cast_unsigned(),
        generation: get(row, "generation")?,
        definition: get(row, "definition")?,
    })
}

#[async_trait]
impl DeadStore for PostgresStore {
    async fn list_dead(
        &self,
        scope: &Scope,
        filter: DeadFilter,
        page: PageRequest<DeadCursor>,
    ) -> Result<Page<DeadLetter, DeadCursor>, StoreError> {
        self.api
            .run((scope.tenant.0, filter, page), |connection, args| async move {
                list(&connection, args.0, args.1, args.2).await
            })
            .await
    }

    async fn get_dead(
        &self,
        scope: &Scope,
        run: AttemptKey,
    ) -> Result<Option<DeadLetter>, StoreError> {
        self.api
            .run((scope.tenant.0, run), |connection, args| async move {
                let keys: KeyColumns = [args.1].into_iter().collect();
                let KeyColumns { job_no, scheduled_at, sequence, .. } = &keys;
                let sql = sql!("get_dead");
                let row =
                    connection.maybe_row(sql, &[&args.0, job_no, scheduled_at, sequence]).await?;
                row.as_ref().map(read_letter).transpose()
            })
            .await
    }

    async fn are_dead(&self, runs: &[AttemptKey]) -> Result<Vec<bool>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        self.hot
            .run(runs.to_vec(), |connection, runs| async move {
                let keys: KeyColumns = runs.iter().copied().collect();
                let KeyColumns { job_no, scheduled_at, sequence, .. } = &keys;
                let sql = sql!("are_dead");
                let rows = connection.rows(sql, &[job_no, scheduled_at, sequence]).await?;
                let mut dead = HashSet::with_capacity(rows.len());
                for row in &rows {
                    dead.insert(run_of(key(row)?));
                }
                Ok(runs.iter().map(|run| dead.contains(&run_of(*run))).collect())
            })
            .await
    }

    async fn redrive(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
        now: Now,
    ) -> Result<Vec<Redriven>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let (tenant, runs) = (scope.tenant.0, runs.to_vec());
        let args = Redrive { tenant, runs, now: micros(now.literal()) };
        self.api
            .run(args, |connection, args| async move {
                connection.transaction(redrive(&connection, &args)).await
            })
            .await
    }

    async fn delete_dead(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
    ) -> Result<Vec<bool>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        self.api
            .run((scope.tenant.0, runs.to_vec()), |connection, args| async move {
                let (tenant, runs) = &*args;
                let keys: KeyColumns = runs.iter().copied().collect();
                let KeyColumns { job_no, scheduled_at, sequence, .. } = &keys;
                let sql = sql!("delete_dead");
                let rows = connection.rows(sql, &[tenant, job_no, scheduled_at, sequence]).await?;
                let mut deleted = Vec::with_capacity(rows.len());
                for row in &rows {
                    deleted.push(run_of(key(row)?));
                }
                let mut took = |run: &AttemptKey| {
                    let position = deleted.iter().position(|deleted| *deleted == run_of(*run));
                    position.map(|position| deleted.swap_remove(position)).is_some()
                };
                Ok(runs.iter().map(&mut took).collect())
            })
            .await
    }

    async fn prune_dead(
        &self,
        before: Timestamp,
        keep: u32,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let args = (before.as_micros(), i64::from(keep), i64::from(limit));
        self.api
            .run(args, |connection, args| async move {
                let (before, keep, limit) = &*args;
                let sql = sql!("prune_dead_old");
                let old = connection.change(sql, &[before, limit]).await?;
                let sql = sql!("prune_dead_beyond");
                Ok(old + connection.change(sql, &[keep, limit]).await?)
            })
            .await
    }

    async fn list_failing(&self, limit: u32) -> Result<Vec<FailingJob>, StoreError> {
        self.api
            .run(i64::from(limit), |connection, limit| async move {
                let sql = sql!("list_failing");
                connection.rows(sql, &[&*limit]).await?.iter().map(failing_job).collect()
            })
            .await
    }

    async fn prune_failing(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        self.api
            .run(job_numbers(jobs), |connection, jobs| async move {
                let sql = sql!("prune_failing");
                connection.change(sql, &[&*jobs]).await?;
                Ok(())
            })
            .await
    }
}
