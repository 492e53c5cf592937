//! `cargo xtask browser`: tests the dashboard in Debian's Chromium with the scripts in
//! `tools/browser`.

use crate::program::{cargo, check, finish_with_output, succeed};
use crate::tally::Tally;
use crate::{ambient, provision, python, workspace};
use anyhow::{Context, Error, Result};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
const TEST_LIMIT: Duration = Duration::from_secs(10 * 60);
/// The arguments of `cargo` that build only the server.
pub const BUILD_SERVER: [&str; 3] = ["build", "--package", "evenkeel"];

pub fn run(names: &[String]) -> Result<()> {
    let python = prepare()?;
    test(python, &BUILD_SERVER, names, &mut Tally::default())
}

/// Runs all tests as a step of `cargo xtask test`. On a developer's machine without Chromium or
/// Selenium, the step is left out. `build` contains the arguments of `cargo` that build the server.
pub fn run_if_possible(build: &[&str], tally: &mut Tally) -> Result<()> {
    match prepare() {
        Ok(python) => test(python, build, &[], tally),
        Err(error) => leave_out(error, ambient::is_ci()),
    }
}

/// Says that no browser has tested the dashboard. In CI this is an error, because a step that passes
/// without a test would hide the missing browser.
fn leave_out(error: Error, is_ci: bool) -> Result<()> {
    if is_ci {
        return Err(error.context("the dashboard can't be tested in a browser"));
    }
    println!(
        "NOT TESTED: the dashboard in a browser. {error:#}. Install the packages chromium, \
         chromium-driver and python3-venv, and run `cargo xtask browser`."
    );
    Ok(())
}

/// Installs Chromium, and returns a Python interpreter with Selenium.
pub fn prepare() -> Result<PathBuf> {
    provision::chromium()?;
    python::with_tool(&workspace::target()?.join("browser"), "browser")
}

fn test(python: PathBuf, build: &[&str], names: &[String], tally: &mut Tally) -> Result<()> {
    let mut command = script(python, build, "run_tests.py", "browser/tests")?;
    let (status, output) = finish_with_output(command.args(names), TEST_LIMIT)?;
    let counted = Tally::from_last_line(&output).context("the browser tests have no summary")?;
    *tally = tally.plus(counted);
    check(status)
}

/// Returns a command that runs a script in `tools/browser`. The script starts the built server, and
/// writes to `folder` below the target directory.
pub fn script(python: PathBuf, build: &[&str], name: &str, folder: &str) -> Result<Command> {
    succeed(&mut cargo(build), BUILD_LIMIT)?;
    let target = workspace::target()?;
    let mut command = Command::new(python);
    command.arg("-B").arg(workspace::root().join("tools/browser").join(name));
    command.arg("--binary").arg(target.join("debug/evenkeel"));
    command.arg("--folder").arg(target.join(folder)).stdin(Stdio::null());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn missing_browser_is_an_error_only_in_ci() {
        assert!(leave_out(anyhow!("no chromium"), false).is_ok());
        let error = leave_out(anyhow!("no chromium"), true).unwrap_err();
        assert!(format!("{error:#}").ends_with("in a browser: no chromium"), "{error:#}");
    }
}
