//! The HTTP interface, without a socket, on a store in memory.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod auth;
mod broken_store;
mod callbacks;
mod conditions;
mod events;
mod control;
mod executions;
mod jobs;
mod limits;
mod lists;
mod logs;
mod operations;
mod pages;
mod schedules;
mod spec;
mod streams;
mod world;
