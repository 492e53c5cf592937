//! Registers jobs.

use evenkeel_core::balance::Load;
use evenkeel_core::{About, JobId, JobNo, Shard, Slot, TenantNo, Timestamp};
use evenkeel_store::{DedupClaim, JobCommand, NewJob, Registered};
use rusqlite::Connection;

use super::{commands, labels, search_index};
use crate::balance::{Counted, Counts};
use crate::connection::{Params, RunSql};
use crate::dedup;
use crate::error::Answer;
use crate::rows::{job_id, json};

pub(crate) fn register(
    connection: &Connection,
    tenant: TenantNo,
    jobs: &[NewJob],
    loads: &[Option<Load>],
    now: Timestamp,
) -> Answer<Vec<Registered>> {
    let mut counts = Counts::default();
    let mut results = Vec::with_capacity(jobs.len());
    let first: i64 = connection.value(sql!("register_number"), &[&tenant])?;
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
    connection.run(sql!("register_count"), &[&tenant, &(number - first)])?;
    let created = results.iter().filter_map(|result| match result {
        Registered::Created { no, .. } => Some(*no),
        Registered::NameTaken(_) | Registered::Duplicate(_) => None,
    });
    search_index::add(connection, tenant, &created.collect::<Vec<JobNo>>())?;
    counts.write(connection)?;
    Ok(results)
}

/// Registers a job without a next run time and pauses it in the same transaction.
pub(crate) fn register_paused(
    connection: &Connection,
    tenant: TenantNo,
    job: &NewJob,
    now: Timestamp,
) -> Answer<Registered> {
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
    let NewJob { id, about, definition, next_at } = job;
    let configuration = about.configuration.as_deref().unwrap_or_default();
    let (about_text, definition_text) = (json(about)?, json(definition)?);
    let row: Params<'_> = &[
        id, &tenant, &about.name, &configuration, &about.source_id, &about_text, &definition_text,
        &now, &definition.executor.kind, &definition.lane, &number, &about.target,
    ];
    connection.run(sql!("register_job"), row)?;
    let no = JobNo(connection.last_insert_rowid());
    labels::write(connection, tenant, no, about)?;
    let (shard, slot) = (Shard::of(no), next_at.map(Slot::of));
    let follows_end = definition.schedule.follows_its_end();
    let state: Params<'_> = &[
        &no, &tenant, &shard, &slot, &now, next_at, &follows_end, &counted.key, &counted.cost,
        &counted.is_stated,
    ];
    connection.run(sql!("register_job_state"), state)?;
    notify_scheduler(connection, no, *next_at, now)?;
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
    connection.run(sql!("register_changed_job"), &[&Shard::of(job), &job])
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
    let names: Params<'_> = &[&tenant, name, &configuration, &except];
    connection.maybe_row(sql!("register_find_names"), names, |row| Ok(job_id(row.get(0)?)?))
}
