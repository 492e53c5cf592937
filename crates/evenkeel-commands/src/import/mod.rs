//! What becomes of jobs that lived elsewhere: decided here, row by row, without asking anybody.
//!
//! Nothing is guessed. What means the same here is converted, what an interval can't say keeps its
//! cron expression, and the rest is put before a person with the reason.

mod check;
mod cron;
pub mod crontab;
pub mod legacy;
mod row;

use evenkeel_core::Zone;
use evenkeel_core::zone::ZoneError;
use serde::Serialize;
use serde_json::Value;

/// What becomes of one entry of the source.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// A job that runs at intervals.
    Interval,
    /// A job that keeps its cron expression.
    Cron,
    /// A job that runs once.
    Once,
    /// Nothing: there is nothing left to do for it.
    LeftOut,
    /// Nothing, until a person has decided.
    Person,
}

impl Disposition {
    /// All of them, in the order they are told.
    pub const ALL: [Self; 5] =
        [Self::Interval, Self::Cron, Self::Once, Self::LeftOut, Self::Person];

    /// Is a job made?
    pub const fn makes_a_job(self) -> bool {
        matches!(self, Self::Interval | Self::Cron | Self::Once)
    }
}

/// What is to be done about one entry of the source.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Planned {
    /// The line or row it stands in, counted from 1.
    pub line: u64,
    /// What it is called.
    pub name: String,
    /// What becomes of it.
    pub fate: Disposition,
    /// Why, for programs.
    pub code: &'static str,
    /// Why, for people; and what can be done, where a person must.
    pub why: String,
    /// When it ran there, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// When it will run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub becomes: Option<String>,
    /// What is different here and worth knowing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Is the job to be paused as soon as it is made?
    pub paused: bool,
    /// The document of the job, if one is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
}

impl Planned {
    /// One that no job is made of.
    fn without_job(
        line: u64,
        name: impl Into<String>,
        fate: Disposition,
        code: &'static str,
        why: impl Into<String>,
    ) -> Self {
        Self {
            line,
            name: name.into(),
            fate,
            code,
            why: why.into(),
            was: None,
            becomes: None,
            notes: Vec::new(),
            paused: false,
            document: None,
        }
    }

    /// One that a person must decide about.
    pub fn for_a_person(
        line: u64,
        name: impl Into<String>,
        code: &'static str,
        why: impl Into<String>,
    ) -> Self {
        Self::without_job(line, name, Disposition::Person, code, why)
    }
}

/// The zone called `name`. Universal time has many names, of which one is kept.
pub fn zone(name: &str) -> Result<Zone, ZoneError> {
    const UNIVERSAL: [&str; 7] =
        ["etc/utc", "etc/uct", "etc/universal", "etc/zulu", "uct", "universal", "zulu"];
    if UNIVERSAL.contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(Zone::utc());
    }
    Zone::get(name)
}
