//! The clock of the store. Only one process opens the file, so the clock of this machine is the
//! clock of the store.

use std::time::{SystemTime, UNIX_EPOCH};

use evenkeel_core::Timestamp;
use evenkeel_store::Now;

#[expect(clippy::disallowed_methods, reason = "this is the one clock of the store")]
pub(crate) fn system_time() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

/// Returns the given time, or reads the clock if no time is given.
pub(crate) fn resolve(now: Now) -> Timestamp {
    now.literal().unwrap_or_else(system_time)
}
