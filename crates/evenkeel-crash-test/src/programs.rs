//! Where the programs are that take part.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The server, and the body of its jobs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `evenkeel`.
    pub server: PathBuf,
    /// `evenkeel-crash-probe`.
    pub probe: PathBuf,
}

impl Programs {
    /// Those beside this process's own program, which cargo put there. The server belongs to
    /// another package, so it is built if it is missing.
    ///
    /// # Errors
    /// When they are not there, and can't be built.
    pub fn find() -> Result<Self> {
        let own = std::env::current_exe().context("this process does not know its program")?;
        let folder = own.parent().context("a program is in a folder")?;
        // Tests lie one level deeper.
        let folder = match folder.file_name().and_then(|name| name.to_str()) {
            Some("deps") => folder.parent().context("deps is in a folder")?,
            _ => folder,
        };
        let programs =
            Self { server: folder.join("evenkeel"), probe: folder.join("evenkeel-crash-probe") };
        ensure!(programs.probe.is_file(), "{:?} is missing; build this package", programs.probe);
        if !programs.server.is_file() {
            build(folder)?;
        }
        Ok(programs)
    }

    /// Copies in `folder`, which a build that goes on meanwhile does not touch.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<Self> {
        let copy = |program: &Path, name: &str| -> Result<PathBuf> {
            let place = folder.join(name);
            std::fs::copy(program, &place).with_context(|| format!("cannot copy {program:?}"))?;
            Ok(place)
        };
        Ok(Self {
            server: copy(&self.server, "evenkeel")?,
            probe: copy(&self.probe, "evenkeel-crash-probe")?,
        })
    }
}

fn build(folder: &Path) -> Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--package", "evenkeel"]);
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    // The folder of the profile is in the target folder.
    if let Some(target) = folder.parent() {
        cargo.arg("--target-dir").arg(target);
    }
    let status = cargo.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("the server can't be built: {status}");
    }
    Ok(())
}
