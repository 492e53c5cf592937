//! How many bodies may run at once on this node.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Counts free places. Whoever starts a body takes a place first and gives it back at its end.
#[derive(Debug)]
pub struct Slots {
    total: usize,
    free: AtomicUsize,
    /// Places given back, ever: while it grows, bodies end.
    returned: AtomicU64,
    closed: AtomicBool,
    changed: Notify,
}

impl Slots {
    /// `total` free places.
    pub fn new(total: usize) -> Self {
        Self {
            total,
            free: AtomicUsize::new(total),
            returned: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Takes up to `wanted` places; says how many.
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

    /// Gives places back.
    pub fn give(&self, places: usize) {
        if places > 0 {
            self.free.fetch_add(places, Ordering::AcqRel);
            self.returned.fetch_add(places as u64, Ordering::AcqRel);
            self.changed.notify_waiters();
        }
    }

    /// Gives no more places: the node is draining.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Places that are free now.
    pub fn free(&self) -> usize {
        if self.closed.load(Ordering::Acquire) { 0 } else { self.free.load(Ordering::Acquire) }
    }

    /// Places that are taken now.
    pub fn busy(&self) -> usize {
        self.total - self.free.load(Ordering::Acquire)
    }

    /// All places.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Places given back, ever.
    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::Acquire)
    }

    /// Waits until a place is free, at most `patience`.
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
    fn no_more_places_are_taken_than_there_are() {
        let slots = Slots::new(3);
        assert_eq!((slots.take(2), slots.take(2), slots.take(2)), (2, 1, 0));
        slots.give(2);
        assert_eq!((slots.busy(), slots.free(), slots.take(5)), (1, 2, 2));
    }

    #[test]
    fn a_closed_node_gives_no_places() {
        let slots = Slots::new(3);
        slots.close();
        assert_eq!((slots.take(1), slots.free()), (0, 0));
    }
}
