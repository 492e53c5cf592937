//! A crash test through the real program, judged from outside.
//!
//! Real `evenkeel` processes run jobs whose bodies write down when they started and ended: a small
//! program for the shell executor, a receiver in this process for the HTTP executor. Meanwhile the
//! servers are killed, frozen and restarted, and so is their database. The checker then compares
//! what the bodies wrote, and what the API says became of each run, with what should have been. It
//! works out the expected times by its own arithmetic and shares no code with the product.
//!
//! One machine, one clock: records carry `CLOCK_MONOTONIC`, so the judge knows no skew.

mod api;
mod canary;
mod check;
mod clock;
mod cluster;
mod evidence;
mod jobs;
mod moment;
mod node;
mod plan;
mod programs;
mod rebalance;
mod record;
mod report;
mod run;
mod sink;

pub use cluster::StoreKind;
pub use plan::{Fault, Plan, Planned, Target};
pub use programs::Programs;
pub use rebalance::{RebalanceReport, RebalanceSettings, rebalance_under_fire};
pub use report::Report;
pub use run::{Outcome, Settings, run};
