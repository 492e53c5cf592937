//! Plans the import of jobs from other schedulers, entry by entry, without a server.
//!
//! An import plan never guesses the meaning of an entry. A schedule is converted to an interval if
//! both have the same run times, and otherwise keeps its cron expression. Entries that cannot be
//! converted are marked for review with the reason.

mod cron;
pub mod crontab;
pub mod legacy;
mod row;

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::zone::ZoneError;
use evenkeel_core::{TenantNo, Zone};
use serde::Serialize;
use serde_json::Value;

use crate::read_job;

/// What the import does with one entry, such as a line of a crontab.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    Interval,
    Cron,
    Once,
    /// No job is created, because the imported entry has nothing left to run.
    LeftOut,
    /// No job is created until a person has reviewed the imported entry.
    Person,
}

impl Disposition {
    /// All dispositions of entries, in the order in which reports show them.
    pub const ALL: [Self; 5] =
        [Self::Interval, Self::Cron, Self::Once, Self::LeftOut, Self::Person];

    pub const fn creates_job(self) -> bool {
        matches!(self, Self::Interval | Self::Cron | Self::Once)
    }
}

/// The import plan for one entry, such as a line of a crontab.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Planned {
    /// Line or row number of the imported entry, counted from 1.
    pub line: u64,
    pub name: String,
    #[serde(rename = "fate")]
    pub disposition: Disposition,
    /// Reason code of the disposition.
    pub code: &'static str,
    /// Reason of the disposition, and what to do if the entry needs a review.
    pub why: String,
    /// Original schedule of the entry, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// New schedule of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub becomes: Option<String>,
    /// Differences between the job and the original entry that the user should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// True if the job is paused right after it is created.
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

    pub fn for_review(
        line: u64,
        name: impl Into<String>,
        code: &'static str,
        why: impl Into<String>,
    ) -> Self {
        Self::without_job(line, name, Disposition::Person, code, why)
    }

    /// Marks the entry for review, with all faults, if a server would refuse its job document.
    fn checked(self, catalog: ExecutorCatalog) -> Self {
        let read = self.document.as_ref().map(|document| read_job(document, TenantNo(0), &catalog));
        let Some(Err(faults)) = read else { return self };
        let why: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let Self { line, name, was, notes, .. } = self;
        Self { was, notes, ..Self::for_review(line, name, "refused", why.join("; ")) }
    }
}

/// Returns the time zone with this name, and the same time zone for all names that mean UTC.
pub fn zone(name: &str) -> Result<Zone, ZoneError> {
    const UNIVERSAL: [&str; 7] =
        ["etc/utc", "etc/uct", "etc/universal", "etc/zulu", "uct", "universal", "zulu"];
    if UNIVERSAL.contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(Zone::utc());
    }
    Zone::get(name)
}
