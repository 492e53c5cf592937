//! Recomputes the rank of queued attempts after a change of the priority aging settings.

use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, Timestamp};

/// Result of one step of reprioritizing the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Reprioritized {
    /// Number of attempts that got a new rank.
    pub changed: u64,
    /// Number of attempts that were not changed because another transaction had locked them or they
    /// had left the queue.
    pub missed: u64,
    /// The next reprioritizing step continues after this attempt; `None` if the whole queue was
    /// read.
    pub next: Option<AttemptKey>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueuedAttempt {
    pub key: AttemptKey,
    pub priority: Priority,
    /// When the attempt became claimable by workers.
    pub since: Timestamp,
    /// The stored effect of the attempt's waiting time on its rank.
    pub rise: Rise,
}

impl QueuedAttempt {
    /// Returns the effect of the attempt's waiting time on its rank under the settings `aging`, if
    /// it differs from the stored effect.
    pub fn other_rise(&self, aging: &Aging) -> Option<Rise> {
        let rise = aging.rise(self.priority, self.since);
        (rise != self.rise).then_some(rise)
    }
}
