//! Times by the calendar: minute, hour, day of the month, month, day of the week.

use serde::{Deserialize, Serialize};

use super::dst::Dst;
use crate::time::Timestamp;
use crate::zone::Zone;

/// Whenever local clocks show what an expression says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Cron {
    raw: Raw,
}

/// A cron expression as it is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Raw {
    /// As it was written.
    expression: String,
    /// The same with every `H` replaced by the job's own number, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved: Option<String>,
    /// Added to every time, so that jobs of one expression do not all start at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    skew_secs: u8,
}

fn is_zero(secs: &u8) -> bool {
    *secs == 0
}

/// What is wrong with an expression, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CronFault {
    /// The character it begins at, counted from 0.
    pub position: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl TryFrom<Raw> for Cron {
    type Error = CronFault;

    fn try_from(raw: Raw) -> Result<Self, CronFault> {
        Ok(Self { raw })
    }
}

impl From<Cron> for Raw {
    fn from(cron: Cron) -> Self {
        cron.raw
    }
}

impl Cron {
    /// Reads an expression of 5 fields, of 6 with seconds first, or a name like `@daily`.
    pub fn parse(expression: &str) -> Result<Self, CronFault> {
        Raw { expression: expression.into(), resolved: None, skew_secs: 0 }.try_into()
    }

    /// The same for the job that `seed` was made from: every `H` has its number, and unless the
    /// job is to be `exact`, its times are some seconds later, up to a minute.
    #[must_use]
    pub fn settled(self, _seed: u64, _exact: bool) -> Self {
        self
    }

    /// As it was written.
    pub fn expression(&self) -> &str {
        &self.raw.expression
    }

    /// The first time after `after`; `None` if it lies beyond the times runs may have.
    pub fn next_after(&self, _after: Timestamp, _zone: &Zone, _dst: Dst) -> Option<Timestamp> {
        None
    }

    /// The last time before `before`.
    pub fn last_before(&self, _before: Timestamp, _zone: &Zone, _dst: Dst) -> Option<Timestamp> {
        None
    }

    /// How many times lie in `from..until`. Costs about as much for a year as for a day.
    pub fn count(&self, _from: Timestamp, _until: Timestamp, _zone: &Zone, _dst: Dst) -> u64 {
        0
    }

    /// Is `time`, which is one of its times, there only because the clocks jumped over another?
    pub fn was_shifted(&self, _time: Timestamp, _zone: &Zone, _dst: Dst) -> bool {
        false
    }
}
