//! The files in `mutants/`.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The prefix of every check. nextest is required, because its exit code distinguishes failed tests
/// from a failed build.
pub const PREFIX: &str = "cargo nextest run";

#[derive(Debug)]
pub struct Patch {
    pub name: String,
    pub path: PathBuf,
    /// The text after [`PREFIX`] in the line `# check: …` of the patch file, above the diff.
    pub check: Option<String>,
}

/// Returns all patches in a folder, sorted by name. Returns an empty list if the folder does not
/// exist.
pub fn all(folder: &Path) -> Result<Vec<Patch>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut patches = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "patch") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            patches.push(Patch { name, path, check: check(&text) });
        }
    }
    patches.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(patches)
}

fn check(text: &str) -> Option<String> {
    let above =
        text.lines().take_while(|line| !line.starts_with("diff ") && !line.starts_with("--- "));
    let mut checks = above.filter_map(|line| line.strip_prefix("# check: "));
    let rest = checks.next()?.trim().strip_prefix(PREFIX)?;
    rest.starts_with(' ').then(|| rest.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_is_read_from_above_the_diff() {
        let text = "Leases never expire.\n# check: cargo nextest run -p a -E 'test(x)'\n--- a/x\n";
        assert_eq!(check(text).as_deref(), Some("-p a -E 'test(x)'"));
        assert_eq!(check("--- a/x\n# check: cargo nextest run -p a\n"), None);
    }

    #[test]
    fn check_without_nextest_is_ignored() {
        assert_eq!(check("# check: cargo test -p a\n"), None);
        assert_eq!(check("# check: cargo nextest runaway\n"), None);
    }

    #[test]
    fn missing_folder_has_no_patches() {
        assert!(all(Path::new("/nonexistent/mutants")).unwrap().is_empty());
    }
}
