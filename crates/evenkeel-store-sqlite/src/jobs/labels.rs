//! Stores the labels of jobs, and the columns that job lists filter by.

use evenkeel_core::{About, Definition, JobNo, TenantNo};
use evenkeel_store::labels_of;
use rusqlite::{Connection, params};

use crate::error::Answer;

/// Updates the columns and labels that job lists filter by.
pub(crate) fn rewrite(
    connection: &Connection,
    tenant: TenantNo,
    job: JobNo,
    about: &About,
    definition: &Definition,
) -> Answer<()> {
    connection
        .prepare_cached(sql!("register_details"))?
        .execute(params![job.0, definition.executor.kind, definition.lane as u8,])?;
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
        connection
            .prepare_cached(sql!("register_labels"))?
            .execute(params![tenant.0, key, value, job.0])?;
    }
    Ok(())
}

pub(crate) fn delete(connection: &Connection, job: JobNo) -> Answer<()> {
    let sql = sql!("register_delete_labels");
    connection.prepare_cached(sql)?.execute([job.0])?;
    Ok(())
}
