//! What is said to bodies that have not started yet.
//!
//! A claim is committed before its answer is here, so others may speak to an attempt that this node
//! does not know of so far.

use std::collections::BTreeMap;

use evenkeel_core::AttemptKey;
use evenkeel_core::lease::Fence;
use evenkeel_executors::CancelReason;
use tracing::{debug, warn};

/// Words of each kind that may wait for their body to start.
const EARLY_MAX: usize = 1024;

/// Words that wait for their body to start.
#[derive(Debug, Default)]
pub(super) struct EarlyMessages {
    cancels: BTreeMap<AttemptKey, CancelReason>,
    settled: BTreeMap<AttemptKey, Fence>,
}

impl EarlyMessages {
    /// Somebody wants the attempt ended.
    pub(super) fn cancel(&mut self, key: AttemptKey, reason: CancelReason) {
        if self.cancels.len() >= EARLY_MAX {
            warn!("forgetting the oldest of too many early cancellations");
            self.cancels.pop_first();
        }
        self.cancels.insert(key, reason);
    }

    /// Whoever has the attempt under this fence has it no more.
    pub(super) fn settle(&mut self, key: AttemptKey, fence: Fence) {
        if self.settled.len() >= EARLY_MAX {
            // Most are of bodies that have ended meanwhile; the reconciler finds the others.
            debug!("forgetting the oldest of too many early letters");
            self.settled.pop_first();
        }
        let known = self.settled.entry(key).or_insert(fence);
        *known = fence.max(*known);
    }

    /// Has somebody else said how an attempt goes on that is about to start under this fence?
    pub(super) fn take_settled(&mut self, key: AttemptKey, fence: Fence) -> bool {
        !self.settled.is_empty() && self.settled.remove(&key).is_some_and(|until| fence <= until)
    }

    /// Why an attempt that starts is to end at once, if it is.
    pub(super) fn take_cancel(&mut self, key: AttemptKey) -> Option<CancelReason> {
        self.cancels.remove(&key)
    }

    #[cfg(test)]
    pub(super) fn settled_count(&self) -> usize {
        self.settled.len()
    }
}
