//! Times by the calendar: minute, hour, day of the month, month, day of the week.
//!
//! `read` makes a `Pattern` of an expression, `local` finds its times by a clock that is never
//! changed, `zoned` by the clocks of a zone.

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

/// Whenever local clocks show what an expression says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Cron {
    raw: Raw,
    pattern: Pattern,
}

/// A cron expression as it is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Raw {
    /// As it was written.
    expression: Arc<str>,
    /// The same with every `H` replaced by the job's own number, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved: Option<Arc<str>>,
    /// Added to every time, so that jobs of one expression do not all start at once.
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
    /// Reads an expression of 5 fields, of 6 with seconds first, or a name like `@daily`.
    pub fn parse(expression: &str) -> Result<Self, CronFault> {
        Raw { expression: expression.into(), resolved: None, skew_secs: None }.try_into()
    }

    /// The same for the job that `seed` was made from: every `H` has its number, and unless the
    /// job is to be `exact`, its times are some seconds later, up to a minute.
    ///
    /// Until then it has the numbers of the job with seed 0.
    #[must_use]
    pub fn settled(mut self, seed: u64, exact: bool) -> Self {
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

    /// As it was written.
    pub fn expression(&self) -> &str {
        &self.raw.expression
    }

    /// Does it run at the very times that the expression names? Otherwise some seconds later.
    pub fn is_exact(&self) -> bool {
        self.raw.skew_secs.is_none()
    }

    /// Does it run whenever clocks show one of its times, through every change of them? It does if
    /// it names any hour or any minute, and no policy for changes of the clocks matters to it.
    pub fn keeps_rhythm(&self) -> bool {
        self.pattern.rhythmic
    }

    /// The time between any two neighbours of its times, if that is always the same by clocks that
    /// are never changed: an interval then says the same. `None` also if it has an `H` whose
    /// number is not settled yet.
    pub fn even_span(&self) -> Option<Span> {
        let open = self.raw.resolved.is_none()
            && read::without_hashes(&self.raw.expression, Draws::new(0)).is_some();
        let secs = self.pattern.even_secs().filter(|_| !open)?;
        Some(Span::from_secs(secs.into()))
    }

    /// The first time after `after`; `None` if it lies beyond the times runs may have.
    pub fn next_after(&self, after: Timestamp, zone: &Zone, dst: Dst) -> Option<Timestamp> {
        let from = self.unskewed(after.as_micros().saturating_add(1));
        self.moment(Zoned::new(&self.pattern, zone, dst).at_or_after(from.max(self.first_secs()))?)
    }

    /// The last time before `before`.
    pub fn last_before(&self, before: Timestamp, zone: &Zone, dst: Dst) -> Option<Timestamp> {
        let until = self.unskewed(before.as_micros()).min(self.end_secs());
        self.moment(Zoned::new(&self.pattern, zone, dst).before(until)?)
    }

    /// How many times lie in `from..until`. Costs about as much for a year as for a day.
    pub fn count(&self, from: Timestamp, until: Timestamp, zone: &Zone, dst: Dst) -> u64 {
        let from = self.unskewed(from.as_micros()).max(self.first_secs());
        let until = self.unskewed(until.as_micros()).min(self.end_secs());
        Zoned::new(&self.pattern, zone, dst).count(from, until)
    }

    /// Is `time`, which is one of its times, there only because the clocks jumped over another?
    pub fn was_shifted(&self, time: Timestamp, zone: &Zone, dst: Dst) -> bool {
        Zoned::new(&self.pattern, zone, dst).was_moved(self.unskewed(time.as_micros()))
    }

    fn skew_secs(&self) -> i64 {
        i64::from(self.raw.skew_secs.unwrap_or(0))
    }

    /// The first whole second that, with the skew, is not before `micros`.
    fn unskewed(&self, micros: i64) -> i64 {
        -micros.saturating_neg().div_euclid(1_000_000) - self.skew_secs()
    }

    /// The first second whose time is not before [`Timestamp::MIN`].
    fn first_secs(&self) -> i64 {
        self.unskewed(Timestamp::MIN.as_micros())
    }

    /// The first second whose time is after [`Timestamp::MAX`].
    fn end_secs(&self) -> i64 {
        self.unskewed(Timestamp::MAX.as_micros() + 1)
    }

    /// A time found, with the skew, if runs may have it.
    fn moment(&self, secs: i64) -> Option<Timestamp> {
        let secs = u64::try_from(secs + self.skew_secs()).ok()?;
        Timestamp::MIN.checked_add(Span::from_secs(secs))
    }
}
