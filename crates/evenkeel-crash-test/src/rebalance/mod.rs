//! Rebalances and their undoing while jobs fire, judged from outside.
//!
//! Thousands of jobs call a receiver every few seconds, and all the while they are moved to other
//! seconds and back. What the receiver wrote down, and the moves that the servers told, must fit
//! together time by time.

mod check;
mod run;

use std::fmt;
use std::time::Duration;

use crate::programs::Programs;

pub use run::rebalance_under_fire;

/// How many jobs are moved how often.
#[derive(Clone, Debug)]
pub struct RebalanceSettings {
    /// How many servers there are.
    pub nodes: usize,
    /// How many jobs are left to be moved.
    pub jobs: usize,
    /// Seconds between two times of each; even.
    pub every: u32,
    /// For how long.
    pub length: Duration,
    /// What takes part.
    pub programs: Programs,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct RebalanceReport {
    /// Rebalances that were made.
    pub rebalances: u64,
    /// Rebalances that were undone.
    pub undone: u64,
    /// Moves that were made by both.
    pub moves: u64,
    /// Moves that came too late.
    pub missed_moves: u64,
    /// Times that came due while they were watched.
    pub times: u64,
    /// Those that ran, once each.
    pub executed: u64,
    /// Those that the servers say were skipped, by reason.
    pub skipped: u64,
    /// What must not be.
    pub faults: Vec<String>,
}

impl RebalanceReport {
    /// Is nothing wrong?
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
            0 => write!(f, "nothing lost, nothing doubled, nothing overlapped"),
            count => write!(f, "{count} faults"),
        }
    }
}
