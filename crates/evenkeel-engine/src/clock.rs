//! The engine's source of time. All reads of the machine's clocks happen here.

use std::time::Duration;

use evenkeel_core::Timestamp;
use tokio::time::Instant;

pub trait Clock: Send + Sync {
    /// Time of day, which may jump. Used for names and display only, never for decisions.
    fn wall(&self) -> Timestamp;

    /// Time since a fixed instant; it never jumps.
    fn monotonic(&self) -> Duration;
}

#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this type owns the clock")]
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this type owns the clock")]
    fn wall(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this type owns the clock")]
    fn monotonic(&self) -> Duration {
        // The simulation pauses Tokio's clock, so this must not read `std`'s.
        Instant::now().duration_since(self.started)
    }
}
