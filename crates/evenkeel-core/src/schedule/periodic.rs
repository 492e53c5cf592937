//! Periodic jobs, which run often enough to keep their data fresh.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// A periodic schedule promises that at any time, the last successful run began less than `period`
/// ago.
///
/// A run of a periodic job starts as soon as the cooldown after the previous run is over and a
/// worker is free, so the next run time depends on when the previous run finishes. While a run is
/// active, the stored next scheduled time is the latest possible next run time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Periodic {
    period: Span,
    cooldown: Span,
}

#[derive(Deserialize)]
struct Raw {
    period: Span,
    #[serde(default)]
    cooldown: Option<Span>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeriodicError {
    #[error("a period of {0} is shorter than 1s, the shortest period")]
    TooShort(Span),
    /// Longer than 100 years.
    #[error("a period of {0} is longer than 36500d, the longest period")]
    TooLong(Span),
    /// The cooldown after a run is so long that the next run could not succeed within the period.
    #[error("a cooldown of {cooldown} is not shorter than the period of {period}")]
    CooldownTooLong { cooldown: Span, period: Span },
}

impl TryFrom<Raw> for Periodic {
    type Error = PeriodicError;

    fn try_from(raw: Raw) -> Result<Self, PeriodicError> {
        Self::new(raw.period, raw.cooldown)
    }
}

impl Periodic {
    const SHORTEST: Span = Span::from_secs(1);
    pub const LONGEST: Span = Span::from_secs(36_500 * 86_400);

    /// The default cooldown is half the period, so that a short job does not run all the time.
    pub fn new(period: Span, cooldown: Option<Span>) -> Result<Self, PeriodicError> {
        let cooldown = cooldown.unwrap_or(Span::from_micros(period.as_micros() / 2));
        if period < Self::SHORTEST {
            Err(PeriodicError::TooShort(period))
        } else if period > Self::LONGEST {
            Err(PeriodicError::TooLong(period))
        } else if cooldown >= period {
            Err(PeriodicError::CooldownTooLong { cooldown, period })
        } else {
            Ok(Self { period, cooldown })
        }
    }

    pub fn period(self) -> Span {
        self.period
    }

    pub fn cooldown(self) -> Span {
        self.cooldown
    }

    /// Returns the latest possible next scheduled time after the scheduled time `scheduled`.
    pub(super) fn next_after(self, scheduled: Timestamp) -> Option<Timestamp> {
        scheduled.checked_add(self.period)
    }

    /// Returns when the job may start again after a run has finished. A minimum delay applies,
    /// because otherwise a short job without a cooldown would run all the time.
    pub fn after_end(self, ended: Timestamp) -> Timestamp {
        ended.saturating_add(self.cooldown.max(Self::SHORTEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Span = Span::from_secs(3600);

    #[test]
    fn default_cooldown_is_half_the_period() {
        let periodic = Periodic::new(HOUR, None).unwrap();
        assert_eq!(periodic.cooldown(), Span::from_secs(1800));
    }

    #[test]
    fn impossible_periods_are_refused() {
        let error = |period, cooldown| Periodic::new(period, cooldown).unwrap_err().to_string();
        assert_eq!(
            error(HOUR, Some(HOUR)),
            "a cooldown of 1h is not shorter than the period of 1h"
        );
        assert!(error(Span::from_millis(999), None).contains("shortest"));
        assert!(error(Span::from_secs(36_501 * 86_400), None).contains("longest"));
        assert!(serde_json::from_str::<Periodic>(r#"{"period":"1h","cooldown":"2h"}"#).is_err());
    }
}
