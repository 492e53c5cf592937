//! Stores dead letters, and the failure counts after which jobs pause themselves.

use async_trait::async_trait;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::on_failure::{DeathReason, Hook};
use evenkeel_core::status::Command as Asked;
use evenkeel_core::{AttemptKey, JobNo, Origin, TenantNo, Timestamp};
use evenkeel_store::{
    COUNTED_MAX, DEAD_LETTER_ERROR_MAX, DeadCursor, DeadFilter, DeadLetter, DeadStore, DedupClaim,
    FailingJob, Finish, Now, Page, PageRequest, Redriven, Scope, StoreError, Trigger,
    attempt_key_from_columns, outcome_from_code, sql_time,
};
use rusqlite::{Connection, Row};

use crate::SqliteStore;
use crate::connection::Urgency::{Batch, Command};
use crate::connection::{Params, RunPrepared, RunSql, resolve};
use crate::error::Answer;
use crate::jobs::{read, trigger};
use crate::rows::{capped_total, job_id, key_from, page_of};
use crate::{conditions, dedup};

/// Counts a failed run or stores it as a dead letter, as the failure hook of the job requires.
pub(crate) fn apply_hook(connection: &Connection, finish: &Finish) -> Answer<()> {
    let Finish { key, tenant, finished_at, outcome, .. } = finish;
    match finish.hook {
        Hook::None => {}
        Hook::CountFailure { pause_after } => {
            connection.run(sql!("finish_failing"), &[&key.job_no, &pause_after])?;
        }
        Hook::DeadLetter(reason) => {
            let error = finish.results.error.as_ref();
            let error: Option<String> =
                error.map(|error| error.chars().take(DEAD_LETTER_ERROR_MAX).collect());
            let row: Params<'_> = &[
                &key.job_no, &key.scheduled_at, &key.sequence, &key.attempt, tenant, finished_at,
                &reason, outcome, &error,
            ];
            connection.run(sql!("finish_dead"), row)?;
        }
    }
    Ok(())
}

pub(crate) fn prune_failing(connection: &Connection, job: JobNo) -> Answer<()> {
    connection.run(sql!("prune_failing"), &[&job])
}

fn dead_letter_from(row: &Row<'_>) -> Answer<DeadLetter> {
    let key = key_from(row)?;
    let corrupt = |column| StoreError::corrupt(format!("dead letter of {key}"), column, "unknown");
    let redriven_at = sql_time(row.get("redriven_at")?);
    let redriven = match (redriven_at, row.get("new_at")?, row.get("new_sequence")?) {
        (Some(at), Some(new_at), Some(sequence)) => {
            Some((at, attempt_key_from_columns(new_at, key.job_no.0, sequence, 0)?))
        }
        _ => None,
    };
    Ok(DeadLetter {
        key,
        job: job_id(row.get("id")?)?,
        job_name: row.get("name")?,
        died_at: Timestamp::from_micros(row.get("died_at")?),
        reason: DeathReason::from_code(row.get("reason")?).ok_or_else(|| corrupt("reason"))?,
        outcome: outcome_from_code(row.get("status")?).ok_or_else(|| corrupt("status"))?,
        error: row.get("error")?,
        redriven,
    })
}

fn get(db: &Connection, tenant: TenantNo, run: AttemptKey) -> Answer<Option<DeadLetter>> {
    let which: Params<'_> = &[&tenant, &run.job_no, &run.scheduled_at, &run.sequence];
    db.maybe_row(sql!("get_dead"), which, dead_letter_from)
}

fn are_dead(db: &Connection, runs: &[AttemptKey]) -> Answer<Vec<bool>> {
    let mut statement = db.prepare_cached(sql!("are_dead"))?;
    let mut all = Vec::with_capacity(runs.len());
    for run in runs {
        all.push(statement.has_row(&[&run.job_no, &run.scheduled_at, &run.sequence])?);
    }
    Ok(all)
}

fn list(
    db: &Connection,
    tenant: TenantNo,
    filter: DeadFilter,
    page: PageRequest<DeadCursor>,
) -> Answer<Page<DeadLetter, DeadCursor>> {
    // Without a cursor, the list starts after every dead letter.
    let last = Timestamp::from_micros(i64::MAX);
    let start = DeadCursor { died_at: last, key: AttemptKey::regular(JobNo(i64::MAX), last) };
    let DeadCursor { died_at, key } = page.after.unwrap_or(start);
    let DeadFilter { job, redriven } = filter;
    let limit = i64::from(page.limit) + 1;
    let which: Params<'_> = &[
        &tenant, &died_at, &key.scheduled_at, &key.job_no, &key.sequence, &job, &redriven, &limit,
        &page.offset,
    ];
    let items = db.rows(sql!("list_dead"), which, dead_letter_from)?;
    let counted: Params<'_> = &[&tenant, &job, &redriven, &(COUNTED_MAX + 1)];
    let counted = db.value(sql!("list_dead_count"), counted)?;
    let total = capped_total(counted, u64::from(COUNTED_MAX));
    Ok(page_of(items, page.limit, total, DeadLetter::cursor))
}

fn redrive(
    connection: &Connection,
    tenant: TenantNo,
    run: AttemptKey,
    now: Timestamp,
) -> Answer<Redriven> {
    let Some(letter) = get(connection, tenant, run)? else { return Ok(Redriven::NotFound) };
    if let Some((_, before)) = letter.redriven {
        return Ok(Redriven::AlreadyRedriven(before));
    }
    let Some(job) = read::get(connection, tenant, letter.job)? else {
        return Ok(Redriven::JobGone);
    };
    if let Err(refusal) = job.facts().apply(Asked::Trigger) {
        return Ok(Redriven::NotAllowed(refusal));
    }
    let wanted = DedupClaim::by_run(&job, DedupPurpose::RunAgain, now);
    if let Some(holder) = dedup::holder_of(connection, tenant, wanted.as_ref(), now)? {
        return Ok(Redriven::Duplicate(holder.id));
    }
    if !job.definition.overlap.may_start(job.live) {
        return Ok(Redriven::Busy);
    }
    dedup::take(connection, tenant, wanted.as_ref(), job.no, now)?;
    let request = Trigger { n: 0, priority: None, idle_only: false };
    let key = trigger::start_run(connection, &job, Origin::Redrive, request, now)?;
    conditions::touch(connection, job.no)?;
    let mark: Params<'_> =
        &[&run.job_no, &run.scheduled_at, &run.sequence, &now, &key.scheduled_at, &key.sequence];
    connection.run(sql!("redrive_mark"), mark)?;
    Ok(Redriven::Accepted(key))
}

fn delete(connection: &Connection, tenant: TenantNo, run: AttemptKey) -> Answer<bool> {
    let which: Params<'_> = &[&tenant, &run.job_no, &run.scheduled_at, &run.sequence];
    Ok(connection.change(sql!("delete_dead"), which)? > 0)
}

fn forget(connection: &Connection, before: Timestamp, keep: u32, limit: u32) -> Answer<u64> {
    let old = connection.change(sql!("prune_dead_old"), &[&before, &limit])?;
    let tenants: Vec<i32> =
        connection.rows(sql!("prune_dead_tenants"), &[], |row| Ok(row.get(0)?))?;
    let mut deleted = 0;
    for tenant in tenants {
        let left = u64::from(limit).saturating_sub(deleted);
        deleted += connection.change(sql!("prune_dead_beyond"), &[&tenant, &keep, &left])?;
    }
    Ok(old + deleted)
}

fn list_failing(db: &Connection, limit: u32) -> Answer<Vec<FailingJob>> {
    db.rows(sql!("list_failing"), &[&limit], |row| {
        Ok(FailingJob {
            no: JobNo(row.get("job_no")?),
            id: job_id(row.get("id")?)?,
            tenant: TenantNo(row.get("tenant_no")?),
            failures: row.get("runs")?,
            generation: row.get("generation")?,
            definition: row.get("definition")?,
        })
    })
}

#[async_trait]
impl DeadStore for SqliteStore {
    async fn list_dead(
        &self,
        scope: &Scope,
        filter: DeadFilter,
        page: PageRequest<DeadCursor>,
    ) -> Result<Page<DeadLetter, DeadCursor>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| list(db, tenant, filter, page)).await
    }

    async fn get_dead(
        &self,
        scope: &Scope,
        run: AttemptKey,
    ) -> Result<Option<DeadLetter>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| get(db, tenant, run)).await
    }

    async fn are_dead(&self, runs: &[AttemptKey]) -> Result<Vec<bool>, StoreError> {
        let runs = runs.to_vec();
        self.engine_readers.read(move |db| are_dead(db, &runs)).await
    }

    async fn redrive(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
        now: Now,
    ) -> Result<Vec<Redriven>, StoreError> {
        let (tenant, runs) = (scope.tenant, runs.to_vec());
        self.writer
            .write(Command, runs.len() * 2, move |db| {
                let now = resolve(now);
                runs.iter().map(|run| redrive(db, tenant, *run, now)).collect()
            })
            .await
    }

    async fn delete_dead(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
    ) -> Result<Vec<bool>, StoreError> {
        let (tenant, runs) = (scope.tenant, runs.to_vec());
        self.writer
            .write(Command, runs.len(), move |db| {
                runs.iter().map(|run| delete(db, tenant, *run)).collect()
            })
            .await
    }

    async fn prune_dead(
        &self,
        before: Timestamp,
        keep: u32,
        limit: u32,
    ) -> Result<u64, StoreError> {
        // A reading connection checks first whether there are dead letters to prune, because
        // usually there are none and the writer is not needed.
        let has_old = move |db: &Connection| db.value(sql!("prune_dead_find"), &[&before, &keep]);
        if !self.engine_readers.read(has_old).await? {
            return Ok(0);
        }
        let rows = limit as usize;
        self.writer.write(Batch, rows, move |db| forget(db, before, keep, limit)).await
    }

    async fn list_failing(&self, limit: u32) -> Result<Vec<FailingJob>, StoreError> {
        self.engine_readers.read(move |db| list_failing(db, limit)).await
    }

    async fn prune_failing(&self, jobs: &[JobNo]) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let jobs = jobs.to_vec();
        self.writer
            .write(Batch, jobs.len(), move |db| {
                jobs.iter().try_for_each(|job| prune_failing(db, *job))
            })
            .await
    }
}
