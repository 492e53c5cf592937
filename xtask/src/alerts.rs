//! `cargo xtask alerts`: the alert rules, by Prometheus' own tool.

use crate::{program, provision, workspace};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Checks the rules, and that each fires when it should and at no other time.
pub fn run() -> Result<()> {
    test(&provision::promtool()?)
}

/// The same among all other tests. Where the tool can't be had, it says so and goes on: nothing
/// else depends on it.
pub fn run_if_possible() -> Result<()> {
    match provision::promtool() {
        Ok(promtool) => test(&promtool),
        Err(error) => {
            println!("the alert rules were not tested: {error:#}");
            Ok(())
        }
    }
}

fn test(promtool: &Path) -> Result<()> {
    let folder = workspace::root().join("tools/alerts");
    for arguments in
        [["check", "rules", "evenkeel.rules.yml"], ["test", "rules", "evenkeel.rules.test.yml"]]
    {
        program::succeed(Command::new(promtool).args(arguments).current_dir(&folder), LIMIT)
            .with_context(|| format!("promtool {}", arguments.join(" ")))?;
    }
    Ok(())
}
