//! Records of executed attempts.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::clock::Moment;
use crate::timestamp;

#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Start,
    /// The attempt finished without being killed.
    End,
    /// Another probe of the job held the file lock, so this probe did nothing.
    Overlap,
    /// The receiver refused the HTTP call, because it had already received a call with a higher
    /// fence.
    Refused,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    pub kind: Kind,
    pub job: String,
    pub run: String,
    pub attempt: u32,
    pub fence: u32,
    #[serde(rename = "scheduled_at", deserialize_with = "timestamp::deserialize")]
    pub scheduled_us: i64,
    /// Process id of the server, or 0 if it is unknown.
    pub node_pid: u32,
    #[serde(flatten)]
    pub at: Moment,
}

impl Record {
    /// Returns run, attempt and fence. No two starts may have the same run, attempt and fence.
    pub fn key(&self) -> (&str, u32, u32) {
        (&self.run, self.attempt, self.fence)
    }
}

/// Reads a log of records. Returns no records if the file does not exist, because no attempt of the
/// job has run yet.
pub fn read(file: &Path) -> Result<Vec<Record>> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file:?}"))?;
    // The last line is ignored unless it ends with a line break, because it may not be completely
    // written yet.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |line| serde_json::from_str(line).with_context(|| format!("{file:?}: {line}"));
    whole.lines().map(parse).collect()
}
