//! Stores dead letters, and the failure counts after which jobs pause themselves.

use async_trait::async_trait;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::on_failure::{DeathReason, Hook};
use evenkeel_core::status::Command as Asked;
use evenkeel_core::{AttemptKey, JobId, JobNo, Origin, TenantNo, Timestamp};
use evenkeel_store::{
    COUNTED_MAX, DEAD_LETTER_ERROR_MAX, DeadCursor, DeadFilter, DeadLetter, DeadStore, DedupClaim,
    FailingJob, Finish, Now, Page, PageRequest, Redriven, Scope, StoreError, Trigger,
    attempt_key_from_columns, outcome_from_code, sql_time,
};
use rusqlite::{Connection, Row, params};

use crate::SqliteStore;
use crate::connection::clock::resolve;
use crate::connection::urgency::Urgency::{Batch, Command};
use crate::error::Answer;
use crate::jobs::{read, trigger};
use crate::rows::{collect, job_id, key_from, key_params, page_of};
use crate::{conditions, dedup};

/// Counts a failed run or stores it as a dead letter, as the failure hook of the job requires.
pub(crate) fn apply_hook(connection: &Connection, finish: &Finish) -> Answer<()> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(finish.key);
    match finish.hook {
        Hook::None => {}
        Hook::CountFailure { pause_after } => {
            connection
                .prepare_cached(sql!("finish_failing"))?
                .execute(params![job_no, pause_after])?;
        }
        Hook::DeadLetter(reason) => {
            let error = finish.results.error.as_ref();
            let error: Option<String> =
                error.map(|error| error.chars().take(DEAD_LETTER_ERROR_MAX).collect());
            connection.prepare_cached(sql!("finish_dead"))?.execute(params![
                job_no,
                scheduled_at,
                sequence,
                attempt,
                finish.tenant.0,
                finish.finished_at.as_micros(),
                reason.code(),
                AttemptStatus::from(finish.outcome).code(),
                error,
            ])?;
        }
    }
    Ok(())
}

/// Deletes up to `limit` dead letters of a job.
pub(crate) fn purge(connection: &Connection, job: JobNo, limit: u32) -> Answer<u64> {
    let deleted = connection.prepare_cached(sql!("purge_dead"))?.execute(params![job.0, limit])?;
    Ok(deleted as u64)
}

/// Deletes the count of a job's consecutive failures.
pub(crate) fn prune_failing(connection: &Connection, job: JobNo) -> Answer<()> {
    connection.prepare_cached(sql!("prune_failing"))?.execute([job.0])?;
    Ok(())
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
    let (scheduled_at, job_no, sequence, _) = key_params(run);
    let mut statement = db.prepare_cached(sql!("get_dead"))?;
    let mut rows = statement.query(params![tenant.0, job_no, scheduled_at, sequence])?;
    rows.next()?.map(dead_letter_from).transpose()
}

fn are_dead(db: &Connection, runs: &[AttemptKey]) -> Answer<Vec<bool>> {
    let mut statement = db.prepare_cached(sql!("are_dead"))?;
    let mut all = Vec::with_capacity(runs.len());
    for run in runs {
        let (scheduled_at, job_no, sequence, _) = key_params(*run);
        all.push(statement.exists(params![job_no, scheduled_at, sequence])?);
    }
    Ok(all)
}

fn list(
    db: &Connection,
    tenant: TenantNo,
    filter: DeadFilter,
    page: PageRequest<DeadCursor>,
) -> Answer<Page<DeadLetter, DeadCursor>> {
    let (died_at, (scheduled_at, job_no, sequence, _)) =
        page.after.map_or((i64::MAX, (i64::MAX, i64::MAX, u32::MAX, 0)), |cursor| {
            (cursor.died_at.as_micros(), key_params(cursor.key))
        });
    let job = filter.job.map(|job| job.0.as_bytes().to_vec());
    let limit = i64::from(page.limit) + 1;
    let mut statement = db.prepare_cached(sql!("list_dead"))?;
    let items = collect(
        statement.query(params![
            tenant.0, died_at, scheduled_at, job_no, sequence, job, filter.redriven, limit,
            page.offset,
        ])?,
        dead_letter_from,
    )?;
    let counted: i64 = db
        .prepare_cached(sql!("list_dead_count"))?
        .query_row(params![tenant.0, job, filter.redriven, COUNTED_MAX + 1], |row| row.get(0))?;
    let most = i64::from(COUNTED_MAX);
    let page = page_of(items, page.limit, counted.min(most), DeadLetter::cursor);
    Ok(Page { total_is_estimate: counted > most, ..page })
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
    let key = trigger::start_run(
        connection,
        &job,
        Origin::Redrive,
        Trigger { n: 0, priority: None, idle_only: false },
        now,
    )?;
    conditions::touch(connection, job.no)?;
    let (scheduled_at, job_no, sequence, _) = key_params(run);
    let (new_at, _, new_sequence, _) = key_params(key);
    connection.prepare_cached(sql!("redrive_mark"))?.execute(params![
        job_no,
        scheduled_at,
        sequence,
        now.as_micros(),
        new_at,
        new_sequence
    ])?;
    Ok(Redriven::Accepted(key))
}

fn delete(connection: &Connection, tenant: TenantNo, run: AttemptKey) -> Answer<bool> {
    let (scheduled_at, job_no, sequence, _) = key_params(run);
    let deleted = connection
        .prepare_cached(sql!("delete_dead"))?
        .execute(params![tenant.0, job_no, scheduled_at, sequence])?;
    Ok(deleted > 0)
}

fn has_any_to_prune(db: &Connection, before: Timestamp, keep: u32) -> Answer<bool> {
    let mut statement = db.prepare_cached(sql!("prune_dead_find"))?;
    Ok(statement.query_row(params![before.as_micros(), keep], |row| row.get(0))?)
}

fn forget(connection: &Connection, before: Timestamp, keep: u32, limit: u32) -> Answer<u64> {
    let old = connection
        .prepare_cached(sql!("prune_dead_old"))?
        .execute(params![before.as_micros(), limit])? as u64;
    let mut tenants = connection.prepare_cached(sql!("prune_dead_tenants"))?;
    let tenants: Vec<i32> =
        tenants.query_map([], |row| row.get(0))?.collect::<Result<_, rusqlite::Error>>()?;
    let mut beyond = connection.prepare_cached(sql!("prune_dead_beyond"))?;
    let mut deleted = 0;
    for tenant in tenants {
        let left = u64::from(limit).saturating_sub(deleted);
        deleted += beyond.execute(params![tenant, keep, left.cast_signed()])? as u64;
    }
    Ok(old + deleted)
}

fn list_failing(db: &Connection, limit: u32) -> Answer<Vec<FailingJob>> {
    let mut statement = db.prepare_cached(sql!("list_failing"))?;
    let mut rows = statement.query([limit])?;
    let mut failing = Vec::new();
    while let Some(row) = rows.next()? {
        let id: JobId = job_id(row.get("id")?)?;
        failing.push(FailingJob {
            no: JobNo(row.get("job_no")?),
            id,
            tenant: TenantNo(row.get("tenant_no")?),
            failures: row.get("runs")?,
            generation: row.get("generation")?,
            definition: row.get("definition")?,
        });
    }
    Ok(failing)
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
            .write(Command, runs.len() * 2, move |session| {
                let (connection, now) = (session.connection(), resolve(now));
                runs.iter().map(|run| redrive(connection, tenant, *run, now)).collect()
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
            .write(Command, runs.len(), move |session| {
                runs.iter().map(|run| delete(session.connection(), tenant, *run)).collect()
            })
            .await
    }

    async fn prune_dead(
        &self,
        before: Timestamp,
        keep: u32,
        limit: u32,
    ) -> Result<u64, StoreError> {
        // A reader checks first whether there is anything to prune, because usually there is
        // nothing and the writer is not needed.
        if !self.engine_readers.read(move |db| has_any_to_prune(db, before, keep)).await? {
            return Ok(0);
        }
        self.writer
            .write(Batch, limit as usize, move |session| {
                forget(session.connection(), before, keep, limit)
            })
            .await
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
            .write(Batch, jobs.len(), move |session| {
                jobs.iter().try_for_each(|job| prune_failing(session.connection(), *job))
            })
            .await
    }
}
