//! What of a job lists can be asked for by.

use evenkeel_core::{About, Definition, JobNo, TenantNo};
use evenkeel_store::labels_of;
use rusqlite::{Connection, params};

use crate::error::Answer;

/// Writes down what a job that was changed can be found by.
pub(crate) fn write_anew(
    connection: &Connection,
    tenant: TenantNo,
    job: JobNo,
    about: &About,
    definition: &Definition,
) -> Answer<()> {
    connection.prepare_cached(sql!("register_details"))?.execute(params![
        job.0,
        definition.executor.kind,
        definition.lane as u8,
    ])?;
    forget(connection, job)?;
    write(connection, tenant, job, about)
}

/// Writes down the labels of a job that has none yet.
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

/// A job has no labels any more.
pub(crate) fn forget(connection: &Connection, job: JobNo) -> Answer<()> {
    let sql = sql!("register_delete_labels");
    connection.prepare_cached(sql)?.execute([job.0])?;
    Ok(())
}
