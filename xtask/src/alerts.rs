//! `cargo xtask alerts`: tests the alert rules with Prometheus' promtool.

use crate::{program, provision, workspace};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Checks the syntax of the alert rules, and runs promtool's tests of when the rules fire.
pub fn run() -> Result<()> {
    test(&provision::promtool()?)
}

/// Tests the alert rules as a step of `cargo xtask test`. Prints a message and succeeds if promtool
/// cannot be installed.
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
