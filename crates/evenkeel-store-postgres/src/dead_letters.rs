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
use crate::connection::{Connection, Params};
use crate::dedup::Keys;
use crate::error::{Failure, Tried};
use crate::jobs::{free_keys, get_jobs, read_clock};
use crate::rows::{
    KeyColumns, count, get, job_numbers, key, maybe_time, micros, page_limit, page_of, sequence,
    time,
};

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
    let DeadFilter { job, redriven } = filter;
    let job = job.map(|job| job.0);
    let (limit, offset) = (page_limit(&page), i64::from(page.offset));
    let counted_max = i64::from(COUNTED_MAX) + 1;
    let params: Params<'_> =
        &[&tenant, &died_at, &at, &job_no, &number, &job, &redriven, &limit, &offset];
    let (rows, counted) = try_join(
        connection.rows(sql!("list_dead"), params),
        connection.row(sql!("list_dead_count"), &[&tenant, &job, &redriven, &counted_max]),
    )
    .await?;
    let total = (count(&counted, 0)?, COUNTED_MAX.into());
    page_of(&page, &rows, read_letter, DeadLetter::cursor, total)
}

/// The key of a dead letter: job, scheduled time and sequence of the run.
type Run = (JobNo, i64, i32);

fn run_of(key: AttemptKey) -> Run {
    (key.job_no, key.scheduled_at.as_micros(), sequence(key.sequence))
}

/// Locks rows in the order that all transactions use: jobs, job states, then dead letters.
async fn redrive(
    connection: &Connection,
    tenant: i32,
    runs: &[AttemptKey],
    literal: Option<i64>,
) -> Tried<Vec<Redriven>> {
    let keys: KeyColumns = runs.iter().copied().collect();
    let params: Params<'_> = &[&tenant, &keys.job_no, &keys.scheduled_at, &keys.sequence];
    let rows = connection.rows(sql!("get_dead"), params).await?;
    let mut ids = rows.iter().map(|row| get(row, "job_id")).collect::<Tried<Vec<Uuid>>>()?;
    ids.sort_unstable();
    ids.dedup();
    let rows = connection.rows(sql!("command_lock_jobs"), &[&ids, &tenant]).await?;
    let locked = rows.iter().map(|row| get(row, 0)).collect::<Tried<Vec<i64>>>()?;
    connection.rows(sql!("command_lock_states"), &[&locked]).await?;
    let mut letters: HashMap<Run, Option<AttemptKey>> = HashMap::new();
    for row in &connection.rows(sql!("redrive_lock"), params).await? {
        let job = JobNo(get(row, "job_no")?);
        let before = redriven(row, job)?.map(|(_, run)| run);
        letters.insert((job, get(row, "scheduled_at")?, get(row, "sequence")?), before);
    }
    let now = read_clock(connection, literal).await?;
    let jobs = get_jobs(connection, &ids, tenant).await?;
    let mut jobs: HashMap<JobNo, Job> = jobs.into_iter().map(|job| (job.no, job)).collect();
    let wanted = jobs
        .values()
        .filter_map(|job| Some((DedupKey::of_job(&job.about, &job.definition)?, job.id)));
    let wanted: Vec<(DedupKey, JobId)> = wanted.collect();
    let mut keys = match wanted.is_empty() {
        true => None,
        false => Some(Keys::lock(connection, tenant, wanted.into_iter(), literal).await?),
    };
    let mut answers = Vec::with_capacity(runs.len());
    for run in runs {
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
    let (no, at, number) = run_of(key);
    connection.change(sql!("trigger_open"), &[&no.0, &at, &number, &None::<i16>]).await?;
    let (_, old_at, old_number) = run_of(run);
    let params: Params<'_> = &[&no.0, &old_at, &old_number, &now, &at, &number];
    connection.change(sql!("redrive_mark"), params).await?;
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
        let tenant = scope.tenant.0;
        run!(self.api, |connection| list(connection, tenant, filter, page).await)
    }

    async fn get_dead(
        &self,
        scope: &Scope,
        run: AttemptKey,
    ) -> Result<Option<DeadLetter>, StoreError> {
        let (job, at, number) = run_of(run);
        let params = params![scope.tenant.0, vec![job.0], vec![at], vec![number]];
        self.api.maybe_row(sql!("get_dead"), params, read_letter).await
    }

    async fn are_dead(&self, runs: &[AttemptKey]) -> Result<Vec<bool>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let KeyColumns { job_no, scheduled_at, sequence, .. } = runs.iter().copied().collect();
        let params = params![job_no, scheduled_at, sequence];
        let dead = self.hot.rows(sql!("are_dead"), params, |row| key(row).map(run_of)).await?;
        let dead: HashSet<Run> = dead.into_iter().collect();
        Ok(runs.iter().map(|run| dead.contains(&run_of(*run))).collect())
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
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        transaction!(self.api, runs.to_vec(), |connection, runs| {
            redrive(connection, tenant, runs, now).await
        })
    }

    async fn delete_dead(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
    ) -> Result<Vec<bool>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let KeyColumns { job_no, scheduled_at, sequence, .. } = runs.iter().copied().collect();
        let params = params![scope.tenant.0, job_no, scheduled_at, sequence];
        let read = |row: &Row| key(row).map(run_of);
        let mut deleted = self.api.rows(sql!("delete_dead"), params, read).await?;
        let mut took = |run: &AttemptKey| {
            let position = deleted.iter().position(|deleted| *deleted == run_of(*run));
            position.map(|position| deleted.swap_remove(position)).is_some()
        };
        Ok(runs.iter().map(&mut took).collect())
    }

    async fn prune_dead(
        &self,
        before: Timestamp,
        keep: u32,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let (before, keep, limit) = (before.as_micros(), i64::from(keep), i64::from(limit));
        run!(self.api, |connection| {
            let old = connection.change(sql!("prune_dead_old"), &[&before, &limit]).await?;
            Ok(old + connection.change(sql!("prune_dead_beyond"), &[&keep, &limit]).await?)
        })
    }

    async fn list_failing(&self, limit: u32) -> Result<Vec<FailingJob>, StoreError> {
        self.api.rows(sql!("list_failing"), params![i64::from(limit)], failing_job).await
    }

    async fn prune_failing(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        if !jobs.is_empty() {
            self.api.change(sql!("prune_failing"), params![job_numbers(jobs)]).await?;
        }
        Ok(())
    }
}
