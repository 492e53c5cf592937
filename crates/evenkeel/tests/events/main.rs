//! What happens is heard, read and counted, through the real program on both stores.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

#[path = "../executors/database.rs"]
mod database;
mod heard;
mod measured;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the command line")]
mod support;
