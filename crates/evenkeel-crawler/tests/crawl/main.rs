//! Tests the crawler with a real server that has traps.
//!
//! The modules are marked as tests, so that clippy allows `unwrap` in their helper functions.

#[cfg(test)]
mod changes;
#[cfg(test)]
mod politeness;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod sitemaps;
#[cfg(test)]
mod support;
#[cfg(test)]
mod traps;
