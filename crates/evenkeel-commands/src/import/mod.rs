//! Plans the import of jobs from other schedulers, entry by entry, without a server.
//!
//! The plan never guesses. A schedule with the same meaning is converted, one that an interval
//! cannot express keeps its cron expression, and the rest is marked for review with the reason.

mod check;
mod cron;
pub mod crontab;
pub mod legacy;
mod row;

use evenkeel_core::Zone;
use evenkeel_core::zone::ZoneError;
use serde::Serialize;
use serde_json::Value;

/// What happens to one entry of the source.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    Interval,
    Cron,
    Once,
    /// No job: nothing is left to do.
    LeftOut,
    /// No job until a person has decided.
    Person,
}

impl Disposition {
    /// All variants, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Interval, Self::Cron, Self::Once, Self::LeftOut, Self::Person];

    pub const fn creates_job(self) -> bool {
        matches!(self, Self::Interval | Self::Cron | Self::Once)
    }
}

/// The plan for one entry of the source.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Planned {
    /// The line or row, counted from 1.
    pub line: u64,
    pub name: String,
    #[serde(rename = "fate")]
    pub disposition: Disposition,
    /// A reason code.
    pub code: &'static str,
    /// The reason, and what to do where review is needed.
    pub why: String,
    /// The original schedule as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The new schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub becomes: Option<String>,
    /// Differences from the original that the user should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// True: the job is paused right after it is created.
    pub paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
}

impl Planned {
    fn without_job(
        line: u64,
        name: impl Into<String>,
        disposition: Disposition,
        code: &'static str,
        why: impl Into<String>,
    ) -> Self {
        Self {
            line,
            name: name.into(),
            disposition,
            code,
            why: why.into(),
            was: None,
            becomes: None,
            notes: Vec::new(),
            paused: false,
            document: None,
        }
    }

    /// An entry that needs review.
    pub fn for_review(
        line: u64,
        name: impl Into<String>,
        code: &'static str,
        why: impl Into<String>,
    ) -> Self {
        Self::without_job(line, name, Disposition::Person, code, why)
    }
}

/// Returns the zone with this name. The many names of UTC all give UTC.
pub fn zone(name: &str) -> Result<Zone, ZoneError> {
    const UNIVERSAL: [&str; 7] =
        ["etc/utc", "etc/uct", "etc/universal", "etc/zulu", "uct", "universal", "zulu"];
    if UNIVERSAL.contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(Zone::utc());
    }
    Zone::get(name)
}
