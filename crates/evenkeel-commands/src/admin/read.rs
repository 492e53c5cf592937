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
    /// Parses a job number or UUID, such as that in the path of a request.
    pub fn from_text(text: &str) -> Option<Self> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            text.parse().ok().map(Self::Number)
        } else {
            text.parse().ok().map(Self::Id)
        }
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) => Self::from_text(text),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BulkStatus {
    /// The jobs in the order of the request; a repeated job is contained repeatedly.
    pub jobs: Vec<JobRef>,
    pub status: AdminStatus,
}

fn status(fields: &mut Fields<'_>) -> Option<AdminStatus> {
    fields.require("status", "write queued, crawling, success or failed");
    fields.word("status", &AdminStatus::words())
}

fn job_ids(fields: &mut Fields<'_>) -> Option<Vec<JobRef>> {
    fields.require("job_ids", "write a list of ids like [1, 2, 3]");
    Some(fields.each("job_ids", BULK_IDS_MAX, |item| {
        let message = || format!("{} is neither the number nor the id of a job", shown(item));
        JobRef::from_value(item).ok_or_else(message)
    }))
}

fn read<T>(
    document: &Value,
    read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    Fields::read_object(document, "the body is an object", read)
}

/// Reads `{"status": "queued"}`.
pub fn read_status(document: &Value) -> Result<AdminStatus, Vec<Fault>> {
    read(document, status)
}

/// Reads `{"priority": 50}`.
pub fn read_new_priority(document: &Value) -> Result<Priority, Vec<Fault>> {
    read(document, |fields| number(fields, "priority"))
}

/// Reads `{"boost": 20}`.
pub fn read_boost(document: &Value) -> Result<u8, Vec<Fault>> {
    read(document, |fields| number(fields, "boost")).map(Priority::get)
}

fn number(fields: &mut Fields<'_>, name: &'static str) -> Option<Priority> {
    fields.require(name, "write a whole number from 0 to 100");
    fields.priority(name)
}

/// Reads `{"job_ids": [1, 2, 3], "status": "queued"}`.
pub fn read_bulk_status(document: &Value) -> Result<BulkStatus, Vec<Fault>> {
    read(document, |fields| {
        let (jobs, status) = (job_ids(fields), status(fields));
        Some(BulkStatus { jobs: jobs?, status: status? })
    })
}

/// Reads `{"job_ids": [1, 2, 3]}`.
pub fn read_bulk_retry(document: &Value) -> Result<Vec<JobRef>, Vec<Fault>> {
    read(document, job_ids)
}

/// Reads `{"enabled": false}`.
pub fn read_enabled(document: &Value) -> Result<bool, Vec<Fault>> {
    read(document, |fields| {
        fields.require("enabled", "write true or false");
        fields.flag("enabled")
    })
}
