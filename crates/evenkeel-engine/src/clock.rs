//! The engine's source of time. Only this module reads the machine's clocks.

use std::time::Duration;

use evenkeel_core::Timestamp;
use tokio::time::Instant;

pub trait Clock: Send + Sync {
    /// Returns the time of day, which jumps when the machine's clock is set. The engine uses the
    /// time of day only for names and display, never for scheduling.
    fn wall(&self) -> Timestamp;

    /// Returns the time since a fixed but arbitrary instant. The monotonic clock never jumps.
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
        // Simulation tests pause Tokio's clock to simulate time, so this function must not read the
        // clock of `std`.
        Instant::now().duration_since(self.started)
    }
}
