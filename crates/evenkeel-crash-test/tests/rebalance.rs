//! The short rebalance test. `cargo xtask crash --rebalance` runs the long rebalance test.

use std::time::Duration;

use anyhow::Result;
use evenkeel_crash_test::{Programs, RebalanceSettings, rebalance_while_firing};

#[test]
fn crash_jobs_are_moved_and_moved_back_while_they_fire() -> Result<()> {
    let report = rebalance_while_firing(&RebalanceSettings {
        nodes: 2,
        jobs: 2000,
        every: 4,
        length: Duration::from_secs(20),
        programs: Programs::find()?,
    })?;
    eprintln!("{report}");
    assert!(report.is_clean(), "{report}");
    // If the rebalances moved no jobs, the test would prove nothing.
    assert!(report.rebalances > 1 && report.undone > 1, "{report}");
    assert!(report.moves > 1000 && report.executed > 5000, "{report}");
    Ok(())
}
