//! Time, held by the simulation.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use evenkeel_core::Timestamp;
use evenkeel_engine::Clock;
use tokio::time::Instant;

use crate::body::Time;

/// True time, and a database clock that can be set wrong.
pub struct SimTime {
    began: Instant,
    /// How wrong the database's clock is, in microseconds.
    pub db_offset: AtomicI64,
}

impl SimTime {
    /// Begins now.
    pub fn begin() -> Arc<Self> {
        Arc::new(Self { began: instant(), db_offset: AtomicI64::new(0) })
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's clock, which stands still until all wait")]
fn instant() -> Instant {
    Instant::now()
}

const DAWN: i64 = 1_900_000_000_000_000;

impl Time for SimTime {
    fn truth(&self) -> Duration {
        instant() - self.began
    }

    fn db(&self) -> Timestamp {
        let truth = self.truth().as_micros() as i64;
        Timestamp::from_micros(DAWN + truth + self.db_offset.load(Ordering::Relaxed))
    }
}

/// A node's clocks, which are right.
pub struct NodeClock(pub Arc<SimTime>);

impl Clock for NodeClock {
    fn wall(&self) -> Timestamp {
        Timestamp::MIN
    }

    fn monotonic(&self) -> Duration {
        self.0.truth()
    }
}
