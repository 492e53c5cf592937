//! The view of a job's schedule.

use evenkeel_core::blackout::{Blackout, LocalHours};
use evenkeel_core::{Schedule, Span, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::view::view;

/// Schedule of a job in its canonical form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ScheduleView {
    /// Runs at a fixed interval, or every given number of calendar days or months.
    Interval {
        /// Time between two runs, such as `30m` or `P1M`.
        #[schema(example = "30m")]
        every: String,
        /// Time to which the interval is aligned; null if the scheduler chooses the start times.
        #[serde(skip_serializing_if = "Option::is_none")]
        anchor: Option<Timestamp>,
        /// A run must have finished within this duration after its scheduled time. By default, a
        /// run must have finished before the next scheduled time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, example = "10m")]
        tolerance: Option<Span>,
    },
    /// Runs at the local times that match a cron expression.
    Cron {
        /// Cron expression with five fields, or six with seconds first, or a name such as `@daily`.
        #[schema(example = "0 9 * * 1-5")]
        expression: String,
        /// A run must have finished within this duration after its scheduled time. By default, a
        /// run must have finished before the next scheduled time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, example = "6h")]
        max_duration: Option<Span>,
    },
    /// Runs often enough that, at any time, a successful run has started within the last `period`.
    Periodic {
        /// Maximum time between the starts of two successful runs.
        #[schema(value_type = String, example = "24h")]
        period: Span,
        /// Minimum pause after each run. Default: half the period.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, example = "1h")]
        cooldown: Option<Span>,
    },
    /// Runs once.
    Once {
        /// Start time of the run. If `at` is omitted or in the past, the run starts as soon as the
        /// job is created.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// The run must start within this duration after `at`. Default: one minute.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, example = "5m")]
        tolerance: Option<Span>,
    },
}

impl From<&Schedule> for ScheduleView {
    fn from(schedule: &Schedule) -> Self {
        match schedule {
            Schedule::Interval(interval) => Self::Interval {
                every: interval.every().to_string(),
                anchor: interval.anchor(),
                tolerance: interval.stated_tolerance(),
            },
            Schedule::Calendar(every) => Self::Interval {
                every: every.every.to_string(),
                anchor: every.anchor,
                tolerance: every.tolerance,
            },
            Schedule::Cron(by) => Self::Cron {
                expression: by.cron.expression().into(),
                max_duration: by.max_duration,
            },
            Schedule::Periodic(periodic) => {
                Self::Periodic { period: periodic.period(), cooldown: Some(periodic.cooldown()) }
            }
            Schedule::Once(once) => Self::Once { at: once.at, tolerance: once.tolerance },
        }
    }
}

/// A schedule as an object or as a string.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "documents a field of requests")]
pub enum ScheduleForm {
    /// The schedule as an object.
    Long(ScheduleView),
    /// The schedule as text, such as `0 9 * * 1-5`, `@daily`, `@every 30m`, `30m`, `PT30M`, `P1M`
    /// or `R/2026-12-01T00:00:00Z/PT30M`.
    Short(String),
}

view! {
    /// Local hours of the day in which a job neither starts nor runs. A period may cross midnight.
    BlackoutView::new(period: &Blackout) {}

    /// Start as local time of day, `HH:MM` or `HH:MM:SS`.
    #[schema(example = "22:00:00")]
    start: String = period.start.to_string(),
    /// End as local time of day, exclusive, `HH:MM` or `HH:MM:SS`.
    #[schema(example = "06:00:00")]
    end: String = period.end.to_string(),
}

view! {
    /// Preferred local hours of the day for the runs of a job. The hours may cross midnight.
    HoursView::new(hours: &LocalHours) {}

    /// Start as local time of day, `HH:MM` or `HH:MM:SS`.
    #[schema(example = "22:00:00")]
    start: String = hours.start.to_string(),
    /// End as local time of day, exclusive, `HH:MM` or `HH:MM:SS`.
    #[schema(example = "06:00:00")]
    end: String = hours.end.to_string(),
}

/// The schedule in the fields of older API formats; a field that cannot express it is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OtherWords {
    pub interval: Option<(u64, &'static str)>,
    pub cron: Option<String>,
    pub cron_max: Option<Span>,
    pub period: Option<Span>,
    pub cooldown: Option<Span>,
    pub exact: Option<bool>,
}

impl From<&Schedule> for OtherWords {
    fn from(schedule: &Schedule) -> Self {
        let none = Self::default();
        match schedule {
            Schedule::Interval(interval) => Self {
                interval: in_units(interval.every()),
                // An anchor already fixes the start times, so `exact` has no meaning.
                exact: interval.anchor().is_none().then(|| interval.is_exact()),
                ..none
            },
            Schedule::Cron(by) => Self {
                cron: Some(by.cron.expression().into()),
                cron_max: by.max_duration,
                exact: Some(by.cron.is_exact()),
                ..none
            },
            Schedule::Periodic(periodic) => Self {
                period: Some(periodic.period()),
                cooldown: Some(periodic.cooldown()),
                ..none
            },
            Schedule::Calendar(_) | Schedule::Once(_) => none,
        }
    }
}

/// Converts a duration to a whole number of the longest unit that divides it.
fn in_units(span: Span) -> Option<(u64, &'static str)> {
    [(86_400, "days"), (3600, "hours"), (60, "minutes")].into_iter().find_map(|(secs, name)| {
        let unit = Span::from_secs(secs).as_micros();
        span.as_micros().is_multiple_of(unit).then_some((span.as_micros() / unit, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_shown_in_the_longest_unit_that_fits() {
        for (secs, shown) in [
            (1800, Some((30, "minutes"))),
            (5400, Some((90, "minutes"))),
            (21_600, Some((6, "hours"))),
            (172_800, Some((2, "days"))),
            (90, None),
        ] {
            assert_eq!(in_units(Span::from_secs(secs)), shown);
        }
    }
}
