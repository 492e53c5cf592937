//! The crawler against a real server with traps.
//!
//! The modules are marked as tests, so that clippy lets their helpers unwrap.

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
