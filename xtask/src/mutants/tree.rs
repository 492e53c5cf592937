//! A copy of the source tree to which mutants are applied.

use crate::program::finish;
use crate::workspace;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const APPLY_LIMIT: Duration = Duration::from_secs(60);

/// The copy always has the same path, and its unchanged files keep their modification times, so
/// cargo rebuilds only the crates that a mutant changes.
pub struct Tree {
    pub path: PathBuf,
    pub files: BTreeSet<PathBuf>,
}

impl Tree {
    pub fn reset(&self) -> Result<()> {
        sync(workspace::root(), &self.path, &self.files)
    }

    /// Returns true if the patch applied.
    pub fn apply(&self, patch: &Path) -> Result<bool> {
        apply(&self.path, patch)
    }
}

fn sync(from: &Path, to: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    fs::create_dir_all(to)?;
    for stray in workspace::walk(to)?.difference(files) {
        fs::remove_file(to.join(stray))?;
    }
    for file in files {
        let (source, copy) = (from.join(file), to.join(file));
        let content = fs::read(&source).with_context(|| format!("cannot read {source:?}"))?;
        if fs::read(&copy).is_ok_and(|current| current == content) {
            continue;
        }
        if let Some(folder) = copy.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&copy, content).with_context(|| format!("cannot write {copy:?}"))?;
    }
    Ok(())
}

fn apply(tree: &Path, patch: &Path) -> Result<bool> {
    let mut command = Command::new("git");
    command.args(["apply", "--whitespace=nowarn"]).arg(patch).current_dir(tree);
    // The copy of the source tree is in a folder that git ignores, so without
    // `GIT_CEILING_DIRECTORIES` git would silently apply nothing.
    if let Some(above) = tree.parent() {
        command.env("GIT_CEILING_DIRECTORIES", above);
    }
    command.stdin(Stdio::null());
    Ok(finish(&mut command, APPLY_LIMIT)?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "Why.\n# check: cargo nextest run -p a\n\
        --- a/src/x.rs\n+++ b/src/x.rs\n@@ -1 +1 @@\n-one\n+two\n";

    fn files(names: &[&str]) -> BTreeSet<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn patch_applies_once_and_reset_reverts_it() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("src")).unwrap();
        fs::write(from.join("src/x.rs"), "one\n").unwrap();
        fs::write(folder.path().join("p.patch"), PATCH).unwrap();
        let patch = folder.path().join("p.patch");
        let read = || fs::read_to_string(to.join("src/x.rs")).unwrap();

        sync(&from, &to, &files(&["src/x.rs"])).unwrap();
        fs::write(to.join("stray"), "").unwrap();
        assert!(apply(&to, &patch).unwrap());
        assert_eq!(read(), "two\n");
        assert!(!apply(&to, &patch).unwrap());

        sync(&from, &to, &files(&["src/x.rs"])).unwrap();
        assert_eq!(read(), "one\n");
        assert!(!to.join("stray").exists());
    }

    #[test]
    fn patch_applies_inside_a_repository_that_ignores_the_copy() {
        let folder = tempfile::tempdir().unwrap();
        let init = Command::new("git").args(["init", "-q"]).current_dir(folder.path()).status();
        assert!(init.unwrap().success());
        fs::write(folder.path().join(".gitignore"), "/target\n").unwrap();
        let tree = folder.path().join("target/tree");
        fs::create_dir_all(tree.join("src")).unwrap();
        fs::write(tree.join("src/x.rs"), "one\n").unwrap();
        fs::write(folder.path().join("p.patch"), PATCH).unwrap();
        assert!(apply(&tree, &folder.path().join("p.patch")).unwrap());
        assert_eq!(fs::read_to_string(tree.join("src/x.rs")).unwrap(), "two\n");
    }
}
