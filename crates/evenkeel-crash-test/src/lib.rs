//! Crash test with real `evenkeel` processes, checked from outside.
//!
//! Servers run jobs whose bodies record their start and end: the shell executor runs `probe`, the
//! HTTP executor calls `receiver`. Meanwhile, servers are killed, frozen and restarted, and so is
//! their database (faults and their times come from a seed, see `plan`). Then `check` compares the
//! records and the API's answers with the expected times. It computes these itself and shares no
//! code with the product.
//!
//! All processes run on one machine and record `CLOCK_MONOTONIC`, so there is no clock skew.
//!
//! `cargo xtask crash` runs it for as long as you like, and prints the seed; `--seed` repeats the
//! same faults. `rebalance` is a second test: it rebalances jobs and undoes it while they fire.

mod api;
mod check;
mod clock;
mod cluster;
mod evidence;
mod jobs;
mod load_monitor;
mod node;
mod plan;
mod programs;
mod rebalance;
mod receiver;
mod record;
mod report;
mod run;
mod timestamp;

pub use cluster::StoreKind;
pub use plan::{Fault, Plan, PlannedFault, Target};
pub use programs::Programs;
pub use rebalance::{RebalanceReport, RebalanceSettings, rebalance_while_firing};
pub use report::Report;
pub use run::{Outcome, Settings, run};
