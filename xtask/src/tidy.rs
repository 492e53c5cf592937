//! `cargo xtask tidy`: rules of the source tree that no compiler knows.

mod rules;

use crate::workspace;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What a newcomer looks for first.
const DOCUMENTS: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"];

/// Two folders that hold the same statements, in two dialects.
const QUERIES: [&str; 2] =
    ["crates/evenkeel-store-sqlite/queries", "crates/evenkeel-store-postgres/queries"];

/// What a rule has to say about the tree.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// Must be mended.
    Wrong(String),
    /// Worth a look.
    Note(String),
}

pub fn run() -> Result<()> {
    let findings = check(workspace::root(), &workspace::files()?)?;
    let mut wrong = 0;
    for finding in &findings {
        match finding {
            Finding::Wrong(text) => {
                wrong += 1;
                println!("error: {text}");
            }
            Finding::Note(text) => println!("note: {text}"),
        }
    }
    if wrong > 0 {
        bail!("{wrong} of the tree's rules are broken");
    }
    println!("tidy");
    Ok(())
}

/// Applies every rule to `files`, which are relative to `root`.
fn check(root: &Path, files: &BTreeSet<PathBuf>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files {
        let bytes = fs::read(root.join(file))?;
        // What is not UTF-8 is not text.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let name = file.display().to_string();
        findings.extend(rules::absolute_path(&name, &text, root));
        if file.extension().is_some_and(|extension| extension == "rs") {
            findings.extend(rules::length(&name, &text));
            findings.extend(rules::unfinished(&name, &text));
        }
        if file.file_name().is_some_and(|own| own == "Cargo.toml") {
            findings.extend(rules::lints(&name, &text));
        }
    }
    let present = |document: &&str| files.contains(Path::new(document));
    findings.extend(rules::documents(&DOCUMENTS, present));
    let [left, right] = QUERIES.map(|folder| statements(files, folder));
    if !left.is_empty() && !right.is_empty() {
        findings.extend(rules::same_statements((QUERIES[0], &left), (QUERIES[1], &right)));
    }
    Ok(findings)
}

/// The `.sql` files below `folder`, relative to it.
fn statements(files: &BTreeSet<PathBuf>, folder: &str) -> BTreeSet<String> {
    files
        .iter()
        .filter_map(|file| file.strip_prefix(folder).ok())
        .filter(|file| file.extension().is_some_and(|extension| extension == "sql"))
        .map(|file| file.display().to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_tree(tree: &[(&str, &str)]) -> Vec<Finding> {
        let folder = tempfile::tempdir().unwrap();
        let documents = DOCUMENTS.iter().map(|name| (*name, ""));
        for (name, text) in documents.chain(tree.iter().copied()) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        check(folder.path(), &workspace::walk(folder.path()).unwrap()).unwrap()
    }

    #[test]
    fn a_tidy_tree_has_no_findings() {
        let tree = [
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n[lints]\nworkspace = true\n"),
            ("crates/a/src/lib.rs", "//! Nothing.\n"),
            ("crates/evenkeel-store-sqlite/queries/runs/claim.sql", "SELECT 1"),
            ("crates/evenkeel-store-postgres/queries/runs/claim.sql", "SELECT 1"),
        ];
        assert_eq!(check_tree(&tree), []);
    }

    #[test]
    fn a_statement_of_one_dialect_only_is_found() {
        let tree = [
            ("crates/evenkeel-store-sqlite/queries/runs/claim.sql", "SELECT 1"),
            ("crates/evenkeel-store-sqlite/queries/runs/renew.sql", "SELECT 1"),
            ("crates/evenkeel-store-postgres/queries/runs/claim.sql", "SELECT 1"),
        ];
        let findings = check_tree(&tree);
        assert!(
            matches!(&findings[..], [Finding::Wrong(text)] if text.contains("runs/renew.sql")),
            "{findings:?}"
        );
    }

    #[test]
    fn a_store_that_does_not_exist_yet_is_not_compared() {
        let tree = [("crates/evenkeel-store-sqlite/queries/claim.sql", "SELECT 1")];
        assert_eq!(check_tree(&tree), []);
    }
}
