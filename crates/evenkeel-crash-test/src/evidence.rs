//! Everything the judge gets to see.

use std::fs::File;
use std::io::Write as _;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::api::Api;
use crate::clock::Moment;
use crate::jobs::Job;
use crate::moment;
use crate::plan::Fault;
use crate::record::Record;

/// A stretch of time, on the wall clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Window {
    pub from_us: i64,
    pub to_us: i64,
}

impl Window {
    /// Do both hold a common moment?
    pub fn touches(self, other: Self) -> bool {
        self.from_us <= other.to_us && other.from_us <= self.to_us
    }
}

/// A fault as it happened.
#[derive(Clone, Debug)]
pub struct Happened {
    pub fault: Fault,
    /// The server it hit, and its process then. None for the database.
    pub victim: Option<(String, u32)>,
    pub from: Moment,
    pub to: Moment,
}

impl Happened {
    /// From its begin to its end.
    pub fn window(&self) -> Window {
        Window { from_us: self.from.wall_us, to_us: self.to.wall_us }
    }
}

/// Times that were skipped, as the API tells.
#[derive(Clone, Debug, Deserialize)]
pub struct Skipped {
    #[serde(rename = "from", deserialize_with = "moment::deserialize")]
    pub from_us: i64,
    #[serde(rename = "to", deserialize_with = "moment::deserialize")]
    pub to_us: i64,
    pub count: u64,
    pub reason: String,
}

/// One attempt, as the API tells.
#[derive(Clone, Debug, Deserialize)]
pub struct Execution {
    /// The job's name; the API gives its id.
    #[serde(skip)]
    pub job: String,
    #[serde(rename = "run_id")]
    pub run: String,
    pub status: String,
    #[serde(rename = "scheduled_at", deserialize_with = "moment::deserialize")]
    pub scheduled_us: i64,
    pub attempt: u32,
    pub fence: u32,
    #[serde(rename = "completed_at", deserialize_with = "moment::deserialize_some")]
    pub finished_us: Option<i64>,
    pub error_message: Option<String>,
    pub skipped: Option<Skipped>,
}

impl Execution {
    /// What a body calls it.
    pub fn key(&self) -> (&str, u32, u32) {
        (&self.run, self.attempt, self.fence)
    }
}

/// Everything the judge gets to see.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub jobs: Vec<Job>,
    pub records: Vec<Record>,
    pub executions: Vec<Execution>,
    pub faults: Vec<Happened>,
    /// When the machine was too busy.
    pub busy: Vec<Window>,
    /// Between these, every scheduled time must be accounted for. The end lies a little before the
    /// servers were told to stop.
    pub judged: Option<Window>,
    /// What went wrong beside: panics, servers that ended by themselves or did not end.
    pub incidents: Vec<String>,
}

/// All executions of a job, page by page. The answers are also kept as they are in `log`, for
/// whoever looks into what went wrong.
pub fn executions(api: &Api, job: &Job, log: &mut File) -> Result<Vec<Execution>> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/v1/jobs/{}/executions?limit=1000{cursor}", job.id);
        let mut page = api.get(&path)?;
        for execution in page["executions"].as_array().into_iter().flatten() {
            writeln!(log, "{execution}")?;
        }
        let items: Vec<Execution> = serde_json::from_value(page["executions"].take())
            .with_context(|| format!("{path} has executions of another shape"))?;
        all.extend(items.into_iter().map(|each| Execution { job: job.name.clone(), ..each }));
        match &page["next_cursor"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => return Ok(all),
        }
    }
}
