//! Rules that say when a job runs.

mod cron;
mod dst;
mod interval;
mod once;

pub use cron::{Cron, CronFault};
pub use dst::{Dst, Gap, Overlap};
pub use interval::{Interval, IntervalError};
pub use once::Once;

use serde::{Deserialize, Serialize};

use crate::history::History;
use crate::time::{Span, Timestamp};
use crate::window::StartWindow;

/// When a job runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// One time.
    Once(Once),
    /// Again and again, a fixed time apart.
    Interval(Interval),
}

impl Schedule {
    /// The first time a job created at `now` runs.
    pub fn first_after(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Once(once) => Some(once.first_after(now)),
            Self::Interval(interval) => interval.first_after(now),
        }
    }

    /// The regular time that follows `scheduled`; `None` if that was the last.
    ///
    /// It depends on nothing but the schedule and the time before it, so neither a slow run nor
    /// a retry nor downtime moves the rhythm.
    pub fn next_after(&self, scheduled: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Once(_) => None,
            Self::Interval(interval) => interval.next_after(scheduled),
        }
    }

    /// How many regular times lie in `from..until`, and the last of them. `from` is one itself.
    pub fn times_before(&self, from: Timestamp, until: Timestamp) -> Option<(u64, Timestamp)> {
        if until <= from {
            return None;
        }
        match self {
            Self::Once(_) => Some((1, from)),
            Self::Interval(interval) => Some(interval.times_before(from, until)),
        }
    }

    /// The window in which the run scheduled for `next` starts.
    pub fn window(&self, next: Timestamp, history: &History) -> StartWindow {
        let tolerance = match self {
            Self::Once(_) => Once::TOLERANCE,
            Self::Interval(interval) => interval.every(),
        };
        let average = history.average_good_duration.unwrap_or(Span::ZERO);
        StartWindow {
            can_start_by: next,
            should_start_by: next.saturating_add(tolerance.saturating_sub(average)),
        }
    }
}
