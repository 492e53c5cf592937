//! The only door to the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

/// One moment on both clocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Moment {
    /// `CLOCK_MONOTONIC`, the same for all processes of the machine.
    pub mono_ns: u64,
    /// Microseconds since 1970, to compare with scheduled times.
    pub wall_us: i64,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        Self { mono_ns: mono_ns(), wall_us: wall_us() }
    }
}

/// `CLOCK_MONOTONIC`.
pub fn mono_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither part is ever negative.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[expect(clippy::disallowed_methods, reason = "the judge has a clock of its own")]
fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Lets time pass: faults last a while, and bodies take a while.
#[expect(clippy::disallowed_methods, reason = "the test is about real time passing")]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// Asks until there is an answer, or `limit` is over.
pub fn wait_for<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = mono_ns().saturating_add(ns(limit));
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if mono_ns() >= deadline {
            return None;
        }
        pass(Duration::from_millis(10));
    }
}

/// A duration in nanoseconds.
pub fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
