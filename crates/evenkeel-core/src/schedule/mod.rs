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

/// A cron expression, and how long after each of its times a run must end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CronSchedule {
    #[serde(flatten)]
    pub cron: Cron,
    /// How long after its scheduled time a run must end; until the next time by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<Span>,
}

impl Schedule {
    /// Returns the schedule of the job `id`, created at `now`, with everything fixed that depends
    /// on the job or its creation. Cron times are exact by default; otherwise each job gets its own
    /// second of the minute. Interval times are spread over their slot by default.
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

    /// True if the next time depends on the end of a run rather than on the previous time.
    pub fn follows_its_end(&self) -> bool {
        matches!(self, Self::Periodic(_))
    }

    pub fn recurs(&self) -> bool {
        !matches!(self, Self::Once(_))
    }
}
