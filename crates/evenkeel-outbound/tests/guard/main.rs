//! Tests of the guard: no call to a private address may make a connection.
//!
//! The modules are marked as tests, so that clippy lets their helpers unwrap.

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
