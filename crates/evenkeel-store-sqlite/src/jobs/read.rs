//! Reads jobs by id, name or number.

use std::collections::BTreeSet;

use evenkeel_core::{JobId, Slot, TenantNo};
use evenkeel_store::{Job, NamedJob, SlotLoad};
use rusqlite::Connection;

use crate::connection::{RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::{job_from, job_id};

pub(crate) fn get(connection: &Connection, tenant: TenantNo, id: JobId) -> Answer<Option<Job>> {
    connection.maybe_row(sql!("get_jobs"), &[&tenant, &id], |row| job_from(connection, row))
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

pub(crate) fn jobs_named(
    connection: &Connection,
    tenant: TenantNo,
    name: &str,
    limit: u32,
) -> Answer<Vec<NamedJob>> {
    connection.rows(sql!("jobs_named"), &[&tenant, &name, &limit], |row| {
        Ok(NamedJob { id: job_id(row.get(0)?)?, configuration: row.get(1)? })
    })
}

pub(crate) fn ids_of_numbers(
    connection: &Connection,
    tenant: TenantNo,
    numbers: &[i64],
) -> Answer<Vec<Option<JobId>>> {
    let mut statement = connection.prepare_cached(sql!("ids_of_numbers"))?;
    let mut id = |number| statement.maybe_row(&[&tenant, number], |row| Ok(job_id(row.get(0)?)?));
    numbers.iter().map(|number| id(number)).collect()
}

pub(crate) fn slot_loads(
    connection: &Connection,
    tenant: TenantNo,
    slots: &[Slot],
    limit: u32,
) -> Answer<Vec<SlotLoad>> {
    let mut statement = connection.prepare_cached(sql!("slot_loads"))?;
    let mut loads = Vec::with_capacity(slots.len());
    for slot in slots {
        loads.push(statement.row(&[&tenant, slot, &limit], |row| {
            Ok(SlotLoad { jobs: row.get("jobs")?, counted_all: row.get("counted_all")? })
        })?);
    }
    Ok(loads)
}
