//! How long this node may go on without a word from the store.

use std::time::Duration;

use evenkeel_executors::Lease;
use tokio::sync::watch;
use tokio::time::Instant;

/// Keeps the moment until which the node's lease surely holds, and tells the bodies of it.
#[derive(Debug)]
pub struct LeaseKeeper {
    until: watch::Sender<Instant>,
    /// Alone on its store, a node cannot lose its lease.
    shared: bool,
}

impl LeaseKeeper {
    /// A lease that holds until `until`, or for ever if nobody shares the store.
    pub fn new(until: Instant, shared: bool) -> Self {
        Self { until: watch::Sender::new(until), shared }
    }

    /// A ping that was sent at `sent` has been answered.
    pub fn renew(&self, sent: Instant, bodies_must_end_after: Duration) {
        self.until.send_replace(sent + bodies_must_end_after);
    }

    /// Does the lease surely hold at `now`?
    pub fn holds(&self, now: Instant) -> bool {
        !self.shared || now < *self.until.borrow()
    }

    /// Until when it surely holds.
    pub fn until(&self) -> Option<Instant> {
        self.shared.then(|| *self.until.borrow())
    }

    /// What the bodies see of it.
    pub fn watch(&self) -> Lease {
        if self.shared { Lease::new(self.until.subscribe()) } else { Lease::endless() }
    }
}
