//! The executors against real processes and a real server.
//!
//! The modules say that they are tests, so that clippy lets their helpers unwrap.

#[cfg(test)]
mod crawl;
#[cfg(test)]
mod http;
#[cfg(test)]
mod noop;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod shell_endings;
#[cfg(test)]
mod supervisor;
#[cfg(test)]
mod support;
