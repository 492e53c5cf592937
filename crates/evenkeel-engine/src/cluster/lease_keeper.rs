//! Tracks the time until which this node certainly holds its lease.

use std::time::Duration;

use evenkeel_executors::Lease;
use tokio::sync::watch;
use tokio::time::Instant;

/// Stores the time at which the node's lease ends, so that running attempts can stop in time.
#[derive(Debug)]
pub struct LeaseKeeper {
    until: watch::Sender<Instant>,
    /// True if several nodes can share the store. The lease of the only node of a store never ends.
    shared: bool,
}

impl LeaseKeeper {
    pub fn new(until: Instant, shared: bool) -> Self {
        Self { until: watch::Sender::new(until), shared }
    }

    /// Extends the lease after a ping that was sent at `sent` has succeeded.
    pub fn renew(&self, sent: Instant, bodies_must_end_after: Duration) {
        self.until.send_replace(sent + bodies_must_end_after);
    }

    pub fn holds(&self, now: Instant) -> bool {
        !self.shared || now < *self.until.borrow()
    }

    /// Returns the time at which the node's lease ends, or `None` if it never ends.
    pub fn until(&self) -> Option<Instant> {
        self.shared.then(|| *self.until.borrow())
    }

    pub fn watch(&self) -> Lease {
        if self.shared { Lease::new(self.until.subscribe()) } else { Lease::endless() }
    }
}
