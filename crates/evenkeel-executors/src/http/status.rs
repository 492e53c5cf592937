//! Lists of HTTP statuses in a job's configuration.

use std::ops::RangeInclusive;

use evenkeel_core::executor::{ConfigFault, Fields};
use evenkeel_outbound::reqwest::StatusCode;
use serde_json::Value;

/// A list of HTTP statuses and classes of statuses such as `"2xx"`, stored as ranges.
#[derive(Debug)]
pub(super) struct Statuses(Vec<RangeInclusive<u16>>);

impl Statuses {
    /// Reads the field `name`, which holds one status or class, or a list of statuses and classes.
    pub(super) fn parse(fields: &Fields<'_>, name: &str) -> Result<Option<Self>, ConfigFault> {
        let ranges: Option<Vec<_>> = match fields.get(name) {
            None => return Ok(None),
            Some(Value::Array(list)) => list.iter().map(parse_range).collect(),
            Some(one) => parse_range(one).map(|range| vec![range]),
        };
        let ranges = ranges.filter(|ranges| !ranges.is_empty()).ok_or_else(|| {
            let message = "must be a status from 100 to 599, a class like \"2xx\", or a list";
            ConfigFault::new(name, message)
        })?;
        Ok(Some(Self(ranges)))
    }

    pub(super) fn contains(&self, status: StatusCode) -> bool {
        self.0.iter().any(|range| range.contains(&status.as_u16()))
    }

    /// True if the list names this status itself, not only its class such as `2xx`.
    pub(super) fn names(&self, status: StatusCode) -> bool {
        self.0.contains(&(status.as_u16()..=status.as_u16()))
    }
}

fn parse_range(value: &Value) -> Option<RangeInclusive<u16>> {
    let (first, last) = match value.as_str() {
        Some(class) => {
            let digit: u16 =
                class.strip_suffix("xx").filter(|digit| digit.len() == 1)?.parse().ok()?;
            (digit * 100, digit * 100 + 99)
        }
        None => {
            let status = u16::try_from(value.as_u64()?).ok()?;
            (status, status)
        }
    };
    (100..=599).contains(&first).then_some(first..=last)
}
