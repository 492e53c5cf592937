//! The monotonic clock of the crawler.

use tokio::time::Instant;

#[expect(clippy::disallowed_methods, reason = "delays are Instants of the clock that timers use")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
