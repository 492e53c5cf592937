//! What of a job lists can be asked for by.

use evenkeel_core::{About, Definition};
use evenkeel_store::labels_of;

use crate::error::Tried;
use crate::pool::Connection;

/// Labels of jobs, as arrays.
#[derive(Debug, Default)]
pub(super) struct Labels {
    key: Vec<String>,
    value: Vec<String>,
    job_no: Vec<i64>,
}

impl Labels {
    pub(super) fn push(&mut self, job_no: i64, about: &About) {
        for (key, value) in labels_of(about) {
            self.key.push(key);
            self.value.push(value);
            self.job_no.push(job_no);
        }
    }

    /// Writes them down. Most jobs have none.
    pub(super) async fn write(&self, connection: &Connection, tenant: i32) -> Tried<()> {
        if !self.key.is_empty() {
            let sql = include_str!("../../queries/register_labels.sql");
            connection.change(sql, &[&tenant, &self.key, &self.value, &self.job_no]).await?;
        }
        Ok(())
    }
}

/// Writes down what a job that was changed can be found by.
pub(super) async fn write_anew(
    connection: &Connection,
    tenant: i32,
    job_no: i64,
    about: Option<&About>,
    definition: Option<&Definition>,
) -> Tried<()> {
    if let Some(definition) = definition {
        let sql = include_str!("../../queries/register_traits.sql");
        let lane = definition.lane as i16;
        connection.change(sql, &[&job_no, &definition.executor.kind, &lane]).await?;
    }
    if let Some(about) = about {
        forget(connection, job_no).await?;
        let mut labels = Labels::default();
        labels.push(job_no, about);
        labels.write(connection, tenant).await?;
    }
    Ok(())
}

/// A job has no labels any more.
pub(super) async fn forget(connection: &Connection, job_no: i64) -> Tried<()> {
    let sql = include_str!("../../queries/register_forget_labels.sql");
    connection.change(sql, &[&job_no]).await?;
    Ok(())
}
