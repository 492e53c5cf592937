//! Rebalances under fire, short enough for every change. `cargo xtask crash --rebalance` is the
//! long one.

use std::time::Duration;

use anyhow::Result;
use evenkeel_crash_test::{Programs, RebalanceSettings, rebalance_under_fire};

#[test]
fn crash_jobs_are_moved_and_moved_back_while_they_fire() -> Result<()> {
    let report = rebalance_under_fire(&RebalanceSettings {
        nodes: 2,
        jobs: 2000,
        every: 4,
        length: Duration::from_secs(20),
        programs: Programs::find()?,
    })?;
    eprintln!("{report}");
    assert!(report.is_clean(), "{report}");
    // Had nothing been moved, nothing could have gone wrong.
    assert!(report.rebalances > 1 && report.undone > 1, "{report}");
    assert!(report.moves > 1000 && report.executed > 5000, "{report}");
    Ok(())
}
