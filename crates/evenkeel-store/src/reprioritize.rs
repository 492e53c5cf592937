//! How waiting counts may change while something waits.

use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, Timestamp};

/// A step through the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Reprioritized {
    /// So many have another place among those that have waited.
    pub changed: u64,
    /// So many should have, but somebody was busy with them, or they have left.
    pub missed: u64,
    /// Where the next step goes on; `None` when the end was reached.
    pub next: Option<AttemptKey>,
}

/// An attempt in the queue, and since when it waits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueuedAttempt {
    /// Which one.
    pub key: AttemptKey,
    /// Its priority.
    pub priority: Priority,
    /// It could first have been claimed then.
    pub since: Timestamp,
    /// Its place among those that have waited, as it is written down.
    pub rise: Rise,
}

impl QueuedAttempt {
    /// The place that it should have, if it is another one.
    pub fn other_rise(&self, aging: &Aging) -> Option<Rise> {
        let rise = aging.rise(self.priority, self.since);
        (rise != self.rise).then_some(rise)
    }
}
