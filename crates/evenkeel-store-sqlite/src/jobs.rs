//! What users do with jobs: register and look.

use std::collections::BTreeSet;

use evenkeel_core::{About, JobId, JobNo, Shard, Slot, TenantNo, Timestamp};
use evenkeel_store::{Job, JobFilter, NewJob, Now, Page, PageRequest, Registered};
use rusqlite::{Connection, OptionalExtension, params};

use crate::clock::resolve;
use crate::error::Answer;
use crate::rows::{job_from, job_id, json, micros};

/// A filtered list is counted exactly up to here.
const COUNTED_MAX: i64 = 10_000;

pub(crate) fn register(
    connection: &Connection,
    tenant: TenantNo,
    jobs: &[NewJob],
    now: Now,
) -> Answer<Vec<Registered>> {
    let now = resolve(now);
    let mut answers = Vec::with_capacity(jobs.len());
    for job in jobs {
        answers.push(match find_namesake(connection, tenant, &job.about, JobNo(0))? {
            Some(other) => Registered::NameTaken(other),
            None => Registered::Created(register_one(connection, tenant, job, now)?),
        });
    }
    let created = answers.iter().filter(|it| matches!(it, Registered::Created(_))).count();
    count_jobs(connection, tenant, created as i64)?;
    Ok(answers)
}

fn register_one(
    connection: &Connection,
    tenant: TenantNo,
    job: &NewJob,
    now: Timestamp,
) -> Answer<JobNo> {
    let about = &job.about;
    connection.prepare_cached(include_str!("../queries/register_job.sql"))?.execute(params![
        job.id.0.as_bytes().as_slice(),
        tenant.0,
        about.name,
        about.configuration.as_deref().unwrap_or_default(),
        about.source_id,
        json(about)?,
        json(&job.definition)?,
        now.as_micros(),
    ])?;
    let no = JobNo(connection.last_insert_rowid());
    connection.prepare_cached(include_str!("../queries/register_job_state.sql"))?.execute(
        params![
            no.0,
            tenant.0,
            Shard::of(no).0,
            job.next_at.map(|at| Slot::of(at).0),
            now.as_micros(),
            micros(job.next_at),
            job.definition.schedule.follows_its_end(),
        ],
    )?;
    tell_scheduler(connection, no, job.next_at, now)?;
    Ok(no)
}

/// A job that is due before the end of the next slot may have been passed over by the look ahead.
pub(crate) fn tell_scheduler(
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

/// Its scheduler loads it anew.
pub(crate) fn mark_changed(connection: &Connection, job: JobNo) -> Answer<()> {
    connection
        .prepare_cached(include_str!("../queries/register_changed_job.sql"))?
        .execute(params![Shard::of(job).0, job.0])?;
    Ok(())
}

fn count_jobs(connection: &Connection, tenant: TenantNo, more: i64) -> Answer<()> {
    connection
        .prepare_cached(include_str!("../queries/tenant_count_jobs.sql"))?
        .execute(params![tenant.0, more])?;
    Ok(())
}

/// Another job of the tenant with the same name and configuration.
pub(crate) fn find_namesake(
    connection: &Connection,
    tenant: TenantNo,
    about: &About,
    except: JobNo,
) -> Answer<Option<JobId>> {
    let Some(name) = &about.name else { return Ok(None) };
    let configuration = about.configuration.as_deref().unwrap_or_default();
    let found: Option<Vec<u8>> = connection
        .prepare_cached(include_str!("../queries/register_find_names.sql"))?
        .query_row(params![tenant.0, name, configuration, except.0], |row| row.get(0))
        .optional()?;
    Ok(found.map(job_id).transpose()?)
}

pub(crate) fn get(connection: &Connection, tenant: TenantNo, id: JobId) -> Answer<Option<Job>> {
    let mut statement = connection.prepare_cached(include_str!("../queries/get_job.sql"))?;
    let mut rows = statement.query(params![tenant.0, id.0.as_bytes().as_slice()])?;
    rows.next()?.map(|row| job_from(connection, row)).transpose()
}

pub(crate) fn get_jobs(
    connection: &Connection,
    tenant: TenantNo,
    ids: &[JobId],
) -> Answer<Vec<Job>> {
    let ids: BTreeSet<&JobId> = ids.iter().collect();
    let found = ids.into_iter().map(|id| get(connection, tenant, *id));
    found.filter_map(Result::transpose).collect()
}

pub(crate) fn list(
    connection: &Connection,
    tenant: TenantNo,
    filter: &JobFilter,
    page: PageRequest<JobNo>,
) -> Answer<Page<Job, JobNo>> {
    let after = page.after.map_or(0, |no| no.0);
    // One more than asked for tells whether there is a next page.
    let limit = i64::from(page.limit) + 1;
    let (prefix, source) = (&filter.name_prefix, &filter.source_id);
    let (total, total_is_estimate) = count(connection, tenant, filter)?;
    let (sql, parameters) = match (source, prefix) {
        (None, None) => {
            (include_str!("../queries/list_jobs.sql"), params![tenant.0, after, limit, page.offset])
        }
        (None, Some(_)) => (
            include_str!("../queries/list_jobs_by_name.sql"),
            params![tenant.0, after, limit, page.offset, prefix],
        ),
        (Some(_), _) => (
            include_str!("../queries/list_jobs_by_source.sql"),
            params![tenant.0, after, limit, page.offset, prefix, source],
        ),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(job_from(connection, row)?);
    }
    let has_more = items.len() > page.limit as usize;
    items.truncate(page.limit as usize);
    let next = items.last().map(|job| job.no).filter(|_| has_more);
    Ok(Page { items, total, total_is_estimate, next })
}

fn count(connection: &Connection, tenant: TenantNo, filter: &JobFilter) -> Answer<(u64, bool)> {
    let all: Option<i64> = connection
        .prepare_cached("SELECT job_count FROM tenant WHERE tenant_no = ?1")?
        .query_row([tenant.0], |row| row.get(0))
        .optional()?;
    let all = all.unwrap_or(0);
    let (prefix, source) = (&filter.name_prefix, &filter.source_id);
    if prefix.is_none() && source.is_none() {
        return Ok((all.unsigned_abs(), false));
    }
    let most = COUNTED_MAX + 1;
    let found: i64 = if source.is_some() {
        connection
            .prepare_cached(include_str!("../queries/list_jobs_count_by_source.sql"))?
            .query_row(params![tenant.0, prefix, source, most], |row| row.get(0))?
    } else {
        connection
            .prepare_cached(include_str!("../queries/list_jobs_count_by_name.sql"))?
            .query_row(params![tenant.0, prefix, Option::<&str>::None, most], |row| row.get(0))?
    };
    // Beyond that nobody counts; it is somewhere between there and all jobs.
    let is_estimate = found > COUNTED_MAX;
    Ok((if is_estimate { all } else { found }.unsigned_abs(), is_estimate))
}
