//! The one place that asks what time it is.

use std::time::Duration;

use evenkeel_core::Timestamp;
use tokio::time::Instant;

/// A node's own clocks.
pub trait Clock: Send + Sync {
    /// The time of day, which may jump. Nothing is decided by it; it names things for people.
    fn wall(&self) -> Timestamp;

    /// Time since some fixed moment, which never jumps.
    fn monotonic(&self) -> Duration;
}

/// The clocks of the machine.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the owner of the clock")]
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the owner of the clock")]
    fn wall(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the owner of the clock")]
    fn monotonic(&self) -> Duration {
        // Tokio's instants stand still while a simulation holds them.
        Instant::now().duration_since(self.started)
    }
}
