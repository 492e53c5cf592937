//! The short crash test. `cargo xtask crash` runs the long crash test.

use anyhow::Result;
use evenkeel_crash_test::{Plan, Programs, Settings, StoreKind, run};

/// The seed is constant, so that a failure can be repeated.
const SEED: u64 = 20_261;

fn expect_clean(store: StoreKind, nodes: usize, plan: Plan) -> Result<()> {
    let faults = plan.faults.len();
    let programs = Programs::find()?;
    let outcome = run(&Settings { store, nodes, plan, programs })?;
    let report = &outcome.report;
    eprintln!("{report}");
    assert!(report.is_clean(), "{report}\nthe logs are in {:?}", outcome.logs);
    // If no faults were injected, the test would prove nothing.
    assert_eq!(report.faults.values().sum::<u64>(), faults as u64);
    assert!(report.executed > 200, "{report}");
    assert!(report.repeats > 0, "no attempt was lost and repeated: {report}");
    assert!(!report.takeovers.is_empty(), "{report}");
    Ok(())
}

#[test]
fn crash_three_nodes_on_postgres() -> Result<()> {
    expect_clean(StoreKind::Postgres, 3, Plan::short_on_postgres(SEED))
}

#[test]
fn crash_one_node_on_sqlite() -> Result<()> {
    expect_clean(StoreKind::Sqlite, 1, Plan::short_on_sqlite(SEED))
}
