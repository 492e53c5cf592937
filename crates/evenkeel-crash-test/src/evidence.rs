//! The data that the checks of the crash test use: records of attempts, faults and answers of the
//! API.

use std::fs::File;
use std::io::Write as _;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::api::Api;
use crate::clock::Moment;
use crate::jobs::Job;
use crate::plan::Fault;
use crate::record::Record;
use crate::timestamp;

/// A range of wall-clock time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Window {
    pub from_us: i64,
    pub to_us: i64,
}

impl Window {
    pub fn overlaps_with(self, other: Self) -> bool {
        self.from_us <= other.to_us && other.from_us <= self.to_us
    }
}

#[derive(Clone, Debug)]
pub struct InjectedFault {
    pub fault: Fault,
    /// Name and process id of the affected server, or `None` for the database.
    pub victim: Option<(String, u32)>,
    pub from: Moment,
    pub to: Moment,
}

impl InjectedFault {
    pub fn window(&self) -> Window {
        Window { from_us: self.from.wall_us, to_us: self.to.wall_us }
    }
}

/// A skip record (scheduled times of a job that were skipped), as the API returns it.
#[derive(Clone, Debug, Deserialize)]
pub struct Skipped {
    #[serde(rename = "from", deserialize_with = "timestamp::deserialize")]
    pub from_us: i64,
    #[serde(rename = "to", deserialize_with = "timestamp::deserialize")]
    pub to_us: i64,
    pub count: u64,
    pub reason: String,
}

/// An attempt, as returned by the API.
#[derive(Clone, Debug, Deserialize)]
pub struct Execution {
    /// Name of the job. The test adds the name, because the API returns only the id of the job.
    #[serde(skip)]
    pub job: String,
    #[serde(rename = "run_id")]
    pub run: String,
    pub status: String,
    #[serde(rename = "scheduled_at", deserialize_with = "timestamp::deserialize")]
    pub scheduled_us: i64,
    pub attempt: u32,
    pub fence: u32,
    #[serde(rename = "completed_at", deserialize_with = "timestamp::deserialize_some")]
    pub finished_us: Option<i64>,
    pub error_message: Option<String>,
    pub skipped: Option<Skipped>,
}

impl Execution {
    pub fn key(&self) -> (&str, u32, u32) {
        (&self.run, self.attempt, self.fence)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub jobs: Vec<Job>,
    pub records: Vec<Record>,
    pub executions: Vec<Execution>,
    pub faults: Vec<InjectedFault>,
    /// Periods in which the machine was overloaded.
    pub busy: Vec<Window>,
    /// The period whose scheduled times are all checked. The checked period ends a few seconds
    /// before the servers drain.
    pub checked: Option<Window>,
    /// Unexpected events, such as panics and servers that ended unexpectedly or did not end.
    pub incidents: Vec<String>,
}

/// Reads all attempts of a job from the API. Also writes the answers of the API to `log`, for an
/// analysis of violations.
pub fn executions(api: &Api, id: &str, name: &str, log: &mut File) -> Result<Vec<Execution>> {
    let path = format!("/api/v1/jobs/{id}/executions");
    let mut all = Vec::new();
    for item in api.list(&path, "executions")? {
        writeln!(log, "{item}")?;
        let execution: Execution = serde_json::from_value(item)
            .with_context(|| format!("{path} has executions of another shape"))?;
        all.push(Execution { job: name.to_owned(), ..execution });
    }
    Ok(all)
}
