//! Schedules: rules that determine when a job runs.

mod calendar;
mod cron;
mod dst;
mod interval;
mod once;
mod periodic;
mod timetable;

pub use calendar::{CalendarError, CalendarInterval, CalendarSpan};
pub use cron::{Cron, CronFault};
pub use dst::{Dst, Gap, Overlap};
pub use interval::{Interval, IntervalError};
pub use once::Once;
pub use periodic::{Periodic, PeriodicError};
pub use timetable::{MovedBy, Timetable};

use serde::{Deserialize, Serialize};

use crate::ids::JobId;
use crate::time::{Span, Timestamp};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    Once(Once),
    Interval(Interval),
    Calendar(CalendarInterval),
    Cron(CronSchedule),
    Periodic(Periodic),
}

/// A cron expression with a deadline for each run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CronSchedule {
    #[serde(flatten)]
    pub cron: Cron,
    /// Maximum time from the scheduled time of a run to its end; by default, a run must end by the
    /// next scheduled time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<Span>,
}

impl Schedule {
    /// Returns the schedule with all values filled in that depend on the job `id` or its creation
    /// time `now`. By default, cron jobs run exactly at the times of their cron expression; if
    /// `exact` is false, each job gets a different second of the minute. By default, jobs with an
    /// interval start at different seconds of a time slot.
    #[must_use]
    pub fn resolved(self, id: JobId, now: Timestamp, exact: Option<bool>) -> Self {
        match self {
            Self::Cron(CronSchedule { cron, max_duration }) => Self::Cron(CronSchedule {
                cron: cron.resolved(id.seed(), exact.unwrap_or(true)),
                max_duration,
            }),
            Self::Calendar(every) => {
                Self::Calendar(CalendarInterval { anchor: every.anchor.or(Some(now)), ..every })
            }
            Self::Interval(every) => Self::Interval(every.with_exact(exact.unwrap_or(false))),
            Self::Once(_) | Self::Periodic(_) => self,
        }
    }

    /// True if the next scheduled time depends on when the previous run finishes, not on the
    /// previous scheduled time.
    pub fn follows_its_end(&self) -> bool {
        matches!(self, Self::Periodic(_))
    }

    pub fn recurs(&self) -> bool {
        !matches!(self, Self::Once(_))
    }
}
