//! Calendar intervals: a job runs every few days, weeks, months or years.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use serde::{Deserialize, Serialize};

use super::dst::{Dst, Gap, Overlap};
use crate::time::{Span, Timestamp, text_form};
use crate::zone::{Local, Zone};

/// A calendar interval of years, months, weeks and days, plus hours, in ISO 8601 form: `P1M`,
/// `P1DT12H`. One day lasts until the same local time of the next day, even if a clock change makes
/// the day shorter or longer.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct CalendarSpan {
    months: u32,
    days: u32,
    time: Span,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// The text is not an ISO 8601 duration, or it contains no years, months, weeks or days.
    #[error("not a calendar duration: write it like P1D, P1M or P1DT12H")]
    Unreadable,
    /// Longer than 100 years.
    #[error("longer than P100Y, the longest interval")]
    TooLong,
}

impl FromStr for CalendarSpan {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let text = text.trim();
        let span: jiff::Span = match text.starts_with(['P', 'p']) {
            true => text.parse().map_err(|_| CalendarError::Unreadable)?,
            false => return Err(CalendarError::Unreadable),
        };
        let time = jiff::Span::new()
            .hours(span.get_hours())
            .minutes(span.get_minutes())
            .seconds(span.get_seconds())
            .milliseconds(span.get_milliseconds())
            .microseconds(span.get_microseconds())
            .total(jiff::Unit::Microsecond)
            .map_err(|_| CalendarError::Unreadable)?;
        if span.is_negative() || time < 0.0 {
            return Err(CalendarError::Unreadable);
        }
        let months = i64::from(span.get_years()) * 12 + i64::from(span.get_months());
        let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
        if months == 0 && days == 0 {
            return Err(CalendarError::Unreadable);
        }
        if months > 1200 || days > 36_500 || time > 36_500.0 * 86_400e6 {
            return Err(CalendarError::TooLong);
        }
        let small = |number| u32::try_from(number).map_err(|_| CalendarError::TooLong);
        Ok(Self {
            months: small(months)?,
            days: small(days)?,
            time: Span::from_micros(time as u64),
        })
    }
}

impl fmt::Display for CalendarSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("P")?;
        for (number, unit) in [(self.months / 12, 'Y'), (self.months % 12, 'M'), (self.days, 'D')] {
            if number > 0 {
                write!(f, "{number}{unit}")?;
            }
        }
        let secs = self.time.as_micros() / 1_000_000;
        if !self.time.is_zero() {
            f.write_str("T")?;
            for (number, unit) in [(secs / 3600, 'H'), (secs / 60 % 60, 'M')] {
                if number > 0 {
                    write!(f, "{number}{unit}")?;
                }
            }
            let micros = self.time.as_micros() % 1_000_000;
            if micros > 0 {
                write!(f, "{}.{micros:06}S", secs % 60)?;
            } else if !secs.is_multiple_of(60) {
                write!(f, "{}S", secs % 60)?;
            }
        }
        Ok(())
    }
}

text_form!(CalendarSpan, parsed);

impl CalendarSpan {
    /// The approximate length.
    pub fn roughly(self) -> Span {
        const MONTH_SECS: u64 = 2_629_746;
        let days =
            Span::from_secs(u64::from(self.months) * MONTH_SECS + u64::from(self.days) * 86_400);
        Span::from_micros(days.as_micros() + self.time.as_micros())
    }

    /// Returns `date` plus `n` calendar intervals, without the hours of the intervals. In a shorter
    /// month, the last day of the month replaces the 31st.
    fn date_after(self, date: Date, n: i64) -> Option<Date> {
        let span = |unit: u32| i64::from(unit).checked_mul(n);
        let months = jiff::Span::new().try_months(span(self.months)?).ok()?;
        let days = jiff::Span::new().try_days(span(self.days)?).ok()?;
        date.checked_add(months).ok()?.checked_add(days).ok()
    }
}

/// All run times are computed from the anchor (the first run time), so a job that began on the 31st
/// returns to the 31st after a shorter month.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CalendarInterval {
    pub every: CalendarSpan,
    /// The first run time; by default, the time when the job is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Timestamp>,
    /// Maximum time from the scheduled time of a run to its end (the deadline).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Span>,
}

impl CalendarInterval {
    /// Returns the first run time after `after`, and whether a clock change moved this run time.
    pub(super) fn next_after(
        self,
        after: Timestamp,
        zone: &Zone,
        dst: Dst,
    ) -> Option<(Timestamp, bool)> {
        let anchor = self.anchor.unwrap_or(after);
        if self.anchor.is_some_and(|anchor| anchor > after) {
            return Some((anchor, false));
        }
        // The number of passed intervals is estimated from average month lengths. The search for
        // the run time starts four days early, because the estimate is wrong by less than four
        // days.
        const OFF: u64 = 4 * 86_400 * 1_000_000;
        let passed = after.since(anchor).as_micros().saturating_sub(OFF);
        let mut n = i64::try_from(passed / self.every.roughly().as_micros()).ok()?.max(1);
        loop {
            match self.nth(anchor, n, zone, dst)? {
                Some((time, moved)) if time > after => return Some((time, moved)),
                Some(_) | None => n += 1,
            }
        }
    }

    /// Returns the `n`-th run time after the anchor; the anchor itself is number 0. The run time is
    /// at most [`Timestamp::MAX`], and `None` if no anchor is set. If clocks skip the local time,
    /// the run time is the first moment after the clock change, even with
    /// [`Gap::Skip`](super::Gap::Skip).
    ///
    /// Computing the `n`-th run time takes equally long for any `n`.
    pub fn nth_time(self, n: u64, zone: &Zone, dst: Dst) -> Option<Timestamp> {
        let anchor = self.anchor?;
        if n == 0 {
            return Some(anchor);
        }
        let dst = Dst { gap: Gap::Shift, ..dst };
        let nth = i64::try_from(n).ok().and_then(|n| self.nth(anchor, n, zone, dst)).flatten();
        Some(nth.map_or(Timestamp::MAX, |(time, _)| time))
    }

    /// Returns the `n`-th run time after the anchor. An outer `None` means that the date is beyond
    /// the calendar. An inner `None` means that a clock change skips this run.
    fn nth(
        self,
        anchor: Timestamp,
        n: i64,
        zone: &Zone,
        dst: Dst,
    ) -> Option<Option<(Timestamp, bool)>> {
        let local = zone.offset_period_at(anchor).local(anchor);
        let local = jiff_civil(local)?;
        let date = self.every.date_after(local.date(), n)?;
        let day_start = date.to_datetime(jiff::civil::Time::midnight());
        let of_day = local.time().duration_since(jiff::civil::Time::midnight()).as_micros();
        let micros = micros_of(day_start)? + i64::try_from(of_day).ok()?;
        let (moment, moved) = match (zone.resolve(micros), dst.gap, dst.overlap) {
            (Local::Once(moment), _, _) => (moment, false),
            (Local::Never { after }, Gap::Shift, _) => (after, true),
            (Local::Never { .. }, Gap::Skip, _) => return Some(None),
            (Local::Twice { first, .. }, _, Overlap::First | Overlap::Both) => (first, false),
            (Local::Twice { last, .. }, _, Overlap::Last) => (last, false),
        };
        let hours = self.every.time.saturating_mul(u64::try_from(n).ok()?);
        Some(Some((moment.checked_add(hours)?, moved)))
    }
}

fn jiff_civil(local: i64) -> Option<DateTime> {
    let moment = jiff::Timestamp::from_microsecond(local).ok()?;
    Some(jiff::tz::Offset::UTC.to_datetime(moment))
}

fn micros_of(local: DateTime) -> Option<i64> {
    Some(jiff::tz::Offset::UTC.to_timestamp(local).ok()?.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn times(every: &str, anchor: &str, zone: &str, from: &str, n: usize) -> Vec<String> {
        let anchor = Some(at(anchor));
        let every = CalendarInterval { every: every.parse().unwrap(), anchor, tolerance: None };
        let zone = Zone::get(zone).unwrap();
        let next = |after: Timestamp| every.next_after(after, &zone, Dst::default()).map(|it| it.0);
        std::iter::successors(next(at(from)), |time| next(*time))
            .take(n)
            .map(|time| zone.local_text(time)[..16].to_owned())
            .collect()
    }

    #[test]
    fn short_month_does_not_shorten_the_next() {
        assert_eq!(
            times("P1M", "2026-01-31T09:00:00Z", "UTC", "2026-01-31T09:00:00Z", 4),
            ["2026-02-28T09:00", "2026-03-31T09:00", "2026-04-30T09:00", "2026-05-31T09:00"]
        );
    }

    #[test]
    fn calendar_day_follows_local_clocks() {
        // The job runs at 09:00 in Berlin, before and after the clock change of 29 March.
        assert_eq!(
            times("P1D", "2026-03-27T08:00:00Z", "Europe/Berlin", "2026-03-27T08:00:00Z", 3),
            ["2026-03-28T09:00", "2026-03-29T09:00", "2026-03-30T09:00"]
        );
    }

    #[test]
    fn skipped_local_time_is_moved_for_that_day() {
        assert_eq!(
            times("P1D", "2026-03-27T01:30:00Z", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T03:00", "2026-03-30T02:30"]
        );
    }

    #[test]
    fn no_time_is_left_out_long_after_the_anchor() {
        for every in ["P1D", "P1M", "P1W", "P1Y", "P13M", "P1DT1H"] {
            let all = times(
                every, "1970-01-31T02:30:00Z", "America/Toronto", "1970-01-31T02:30:00Z", 1500,
            );
            for (n, from) in [(1, "1990-05-05T05:05:05Z"), (2, "2039-12-31T23:59:59Z")] {
                let later = times(every, "1970-01-31T02:30:00Z", "America/Toronto", from, n);
                let from = Zone::get("America/Toronto").unwrap().local_text(at(from));
                let expected: Vec<_> =
                    all.iter().filter(|time| ***time > from[..16]).take(n).cloned().collect();
                if expected.len() == n {
                    assert_eq!(later, expected, "{every} {from}");
                }
            }
        }
    }

    #[test]
    fn nth_time_needs_no_counting() {
        let nth = |every: &str, anchor: &str, n: u64| {
            let every = CalendarInterval {
                every: every.parse().unwrap(),
                anchor: Some(at(anchor)),
                tolerance: None,
            };
            every.nth_time(n, &Zone::get("Europe/Berlin").unwrap(), Dst::default()).unwrap()
        };
        assert_eq!(nth("P1D", "2026-03-27T08:00:00Z", 0), at("2026-03-27T08:00:00Z"));
        assert_eq!(nth("P1D", "2026-03-27T08:00:00Z", 3), at("2026-03-30T07:00:00Z"));
        assert_eq!(nth("P1D", "2026-03-27T01:30:00Z", 2), at("2026-03-29T01:00:00Z"));
        assert_eq!(nth("P1D", "2026-10-24T00:30:00Z", 1), at("2026-10-25T00:30:00Z"));
        assert_eq!(nth("P1M", "2026-01-31T08:00:00Z", 1), at("2026-02-28T08:00:00Z"));
        for n in [60_000, 999_999_999, u64::MAX] {
            assert_eq!(nth("P1D", "1970-01-01T00:00:00Z", n), Timestamp::MAX);
        }
    }

    #[test]
    fn spans_are_written_as_they_are_read() {
        for text in ["P1M", "P1Y2M10DT2H30M", "P7D", "P1DT1S", "P1DT0.500000S"] {
            assert_eq!(text.parse::<CalendarSpan>().unwrap().to_string(), text);
        }
        assert_eq!("P2W".parse::<CalendarSpan>().unwrap().to_string(), "P14D");
    }

    #[test]
    fn span_without_days_is_no_calendar_span() {
        for text in ["PT1H", "1d", "P", "-P1D", "P1D2", "", "R/P1D"] {
            assert_eq!(text.parse::<CalendarSpan>(), Err(CalendarError::Unreadable), "{text}");
        }
        assert_eq!("P101Y".parse::<CalendarSpan>(), Err(CalendarError::TooLong));
    }
}
