//! The only door to the environment and to the time.

use std::time::Instant;

/// The cargo that runs us, so that every step uses one toolchain.
#[expect(clippy::disallowed_methods, reason = "the one place where xtask reads its environment")]
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

#[expect(clippy::disallowed_methods, reason = "developers want to know how long a step took")]
pub fn now() -> Instant {
    Instant::now()
}
