//! Tests events, metrics and logs of the real program on both stores.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

#[path = "../executors/database.rs"]
mod database;
mod observability;
mod streams;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the command line")]
mod support;
