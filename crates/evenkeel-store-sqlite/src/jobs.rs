//! What users do with jobs: register, change, look, run now.

use evenkeel_core::{
    About, Definition, JobId, JobNo, Origin, RunKey, Sequence, Shard, Slot, TenantNo, Timestamp,
};
use evenkeel_store::{
    Changed, Job, JobChange, NewJob, Now, Registered, Standing, StoreError, Triggered,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::clock::resolve;
use crate::error::Answer;
use crate::rows::{job_from, job_id, json, micros};
use crate::{labels, openings, watch};

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
        job.definition.executor.kind,
        job.definition.lane as u8,
    ])?;
    let no = JobNo(connection.last_insert_rowid());
    labels::write(connection, tenant, no, about)?;
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
fn tell_scheduler(
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

pub(crate) fn count_jobs(connection: &Connection, tenant: TenantNo, more: i64) -> Answer<()> {
    connection
        .prepare_cached(include_str!("../queries/tenant_count_jobs.sql"))?
        .execute(params![tenant.0, more])?;
    Ok(())
}

/// Another job of the tenant with the same name and configuration.
fn find_namesake(
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

pub(crate) fn update(
    connection: &Connection,
    tenant: TenantNo,
    id: JobId,
    change: JobChange,
    now: Now,
) -> Answer<Changed> {
    let now = resolve(now);
    let Some(job) = get(connection, tenant, id)? else { return Ok(Changed::NotFound) };
    let is_stale = change.expect_generation.is_some_and(|expected| expected != job.generation);
    let goes_back = matches!(change.next_at, Some(Some(at)) if Some(at) <= job.last_fired_at);
    if is_stale || goes_back {
        return Ok(Changed::Conflict(Box::new(job)));
    }
    let about = change.about.unwrap_or(job.about);
    if let Some(other) = find_namesake(connection, tenant, &about, job.no)? {
        return Ok(Changed::NameTaken(other));
    }
    let is_redefined = change.definition.is_some();
    let definition = change.definition.unwrap_or(job.definition);
    connection.prepare_cached(include_str!("../queries/update_job.sql"))?.execute(params![
        job.no.0,
        about.name,
        about.configuration.as_deref().unwrap_or_default(),
        about.source_id,
        json(&about)?,
        json(&definition)?,
        now.as_micros(),
    ])?;
    labels::write_anew(connection, tenant, job.no, &about, &definition)?;
    connection
        .prepare_cached(include_str!("../queries/update_job_state.sql"))?
        .execute(params![job.no.0, definition.schedule.follows_its_end()])?;
    if let Some(next_at) = change.next_at {
        connection.prepare_cached(include_str!("../queries/update_place.sql"))?.execute(
            params![job.no.0, micros(next_at), next_at.map(|at| Slot::of(at).0), now.as_micros(),],
        )?;
    }
    if is_redefined {
        let seen = job.history.average_good_duration;
        openings::open_anew(connection, job.no, &definition, seen, now)?;
    }
    tell_scheduler(connection, job.no, change.next_at.unwrap_or(job.next_at), now)?;
    watch::touch(connection, job.no)?;
    Ok(get(connection, tenant, id)?.map_or(Changed::NotFound, |job| Changed::Done(Box::new(job))))
}

pub(crate) fn trigger(
    connection: &Connection,
    tenant: TenantNo,
    id: JobId,
    n: u32,
    now: Now,
) -> Answer<Triggered> {
    let now = resolve(now);
    let found: Option<(i64, usize, String, u32)> = connection
        .prepare_cached(include_str!("../queries/trigger_find.sql"))?
        .query_row(params![tenant.0, id.0.as_bytes().as_slice()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()?;
    let Some((no, standing, definition, live)) = found else { return Ok(Triggered::NotFound) };
    if Standing::ALL.get(standing) == Some(&Standing::Cancelled) {
        return Ok(Triggered::Cancelled);
    }
    let definition: Definition = serde_json::from_str(&definition)
        .map_err(|cause| StoreError::corrupt(format_args!("job {id}"), "definition", cause))?;
    if !definition.overlap.may_start(live) {
        return Ok(Triggered::Busy);
    }
    let job = JobNo(no);
    let sequence = free_sequence(connection, job, n, now)?;
    let key = RunKey { sequence, ..RunKey::regular(job, now) };
    connection.prepare_cached(include_str!("../queries/trigger_wake.sql"))?.execute(params![
        Shard::of(job).0,
        now.as_micros(),
        now.as_micros(),
        no,
        sequence.bits(),
        key.attempt.0,
        tenant.0,
    ])?;
    connection
        .prepare_cached("UPDATE job_state SET live = live + 1 WHERE job_no = ?1")?
        .execute([no])?;
    watch::touch(connection, job)?;
    Ok(Triggered::Accepted(key))
}

/// The trigger number `n` of this microsecond, or the next one that nobody has.
fn free_sequence(connection: &Connection, job: JobNo, n: u32, now: Timestamp) -> Answer<Sequence> {
    let mut is_taken =
        connection.prepare_cached(include_str!("../queries/trigger_is_taken.sql"))?;
    for step in 0..Sequence::NUMBERS {
        let sequence = Sequence::new(Origin::Trigger, n.wrapping_add(step));
        let taken: bool = is_taken
            .query_row(params![now.as_micros(), job.0, sequence.bits()], |row| row.get(0))?;
        if !taken {
            return Ok(sequence);
        }
    }
    Err(StoreError::Refused("every trigger number of this microsecond is taken".into()).into())
}
