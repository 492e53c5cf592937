//! Crash test with real `evenkeel` processes, whose behaviour is checked from outside.
//!
//! Servers run jobs that record the start and end of each attempt. Shell jobs run the program
//! `probe`, and HTTP jobs call `receiver`. While jobs run, servers are killed, suspended and
//! restarted, and the database crashes. The faults and their times come from a seed (see `plan`).
//! At the end, `check` compares the records and the answers of the API with the expected run times.
//! `check` computes the expected run times itself and shares no code with the server.
//!
//! All processes run on one machine and record `CLOCK_MONOTONIC`, so their clocks do not differ.
//!
//! `cargo xtask crash` runs the crash test for the given time and prints the seed. `--seed` repeats
//! the same faults. The module `rebalance` is a second test, which rebalances jobs and undoes the
//! rebalance while the jobs fire.

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
