//! `cargo xtask advisories`: checks dependencies against the RustSec database.

use crate::program::{cargo, succeed, works};
use anyhow::Result;
use std::process::Stdio;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Checks advisories, banned crates and crate sources with cargo-deny and `deny.toml`, or only
/// advisories with cargo-audit.
pub fn run() -> Result<()> {
    if is_installed("deny") {
        return succeed(&mut cargo(&["deny", "check", "advisories", "bans", "sources"]), LIMIT);
    }
    if is_installed("audit") {
        return succeed(&mut cargo(&["audit"]), LIMIT);
    }
    anyhow::bail!("neither cargo-deny nor cargo-audit is installed: cargo install cargo-deny")
}

/// Checks advisories as a step of `cargo xtask test`. Prints a message and succeeds if neither
/// cargo-deny nor cargo-audit is installed, or if cargo-deny cannot download the RustSec database.
/// `cargo xtask tidy` finds the worst banned crates without these tools and without a network.
pub fn run_if_possible() -> Result<()> {
    if !is_installed("deny") && !is_installed("audit") {
        println!("skipped: advisories not checked: cargo-deny is not installed");
        return Ok(());
    }
    // cargo-deny downloads the RustSec database before it checks the dependencies.
    let mut fetch = cargo(&["deny", "fetch", "db"]);
    let fetch = fetch.stdout(Stdio::null()).stderr(Stdio::null());
    if is_installed("deny") && succeed(fetch, LIMIT).is_err() {
        println!("skipped: advisories not checked: their database can't be fetched");
        return Ok(());
    }
    run()
}

fn is_installed(tool: &str) -> bool {
    works(&mut cargo(&[tool, "--version"]))
}
