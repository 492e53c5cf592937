//! The crawler against a real server with traps.
//!
//! The modules say that they are tests, so that clippy lets their helpers unwrap.

#[cfg(test)]
mod changes;
#[cfg(test)]
mod manners;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod sitemaps;
#[cfg(test)]
mod support;
#[cfg(test)]
mod traps;
