//! Test that rebalances jobs and undoes the rebalance while the jobs fire. The test checks the HTTP
//! calls of the jobs without using code of the server.
//!
//! Thousands of jobs call an HTTP receiver every few seconds. Meanwhile, rebalances move the jobs
//! to other start times, and undos move the jobs back. Each HTTP call must match a start time that
//! the servers reported.

mod check;
mod run;

use std::fmt;
use std::time::Duration;

use crate::programs::Programs;

pub use run::rebalance_while_firing;

#[derive(Clone, Debug)]
pub struct RebalanceSettings {
    pub nodes: usize,
    pub jobs: usize,
    /// Interval of all jobs in seconds, an even number.
    pub every: u32,
    pub length: Duration,
    pub programs: Programs,
}

#[derive(Clone, Debug, Default)]
pub struct RebalanceReport {
    pub rebalances: u64,
    pub undone: u64,
    /// Number of jobs moved to another start time by rebalances and undos.
    pub moves: u64,
    /// Number of jobs that a rebalance did not move in time.
    pub missed_moves: u64,
    /// Number of scheduled times during the test.
    pub times: u64,
    /// Number of scheduled times with exactly one HTTP call.
    pub executed: u64,
    /// Number of scheduled times that the servers recorded as skipped.
    pub skipped: u64,
    /// Violations.
    pub faults: Vec<String>,
}

impl RebalanceReport {
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for RebalanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} rebalances, {} undone: {} moves made, {} too late",
            self.rebalances, self.undone, self.moves, self.missed_moves
        )?;
        writeln!(
            f,
            "{} times came due: {} ran once, {} were recorded as skipped",
            self.times, self.executed, self.skipped
        )?;
        for fault in self.faults.iter().take(20) {
            writeln!(f, "  FAULT {fault}")?;
        }
        match self.faults.len() {
            0 => write!(f, "no run lost, duplicated or overlapping"),
            count => write!(f, "{count} faults"),
        }
    }
}
