//! What bodies wrote down.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::clock::Moment;
use crate::moment;

/// What a body did.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It began.
    Start,
    /// It came to its end, of its own accord.
    End,
    /// It found another body of the same job still going on, and did nothing.
    Overlap,
    /// The receiver of a call had seen a higher fence, and did nothing.
    Refused,
}

/// One line of a body's log.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    pub kind: Kind,
    /// The job's name.
    pub job: String,
    pub run: String,
    /// Counted from 0.
    pub attempt: u32,
    pub fence: u32,
    #[serde(rename = "scheduled_at", deserialize_with = "moment::deserialize")]
    pub scheduled_us: i64,
    /// The server process that started it; 0 where a body can't know.
    pub node_pid: u32,
    #[serde(flatten)]
    pub at: Moment,
}

impl Record {
    /// What nobody may have twice.
    pub fn key(&self) -> (&str, u32, u32) {
        (&self.run, self.attempt, self.fence)
    }
}

/// Everything in one log. There is none before the first body ran.
pub fn read(file: &Path) -> Result<Vec<Record>> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file:?}"))?;
    // A line is written at once, but may be looked at before it is all there.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |line| serde_json::from_str(line).with_context(|| format!("{file:?}: {line}"));
    whole.lines().map(parse).collect()
}
