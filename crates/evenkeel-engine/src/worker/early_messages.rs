//! Keeps messages for attempts that this node has not started yet.
//!
//! A claim is committed before its answer arrives, so other nodes may already send messages about
//! an attempt that this node does not know of.

use std::collections::BTreeMap;

use evenkeel_core::AttemptKey;
use evenkeel_core::lease::Fence;
use evenkeel_executors::CancelReason;
use tracing::{debug, warn};

/// Maximum number of kept messages of each kind.
const EARLY_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct EarlyMessages {
    cancels: BTreeMap<AttemptKey, CancelReason>,
    ended: BTreeMap<AttemptKey, Fence>,
}

impl EarlyMessages {
    /// Keeps a cancellation.
    pub(super) fn cancel(&mut self, key: AttemptKey, reason: CancelReason) {
        if self.cancels.len() >= EARLY_MAX {
            warn!(
                "too many cancellations wait for attempts that have not started on this node; dropping the oldest"
            );
            self.cancels.pop_first();
        }
        self.cancels.insert(key, reason);
    }

    /// Keeps the message that the outcome of an attempt was overridden on another node. `fence` is
    /// the fence that the override made invalid.
    pub(super) fn end(&mut self, key: AttemptKey, fence: Fence) {
        if self.ended.len() >= EARLY_MAX {
            // Most dropped messages are about attempts that have already finished. The reconciler
            // finds attempts whose message was dropped.
            debug!(
                "too many messages wait for attempts that have not started on this node; dropping the oldest"
            );
            self.ended.pop_first();
        }
        let known = self.ended.entry(key).or_insert(fence);
        *known = fence.max(*known);
    }

    /// True if the outcome of the attempt was already overridden before the attempt starts with
    /// `fence`.
    pub(super) fn take_ended(&mut self, key: AttemptKey, fence: Fence) -> bool {
        !self.ended.is_empty() && self.ended.remove(&key).is_some_and(|until| fence <= until)
    }

    /// Returns the reason for a cancellation that was requested before the attempt started.
    pub(super) fn take_cancel(&mut self, key: AttemptKey) -> Option<CancelReason> {
        self.cancels.remove(&key)
    }

    #[cfg(test)]
    pub(super) fn ended_count(&self) -> usize {
        self.ended.len()
    }
}
