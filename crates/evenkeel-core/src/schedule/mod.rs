//! Rules that say when a job runs.

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

/// When a job runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// One time.
    Once(Once),
    /// Again and again, a fixed time apart.
    Interval(Interval),
    /// Again and again, days or months apart.
    Calendar(CalendarInterval),
    /// Whenever the clocks show what an expression says.
    Cron(CronSchedule),
    /// Often enough.
    Periodic(Periodic),
}

/// A cron expression, and how long after each of its times a run must be over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CronSchedule {
    /// The expression.
    #[serde(flatten)]
    pub cron: Cron,
    /// How long after its time a run must be over: by the next time, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<Span>,
}

impl Schedule {
    /// The same for the job `id`, created at `now`: what depends on the job or on its creation is
    /// fixed. Cron times are `exact` unless somebody says otherwise, and then spread over a minute;
    /// those of an interval are spread over its slot unless they are to be exact.
    #[must_use]
    pub fn settled(self, id: JobId, now: Timestamp, exact: Option<bool>) -> Self {
        match self {
            Self::Cron(CronSchedule { cron, max_duration }) => Self::Cron(CronSchedule {
                cron: cron.settled(id.seed(), exact.unwrap_or(true)),
                max_duration,
            }),
            Self::Calendar(every) => {
                Self::Calendar(CalendarInterval { anchor: every.anchor.or(Some(now)), ..every })
            }
            Self::Interval(every) => Self::Interval(every.with_exact(exact.unwrap_or(false))),
            Self::Once(_) | Self::Periodic(_) => self,
        }
    }

    /// Does its next time follow from the end of a run, rather than from the time before?
    pub fn follows_its_end(&self) -> bool {
        matches!(self, Self::Periodic(_))
    }

    /// Does it run again and again?
    pub fn recurs(&self) -> bool {
        !matches!(self, Self::Once(_))
    }
}
