//! Queued attempts after a change of the aging settings.

use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, Timestamp};

/// One step through the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Reprioritized {
    /// The number of attempts with a new rank.
    pub changed: u64,
    /// The number of attempts that were not changed because another transaction held them or they
    /// left the queue.
    pub missed: u64,
    /// Where the next step starts; `None` at the end.
    pub next: Option<AttemptKey>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueuedAttempt {
    pub key: AttemptKey,
    pub priority: Priority,
    /// Since when the attempt could have been claimed.
    pub since: Timestamp,
    /// The stored effect of waiting.
    pub rise: Rise,
}

impl QueuedAttempt {
    /// Returns the effect of waiting under `aging`, if it differs from the stored one.
    pub fn other_rise(&self, aging: &Aging) -> Option<Rise> {
        let rise = aging.rise(self.priority, self.since);
        (rise != self.rise).then_some(rise)
    }
}
