//! Reads the clocks for the crash test.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Moment {
    /// Time of `CLOCK_MONOTONIC`, a clock that all processes of the machine share.
    pub mono_ns: u64,
    /// Wall-clock time in microseconds since 1970, to compare with scheduled times.
    pub wall_us: i64,
}

impl Moment {
    pub fn now() -> Self {
        Self { mono_ns: mono_ns(), wall_us: wall_us() }
    }
}

pub fn mono_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither part is negative.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[expect(clippy::disallowed_methods, reason = "the checker has its own clock")]
fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "the test needs real time to pass")]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// Calls `look` every 10 ms until it returns a value, but at most for `limit`.
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

pub fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
