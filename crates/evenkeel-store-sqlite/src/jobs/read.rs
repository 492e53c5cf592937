//! Reads jobs by id, name or number.

use std::collections::BTreeSet;

use evenkeel_core::{JobId, Slot, TenantNo};
use evenkeel_store::{Job, NamedJob, SlotLoad};
use rusqlite::{Connection, params};

use crate::error::Answer;
use crate::rows::{collect, job_from, job_id};

pub(crate) fn get(connection: &Connection, tenant: TenantNo, id: JobId) -> Answer<Option<Job>> {
    let mut statement = connection.prepare_cached(sql!("get_jobs"))?;
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

pub(crate) fn jobs_named(
    connection: &Connection,
    tenant: TenantNo,
    name: &str,
    limit: u32,
) -> Answer<Vec<NamedJob>> {
    let mut statement = connection.prepare_cached(sql!("jobs_named"))?;
    collect(statement.query(params![tenant.0, name, limit])?, |row| {
        Ok(NamedJob { id: job_id(row.get(0)?)?, configuration: row.get(1)? })
    })
}

pub(crate) fn ids_of_numbers(
    connection: &Connection,
    tenant: TenantNo,
    numbers: &[i64],
) -> Answer<Vec<Option<JobId>>> {
    let mut statement = connection.prepare_cached(sql!("ids_of_numbers"))?;
    numbers
        .iter()
        .map(|number| {
            let mut rows = statement.query(params![tenant.0, number])?;
            Ok(rows.next()?.map(|row| row.get(0)).transpose()?.map(job_id).transpose()?)
        })
        .collect()
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
        loads.push(statement.query_row(params![tenant.0, slot.0, limit], |row| {
            Ok(SlotLoad { jobs: row.get("jobs")?, counted_all: row.get("counted_all")? })
        })?);
    }
    Ok(loads)
}
