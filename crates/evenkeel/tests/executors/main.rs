//! Tests every executor through the real program on both stores: success, failure, timeout,
//! cancellation, and a worker killed with SIGKILL.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod crawl;
mod database;
mod http;
mod http_later;
mod receiver;
mod secrets;
mod shell;
mod stores;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the command line")]
mod support;

pub(crate) use stores::on_both_stores;
