//! The paths of the source tree.

use crate::program;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Cargo's target directory, as configured.
pub fn target() -> Result<PathBuf> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let output = program::answer(&mut program::cargo(&arguments))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output).context("cannot read cargo metadata")?;
    let target = metadata["target_directory"].as_str().context("cargo metadata has no target")?;
    Ok(PathBuf::from(target))
}

/// Returns every file that git tracks or would track, sorted, as paths relative to the root. In an
/// unpacked archive without git, lists the files of all folders instead.
pub fn files() -> Result<BTreeSet<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let mut files = match program::answer(git.current_dir(root()).stderr(Stdio::null())) {
        Ok(output) => {
            let text = String::from_utf8(output).context("a file name is not UTF-8")?;
            text.split_terminator('\0').map(PathBuf::from).collect()
        }
        Err(_) => walk(root())?,
    };
    // Removes files that were deleted but that git still tracks.
    files.retain(|file| root().join(file).is_file());
    Ok(files)
}

/// Returns the path, relative to `folder`, of every file below it, except build output and `.git`.
pub fn walk(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(relative) = pending.pop() {
        let here = folder.join(&relative);
        let entries = fs::read_dir(&here).with_context(|| format!("cannot list {here:?}"))?;
        for entry in entries {
            let entry = entry?;
            let name = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if name != Path::new("target") && name != Path::new(".git") {
                    pending.push(name);
                }
            } else {
                found.insert(name);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walk_finds_nested_files_and_skips_build_output() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/b/c.rs", "target/debug/x", ".git/HEAD", "d.md"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let expected = ["a/b/c.rs", "d.md"].map(PathBuf::from);
        assert_eq!(walk(folder.path()).unwrap(), BTreeSet::from(expected));
    }

    #[test]
    fn files_contain_this_file() {
        assert!(files().unwrap().contains(Path::new("xtask/src/workspace.rs")));
    }
}
