//! Simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use evenkeel_core::Timestamp;
use evenkeel_engine::Clock;
use tokio::time::Instant;

use crate::body::Time;

/// The true time of the simulation, and a database clock that faults can set.
pub struct SimTime {
    began: Instant,
    /// Deviation of the database's clock from true time, in microseconds.
    pub db_offset: AtomicI64,
}

impl SimTime {
    pub fn begin() -> Arc<Self> {
        Arc::new(Self { began: instant(), db_offset: AtomicI64::new(0) })
    }
}

#[expect(clippy::disallowed_methods, reason = "Tokio's clock is paused in the simulation")]
fn instant() -> Instant {
    Instant::now()
}

const START: i64 = 1_900_000_000_000_000;

impl Time for SimTime {
    fn true_time(&self) -> Duration {
        instant() - self.began
    }

    fn db(&self) -> Timestamp {
        let true_time = self.true_time().as_micros() as i64;
        Timestamp::from_micros(START + true_time + self.db_offset.load(Ordering::Relaxed))
    }
}

/// The clock of a node, which shows the true time.
pub struct NodeClock(pub Arc<SimTime>);

impl Clock for NodeClock {
    fn wall(&self) -> Timestamp {
        Timestamp::MIN
    }

    fn monotonic(&self) -> Duration {
        self.0.true_time()
    }
}
