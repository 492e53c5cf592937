//! Tests the command line as users run it, with real processes, a real data directory and a real
//! port.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod access;
mod activity;
mod balance;
mod changes;
mod clients;
mod config;
mod dashboard;
mod dashboard_api;
mod dashboard_jobs;
mod dashboard_lists;
mod dashboard_live;
mod dashboard_oidc;
mod dashboard_overview;
mod dashboard_pages;
mod dashboard_timeline;
mod demo;
mod identity_provider;
mod import;
mod isolation;
mod lifecycle;
mod offline;
mod public_names;
mod readme;
mod shell;
mod stub;
mod support;
mod targets;
