//! Installs tools written in Python, each in a separate virtual environment.

use crate::{program, provision, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const INSTALL_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Returns the path of a Python interpreter with the packages of `tools/<tool>/requirements.txt`.
/// Creates the virtual environment below `folder` if it is missing.
pub fn with_tool(folder: &Path, tool: &str) -> Result<PathBuf> {
    let environment = folder.join("venv");
    let python = environment.join("bin/python");
    let requirements = workspace::root().join("tools").join(tool).join("requirements.txt");
    let required = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let installed = environment.join("installed.txt");
    if python.exists() && fs::read_to_string(&installed).is_ok_and(|found| found == required) {
        return Ok(python);
    }
    provision::python()?;
    fs::create_dir_all(folder)?;
    program::succeed(
        Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment),
        INSTALL_LIMIT,
    )
    .context("cannot make a virtual environment with python3")?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    program::succeed(install.arg(&requirements), INSTALL_LIMIT)
        .with_context(|| format!("cannot install {tool}"))?;
    fs::write(installed, required)?;
    Ok(python)
}
