//! Limits how many attempts run at once on this node.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Counts free worker slots. A worker slot is taken before an attempt starts and given back when
/// the attempt finishes.
#[derive(Debug)]
pub struct Slots {
    total: usize,
    free: AtomicUsize,
    /// Number of worker slots given back so far.
    returned: AtomicU64,
    closed: AtomicBool,
    changed: Notify,
}

impl Slots {
    pub fn new(total: usize) -> Self {
        Self {
            total,
            free: AtomicUsize::new(total),
            returned: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Takes up to `wanted` worker slots, and returns the number of taken slots.
    pub fn take(&self, wanted: usize) -> usize {
        if self.closed.load(Ordering::Acquire) {
            return 0;
        }
        let mut taken = 0;
        let _ = self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| {
            taken = free.min(wanted);
            Some(free - taken)
        });
        taken
    }

    pub fn give(&self, slots: usize) {
        if slots > 0 {
            self.free.fetch_add(slots, Ordering::AcqRel);
            self.returned.fetch_add(slots as u64, Ordering::AcqRel);
            self.changed.notify_waiters();
        }
    }

    /// From now on, `take` returns 0, because the node is draining.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub fn free(&self) -> usize {
        if self.closed.load(Ordering::Acquire) { 0 } else { self.free.load(Ordering::Acquire) }
    }

    pub fn busy(&self) -> usize {
        self.total - self.free.load(Ordering::Acquire)
    }

    pub fn total(&self) -> usize {
        self.total
    }

    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::Acquire)
    }

    /// Waits until a worker slot is free, but at most for `patience`.
    pub async fn freed(&self, patience: Duration) {
        let changed = self.changed.notified();
        if self.free() == 0 {
            let _ = tokio::time::timeout(patience, changed).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_slots_are_taken_than_exist() {
        let slots = Slots::new(3);
        assert_eq!((slots.take(2), slots.take(2), slots.take(2)), (2, 1, 0));
        slots.give(2);
        assert_eq!((slots.busy(), slots.free(), slots.take(5)), (1, 2, 2));
    }

    #[test]
    fn closed_slots_are_not_handed_out() {
        let slots = Slots::new(3);
        slots.close();
        assert_eq!((slots.take(1), slots.free()), (0, 0));
    }
}
