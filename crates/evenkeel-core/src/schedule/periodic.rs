//! Often enough.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// Never staler than a period: at any moment, a good run began less than `period` ago.
///
/// This is no interval. It starts as soon as it may and there is room, so its next time follows from
/// the end of the run before. While that is not known, its next time is the latest one there can be.
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

/// A period that cannot be kept.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeriodicError {
    /// Shorter than a second.
    #[error("a period of {0} is shorter than 1s, the shortest there is")]
    TooShort(Span),
    /// Longer than a hundred years.
    #[error("a period of {0} is longer than 36500d, the longest there is")]
    TooLong(Span),
    /// With such a pause, no run can follow the other in time.
    #[error("a cooldown of {cooldown} is not shorter than the period of {period}")]
    CooldownTooLong {
        /// The pause after a run.
        cooldown: Span,
        /// The staleness it would have to fit in.
        period: Span,
    },
}

impl TryFrom<Raw> for Periodic {
    type Error = PeriodicError;

    fn try_from(raw: Raw) -> Result<Self, PeriodicError> {
        Self::new(raw.period, raw.cooldown)
    }
}

impl Periodic {
    const SHORTEST: Span = Span::from_secs(1);
    const LONGEST: Span = Span::from_secs(36_500 * 86_400);

    /// At most `period` stale, with a pause of `cooldown` after each run; half the period, if none
    /// is given, so that what is cheap to run does not run all the time.
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

    /// How stale it may be.
    pub fn period(self) -> Span {
        self.period
    }

    /// The pause after each run.
    pub fn cooldown(self) -> Span {
        self.cooldown
    }

    /// The latest time there can be after the run for `scheduled`.
    pub(super) fn next_after(self, scheduled: Timestamp) -> Option<Timestamp> {
        scheduled.checked_add(self.period)
    }

    /// When it may start again once a run has ended: not at once, or what is cheap to run and has no
    /// cooldown would run all the time.
    pub fn after_end(self, ended: Timestamp) -> Timestamp {
        ended.saturating_add(self.cooldown.max(Self::SHORTEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Span = Span::from_secs(3600);

    #[test]
    fn without_a_cooldown_it_pauses_for_half_its_period() {
        let periodic = Periodic::new(HOUR, None).unwrap();
        assert_eq!(periodic.cooldown(), Span::from_secs(1800));
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
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
