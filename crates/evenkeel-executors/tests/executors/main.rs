//! Tests the executors with real processes and a real server.
//!
//! The modules are marked as tests, so that clippy allows `unwrap` in their helper functions.

#[cfg(test)]
#[path = "../../../evenkeel-outbound/tests/guard/corpus.rs"]
mod corpus;
#[cfg(test)]
mod crawl;
#[cfg(test)]
mod escapee;
#[cfg(test)]
mod escapees;
#[cfg(test)]
mod http;
#[cfg(test)]
mod http_callbacks;
#[cfg(test)]
mod http_guard;
#[cfg(test)]
mod http_redirects;
#[cfg(test)]
mod http_requests;
#[cfg(test)]
mod http_responses;
#[cfg(test)]
mod http_support;
#[cfg(test)]
mod http_tls;
#[cfg(test)]
mod noop;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod shell_bounds;
#[cfg(test)]
mod shell_endings;
#[cfg(test)]
mod shell_groups;
#[cfg(test)]
mod shell_messages;
#[cfg(test)]
mod shell_sandbox;
#[cfg(test)]
mod supervisor;
#[cfg(test)]
mod support;
#[cfg(test)]
#[path = "../../../evenkeel-outbound/tests/guard/trap.rs"]
mod trap;
