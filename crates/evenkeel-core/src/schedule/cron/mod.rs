//! Cron expressions with the fields minute, hour, day of the month, month and day of the week.
//!
//! The module `read` parses a cron expression into a `Pattern`. The module `local` finds run times
//! as if clocks never changed, and `zoned` finds run times in a time zone with clock changes.

mod calendar;
mod fault;
mod field;
mod hash;
mod item;
mod local;
mod pattern;
mod read;
#[cfg(test)]
mod tests;
mod zoned;

pub use fault::CronFault;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::hash::Draws;
use self::pattern::Pattern;
use self::zoned::Zoned;
use super::dst::Dst;
use crate::time::{Span, Timestamp};
use crate::zone::Zone;

/// A cron schedule: the job runs whenever the local time matches the cron expression.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Cron {
    raw: Raw,
    pattern: Pattern,
}

/// The stored form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Raw {
    /// As the user wrote it.
    expression: Arc<str>,
    /// The cron expression in which every `H` is replaced with the job's number; absent if the
    /// expression has no `H`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved: Option<Arc<str>>,
    /// Delay that is added to every run time, so that jobs with the same cron expression do not all
    /// start at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skew_secs: Option<u8>,
}

impl TryFrom<Raw> for Cron {
    type Error = CronFault;

    fn try_from(raw: Raw) -> Result<Self, CronFault> {
        let text = raw.resolved.as_ref().unwrap_or(&raw.expression);
        let pattern = read::pattern(text, Draws::new(0))?;
        if raw.skew_secs.is_some_and(|skew| skew >= 60) {
            let message = "skew_secs must be less than 60".into();
            return Err(CronFault { position: 0, message });
        }
        Ok(Self { raw, pattern })
    }
}

impl From<Cron> for Raw {
    fn from(cron: Cron) -> Self {
        cron.raw
    }
}

impl Cron {
    /// Parses a cron expression with 5 or 6 fields (6 with seconds), or a name like `@daily`.
    pub fn parse(expression: &str) -> Result<Self, CronFault> {
        Raw { expression: expression.into(), resolved: None, skew_secs: None }.try_into()
    }

    /// Returns the schedule of the job with this `seed`: every `H` is replaced with a number.
    /// Unless `exact` is set, all run times are delayed by up to one minute.
    ///
    /// Before `resolved` is called, every `H` stands for the number of seed 0.
    #[must_use]
    pub fn resolved(mut self, seed: u64, exact: bool) -> Self {
        let draws = Draws::new(seed);
        self.raw.skew_secs = (!exact).then(|| draws.skew_secs());
        if let Some(resolved) = read::without_hashes(&self.raw.expression, draws)
            && let Ok(pattern) = read::pattern(&resolved, draws)
        {
            self.raw.resolved = Some(resolved.into());
            self.pattern = pattern;
        }
        self
    }

    /// As the user wrote it.
    pub fn expression(&self) -> &str {
        &self.raw.expression
    }

    /// False if runs start some seconds (the skew) after the times of the cron expression.
    pub fn is_exact(&self) -> bool {
        self.raw.skew_secs.is_none()
    }

    /// True if the job keeps running at the same pace through every clock change. Cron expressions
    /// that name every hour or every minute keep their pace, so the policy for clock changes does
    /// not affect them.
    pub fn keeps_rhythm(&self) -> bool {
        self.pattern.rhythmic
    }

    /// Returns the time between two consecutive runs if it is always the same (without clock
    /// changes), so that an interval would be equivalent. Also returns `None` if an `H` in the cron
    /// expression has not been replaced with a number yet.
    pub fn even_span(&self) -> Option<Span> {
        let open = self.raw.resolved.is_none()
            && read::without_hashes(&self.raw.expression, Draws::new(0)).is_some();
        let secs = self.pattern.even_secs().filter(|_| !open)?;
        Some(Span::from_secs(secs.into()))
    }

    /// Returns the first run time after `after`; `None` if it would be after [`Timestamp::MAX`].
    pub fn next_after(&self, after: Timestamp, zone: &Zone, dst: Dst) -> Option<Timestamp> {
        let from = self.unskewed(after.as_micros().saturating_add(1));
        self.moment(Zoned::new(&self.pattern, zone, dst).at_or_after(from.max(self.first_secs()))?)
    }

    pub fn last_before(&self, before: Timestamp, zone: &Zone, dst: Dst) -> Option<Timestamp> {
        let until = self.unskewed(before.as_micros()).min(self.end_secs());
        self.moment(Zoned::new(&self.pattern, zone, dst).before(until)?)
    }

    /// Counts the run times in `from..until`. Counting takes about as long for a year as for a day.
    pub fn count(&self, from: Timestamp, until: Timestamp, zone: &Zone, dst: Dst) -> u64 {
        let from = self.unskewed(from.as_micros()).max(self.first_secs());
        let until = self.unskewed(until.as_micros()).min(self.end_secs());
        Zoned::new(&self.pattern, zone, dst).count(from, until)
    }

    /// True if a clock change moved the run time `time`, because clocks skipped the local time that
    /// the cron expression names.
    pub fn was_shifted(&self, time: Timestamp, zone: &Zone, dst: Dst) -> bool {
        Zoned::new(&self.pattern, zone, dst).was_moved(self.unskewed(time.as_micros()))
    }

    fn skew_secs(&self) -> i64 {
        i64::from(self.raw.skew_secs.unwrap_or(0))
    }

    /// Returns the first whole second that, with the skew (the job's delay) added, is at or after
    /// `micros`.
    fn unskewed(&self, micros: i64) -> i64 {
        -micros.saturating_neg().div_euclid(1_000_000) - self.skew_secs()
    }

    /// The first second that, with the skew (the job's delay), is not before [`Timestamp::MIN`].
    fn first_secs(&self) -> i64 {
        self.unskewed(Timestamp::MIN.as_micros())
    }

    /// The first second that, with the skew (the job's delay), is after [`Timestamp::MAX`].
    fn end_secs(&self) -> i64 {
        self.unskewed(Timestamp::MAX.as_micros() + 1)
    }

    /// Adds the skew (the job's delay) to `secs`. Returns `None` if the sum is outside the range of
    /// [`Timestamp`].
    fn moment(&self, secs: i64) -> Option<Timestamp> {
        let secs = u64::try_from(secs + self.skew_secs()).ok()?;
        Timestamp::MIN.checked_add(Span::from_secs(secs))
    }
}
