//! Sends the requests from the manuals of interval jobs and of the crawl queue's admin API to the
//! real program, on both stores. Also tests several nodes on one database.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod admin;
mod aging;
mod api_client;
mod cluster;
#[path = "../executors/database.rs"]
mod database;
mod manual;
mod priorities;
#[path = "../executors/receiver.rs"]
#[expect(dead_code, reason = "shared with the tests of the executors")]
mod receiver;
#[path = "../executors/stores.rs"]
mod stores;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the command line")]
mod support;
