//! The HTTP interface, without a socket, on a store in memory.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod access;
mod audit;
mod auth;
mod broken_store;
mod callbacks;
mod conditions;
mod executions;
mod jobs;
mod limits;
mod lists;
mod operations;
mod pages;
mod schedules;
mod spec;
mod tenants;
mod world;
