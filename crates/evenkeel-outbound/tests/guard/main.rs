//! Tests that an HTTP call to a private address makes no connection.
//!
//! Each module has `#[cfg(test)]`, so that clippy allows `unwrap` in its helper functions.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod lying_resolver;
#[cfg(test)]
mod names;
#[cfg(test)]
mod spellings;
#[cfg(test)]
mod trap;
