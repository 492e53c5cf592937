//! Registers jobs.

use evenkeel_core::balance::Load;
use evenkeel_core::{About, JobId, JobNo, Shard, Slot, TenantNo, Timestamp};
use evenkeel_store::{DedupClaim, JobCommand, NewJob, Now, Registered};
use rusqlite::{Connection, OptionalExtension, params};

use super::{commands, labels};
use crate::balance::{Counted, Counts};
use crate::connection::clock::resolve;
use crate::dedup;
use crate::error::Answer;
use crate::rows::{job_id, json, micros};

pub(crate) fn register(
    connection: &Connection,
    tenant: TenantNo,
    jobs: &[NewJob],
    loads: &[Option<Load>],
    now: Now,
) -> Answer<Vec<Registered>> {
    let now = resolve(now);
    let mut counts = Counts::default();
    let mut results = Vec::with_capacity(jobs.len());
    let first = next_number(connection, tenant)?;
    let mut number = first;
    for (job, load) in jobs.iter().zip(loads) {
        let claim = DedupClaim::by_new(job, now);
        if let Some(other) = dedup::holder_of(connection, tenant, claim.as_ref(), now)? {
            results.push(Registered::Duplicate(other.id));
            continue;
        }
        results.push(match find_namesake(connection, tenant, &job.about, JobNo(0))? {
            Some(other) => Registered::NameTaken(other),
            None => {
                let counted = counts.add(tenant, load.as_ref());
                let no = register_one(connection, tenant, job, number, counted, now)?;
                dedup::take(connection, tenant, claim.as_ref(), no, now)?;
                number += 1;
                Registered::Created { no, number: number - 1 }
            }
        });
    }
    count_jobs(connection, tenant, number - first)?;
    counts.write(connection)?;
    Ok(results)
}

/// Registers a job without a next run time and pauses it in the same transaction.
pub(crate) fn register_paused(
    connection: &Connection,
    tenant: TenantNo,
    job: &NewJob,
    now: Now,
) -> Answer<Registered> {
    let now = Now::At(resolve(now));
    let results = register(connection, tenant, std::slice::from_ref(job), &[None], now)?;
    let result = results.into_iter().next().ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    if matches!(result, Registered::Created { .. }) {
        commands::apply_all(connection, tenant, &[JobCommand::pause(job.id)], now)?;
    }
    Ok(result)
}

fn register_one(
    connection: &Connection,
    tenant: TenantNo,
    job: &NewJob,
    number: i64,
    counted: Counted,
    now: Timestamp,
) -> Answer<JobNo> {
    let about = &job.about;
    connection.prepare_cached(sql!("register_job"))?.execute(params![
        job.id.0.as_bytes().as_slice(),
        tenant.0,
        about.name,
        about.configuration.as_deref().unwrap_or_default(),
        about.source_id,
        json(about)?,
        json(&job.definition)?,
        now.as_micros(),
        job.definition.executor.kind,
        job.definition.lane as u8,
        number,
        about.target,
    ])?;
    let no = JobNo(connection.last_insert_rowid());
    labels::write(connection, tenant, no, about)?;
    connection.prepare_cached(sql!("register_job_state"))?.execute(params![
        no.0,
        tenant.0,
        Shard::of(no).0,
        job.next_at.map(|at| Slot::of(at).0),
        now.as_micros(),
        micros(job.next_at),
        job.definition.schedule.follows_its_end(),
        counted.key,
        counted.cost,
        counted.is_stated,
    ])?;
    notify_scheduler(connection, no, job.next_at, now)?;
    Ok(no)
}

/// Makes the scheduler load the job if the job is due in the current time slot or the next, because
/// the scheduler may have read these slots already.
pub(crate) fn notify_scheduler(
    connection: &Connection,
    job: JobNo,
    next_at: Option<Timestamp>,
    now: Timestamp,
) -> Answer<()> {
    if next_at.is_some_and(|at| Slot::of(at) <= Slot::of(now).next()) {
        mark_changed(connection, job)?;
    }
    Ok(())
}

/// Makes the scheduler load the job again.
pub(crate) fn mark_changed(connection: &Connection, job: JobNo) -> Answer<()> {
    connection
        .prepare_cached(sql!("register_changed_job"))?
        .execute(params![Shard::of(job).0, job.0])?;
    Ok(())
}

fn next_number(connection: &Connection, tenant: TenantNo) -> Answer<i64> {
    Ok(connection
        .prepare_cached(sql!("register_number"))?
        .query_row([tenant.0], |row| row.get(0))?)
}

fn count_jobs(connection: &Connection, tenant: TenantNo, more: i64) -> Answer<()> {
    connection.prepare_cached(sql!("register_count"))?.execute(params![tenant.0, more])?;
    Ok(())
}

/// Returns another job of the tenant that has the same name and configuration.
pub(crate) fn find_namesake(
    connection: &Connection,
    tenant: TenantNo,
    about: &About,
    except: JobNo,
) -> Answer<Option<JobId>> {
    let Some(name) = &about.name else { return Ok(None) };
    let configuration = about.configuration.as_deref().unwrap_or_default();
    let found: Option<Vec<u8>> = connection
        .prepare_cached(sql!("register_find_names"))?
        .query_row(params![tenant.0, name, configuration, except.0], |row| row.get(0))
        .optional()?;
    Ok(found.map(job_id).transpose()?)
}
