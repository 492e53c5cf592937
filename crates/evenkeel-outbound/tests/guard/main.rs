//! The guard against addresses of the inside: nothing in here may make a connection.
//!
//! The modules say that they are tests, so that clippy lets their helpers unwrap.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod liar;
#[cfg(test)]
mod names;
#[cfg(test)]
mod spellings;
#[cfg(test)]
mod trap;
