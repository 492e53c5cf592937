//! Parses the JSON documents of the admin API.

use evenkeel_core::JobId;
use evenkeel_core::order::Priority;
use serde_json::Value;

use super::AdminStatus;
use crate::Fault;
use crate::fault::shown;
use crate::read::Fields;
use crate::read::limits::BULK_IDS_MAX;

/// A job, given by its number or its UUID.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum JobRef {
    /// Number of the job within the tenant.
    Number(i64),
    Id(JobId),
}

impl JobRef {
    /// Parses the job number or UUID in a path.
    pub fn from_text(text: &str) -> Option<Self> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            return text.parse().ok().map(Self::Number);
        }
        text.parse().ok().map(Self::Id)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) => Self::from_text(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Id(_) => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BulkStatus {
    /// The jobs in the order of the request, including repeated jobs.
    pub jobs: Vec<JobRef>,
    pub status: AdminStatus,
}

fn needed<T>(
    fields: &mut Fields<'_>,
    name: &'static str,
    example: &str,
    read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
) -> Option<T> {
    if fields.value(name).is_none() {
        fields.fault(name, format!("is missing; write {example}"));
        return None;
    }
    read(fields)
}

fn status(fields: &mut Fields<'_>) -> Option<AdminStatus> {
    needed(fields, "status", "queued, crawling, success or failed", |fields| {
        fields.word("status", &AdminStatus::words())
    })
}

fn job_ids(fields: &mut Fields<'_>) -> Option<Vec<JobRef>> {
    needed(fields, "job_ids", "a list of ids like [1, 2, 3]", |fields| {
        let mut jobs = Vec::new();
        for (index, item) in fields.items("job_ids", BULK_IDS_MAX).iter().enumerate() {
            match JobRef::from_value(item) {
                Some(job) => jobs.push(job),
                None => {
                    let message =
                        format!("{} is neither the number nor the id of a job", shown(item));
                    fields.fault(&format!("job_ids[{index}]"), message);
                }
            }
        }
        Some(jobs)
    })
}

/// Reads `{"status": "queued"}`.
pub fn read_status(document: &Value) -> Result<AdminStatus, Vec<Fault>> {
    Fields::read_object(document, "the body", status)
}

/// Reads `{"priority": 50}`.
pub fn read_new_priority(document: &Value) -> Result<Priority, Vec<Fault>> {
    Fields::read_object(document, "the body", |fields| number(fields, "priority"))
}

/// Reads `{"boost": 20}`.
pub fn read_boost(document: &Value) -> Result<u8, Vec<Fault>> {
    Fields::read_object(document, "the body", |fields| number(fields, "boost")).map(Priority::get)
}

fn number(fields: &mut Fields<'_>, name: &'static str) -> Option<Priority> {
    needed(fields, name, "a whole number from 0 to 100", |fields| fields.priority(name))
}

/// Reads `{"job_ids": [1, 2, 3], "status": "queued"}`.
pub fn read_bulk_status(document: &Value) -> Result<BulkStatus, Vec<Fault>> {
    Fields::read_object(document, "the body", |fields| {
        let (jobs, status) = (job_ids(fields), status(fields));
        Some(BulkStatus { jobs: jobs?, status: status? })
    })
}

/// Reads `{"job_ids": [1, 2, 3]}`.
pub fn read_bulk_retry(document: &Value) -> Result<Vec<JobRef>, Vec<Fault>> {
    Fields::read_object(document, "the body", job_ids)
}

/// Reads `{"enabled": false}`.
pub fn read_enabled(document: &Value) -> Result<bool, Vec<Fault>> {
    Fields::read_object(document, "the body", |fields| {
        needed(fields, "enabled", "true or false", |fields| fields.flag("enabled"))
    })
}
