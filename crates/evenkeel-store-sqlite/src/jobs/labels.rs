//! Stores the labels of jobs, and the columns that job lists filter by.

use evenkeel_core::{About, Definition, JobNo, TenantNo};
use evenkeel_store::labels_of;
use rusqlite::Connection;

use crate::connection::RunSql;
use crate::error::Answer;

/// Updates the columns and labels that job lists filter by.
pub(crate) fn rewrite(
    connection: &Connection,
    tenant: TenantNo,
    job: JobNo,
    about: &About,
    definition: &Definition,
) -> Answer<()> {
    let (kind, lane) = (&definition.executor.kind, definition.lane);
    connection.run(sql!("register_details"), &[&job, kind, &lane])?;
    delete(connection, job)?;
    write(connection, tenant, job, about)
}

/// Inserts the labels of a job that has none yet.
pub(crate) fn write(
    connection: &Connection,
    tenant: TenantNo,
    job: JobNo,
    about: &About,
) -> Answer<()> {
    for (key, value) in labels_of(about) {
        connection.run(sql!("register_labels"), &[&tenant, &key, &value, &job])?;
    }
    Ok(())
}

pub(crate) fn delete(connection: &Connection, job: JobNo) -> Answer<()> {
    connection.run(sql!("register_delete_labels"), &[&job])
}
