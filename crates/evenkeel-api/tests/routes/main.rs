//! Tests the HTTP API without a socket, on an in-memory store.
#![recursion_limit = "512"]
#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod access;
mod activity;
mod admin;
mod admin_lists;
mod admin_overrides;
mod audit;
mod auth;
mod balance;
mod blackouts;
mod broken_store;
mod bulk;
mod callbacks;
mod changes;
mod concurrency;
mod conditions;
mod control;
mod dead_letters;
mod dedup;
mod enabled;
mod events;
mod executions;
mod explain_past;
mod full_disk;
mod idempotency;
mod jobs;
mod limits;
mod lists;
mod logs;
mod names;
mod operations;
mod pages;
mod runs;
mod scheduled;
mod schedules;
mod secrets;
mod spec;
mod statistics;
mod streams;
mod targets;
mod tenants;
mod timeline;
mod world;
