//! Labels of jobs, by which job lists can be filtered.

use evenkeel_core::{About, JobNo};
use evenkeel_store::{Job, JobChange, labels_of};

use crate::connection::Connection;
use crate::error::Tried;

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

    pub(super) async fn write(&self, connection: &Connection, tenant: i32) -> Tried<()> {
        let Self { key, value, job_no } = self;
        if !key.is_empty() {
            connection.change(sql!("register_labels"), &[&tenant, key, value, job_no]).await?;
        }
        Ok(())
    }
}

/// Executor, lane and labels of changed jobs, as arrays.
#[derive(Debug, Default)]
pub(super) struct ChangedLabels {
    /// Jobs whose old labels are deleted.
    stripped: Vec<i64>,
    labels: Labels,
    job_no: Vec<i64>,
    executor: Vec<String>,
    lane: Vec<i16>,
}

impl ChangedLabels {
    /// Adds the changed labels, executor and lane of a job; most changes of jobs affect none of
    /// them.
    pub(super) fn push(&mut self, job: &Job, change: &JobChange) {
        if let Some(about) = &change.about
            && about.metadata != job.about.metadata
        {
            self.stripped.push(job.no.0);
            self.labels.push(job.no.0, about);
        }
        let (old, new) = (&job.definition, change.definition.as_ref());
        if let Some(new) = new
            && (new.executor.kind != old.executor.kind || new.lane != old.lane)
        {
            self.job_no.push(job.no.0);
            self.executor.push(new.executor.kind.clone());
            self.lane.push(new.lane as i16);
        }
    }

    pub(super) fn delete(&mut self, job: JobNo) {
        self.stripped.push(job.0);
    }

    pub(super) async fn write(&self, connection: &Connection, tenant: i32) -> Tried<()> {
        let Self { stripped, labels, job_no, executor, lane } = self;
        if !job_no.is_empty() {
            connection.change(sql!("register_details"), &[job_no, executor, lane]).await?;
        }
        if !stripped.is_empty() {
            connection.change(sql!("register_delete_labels"), &[stripped]).await?;
        }
        labels.write(connection, tenant).await
    }
}
