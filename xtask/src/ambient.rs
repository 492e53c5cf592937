//! The only module of xtask that reads environment variables and the clock.

use std::time::Instant;

/// Returns the path of the `cargo` that started xtask, so that every step uses the same toolchain.
#[expect(clippy::disallowed_methods, reason = "the only place where xtask reads its environment")]
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// True if a service for continuous integration runs xtask: all of them set `CI`.
#[expect(clippy::disallowed_methods, reason = "the only place where xtask reads its environment")]
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false")
}

#[expect(clippy::disallowed_methods, reason = "measures the duration of each step")]
pub fn now() -> Instant {
    Instant::now()
}
