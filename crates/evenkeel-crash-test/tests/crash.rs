//! The crash test, short enough for every change. `cargo xtask crash` is the long one.

use anyhow::Result;
use evenkeel_crash_test::{Plan, Programs, Settings, StoreKind, run};

/// Other faults would be as good, but a failure should come again.
const SEED: u64 = 20_261;

fn expect_clean(store: StoreKind, nodes: usize, plan: Plan) -> Result<()> {
    let faults = plan.faults.len();
    let programs = Programs::find()?;
    let outcome = run(&Settings { store, nodes, plan, programs })?;
    let report = &outcome.report;
    eprintln!("{report}");
    assert!(report.is_clean(), "{report}\nthe logs are in {:?}", outcome.logs);
    // Had nothing happened, nothing could have gone wrong.
    assert_eq!(report.faults.values().sum::<u64>(), faults as u64);
    assert!(report.executed > 200, "{report}");
    assert!(report.repeats > 0, "no work was lost and made up for: {report}");
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
