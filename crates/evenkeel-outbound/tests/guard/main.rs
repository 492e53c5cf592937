//! Tests that no call to a private address makes a connection.
//!
//! The modules are marked as tests, so that clippy allows `unwrap` in their helper functions.

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
