//! Finds the programs that the crash test starts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

#[derive(Clone, Debug)]
pub struct Programs {
    pub server: PathBuf,
    pub probe: PathBuf,
}

impl Programs {
    /// Finds the programs of the crash test in the folder of the running program, where cargo puts
    /// all programs. Builds the program of the server if it is missing, because it belongs to
    /// another package.
    ///
    /// # Errors
    /// If the programs are missing and cannot be built.
    pub fn find() -> Result<Self> {
        let own = std::env::current_exe().context("the path of this program is unknown")?;
        let folder = own.parent().context("this program is in no folder")?;
        // Cargo puts test programs into the subfolder `deps`.
        let folder = match folder.file_name().and_then(|name| name.to_str()) {
            Some("deps") => folder.parent().context("deps is in no folder")?,
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

    /// Copies the programs to `folder`, so that a concurrent build does not replace them.
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
    // The folder of the build profile is inside the target folder.
    if let Some(target) = folder.parent() {
        cargo.arg("--target-dir").arg(target);
    }
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "the server cannot be built: {status}");
    Ok(())
}
