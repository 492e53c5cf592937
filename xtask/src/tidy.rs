//! `cargo xtask tidy`: checks rules of the source tree that the compiler does not check.

mod dependencies;
mod rules;

use crate::workspace;
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The documents that a newcomer reads first.
const DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"];

/// The folders of both stores, which must contain files with the same names in `queries` and `src`.
const STORES: [&str; 2] = ["crates/evenkeel-store-sqlite", "crates/evenkeel-store-postgres"];

/// Modules that exist in only one store, because they handle connections to its kind of database.
const OWN_MODULES: &str = "src/connection";

/// The result of a rule.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// An error: `tidy` fails.
    Wrong(String),
    /// A hint.
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
    ensure!(wrong == 0, "{wrong} rules of the source tree are broken");
    println!("tidy");
    Ok(())
}

/// Applies every rule to the files with these paths, which are relative to `root`.
fn check(root: &Path, files: &BTreeSet<PathBuf>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files {
        let bytes = fs::read(root.join(file))?;
        // A file that is not UTF-8 is not text and is skipped.
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
        if file == Path::new("Cargo.lock") {
            findings.extend(dependencies::banned(&text));
        }
    }
    let present = |document: &&str| files.contains(Path::new(document));
    findings.extend(rules::documents(&DOCUMENTS, present));
    let [one, other] = STORES.map(|store| (store, twins(files, store)));
    findings.extend(rules::same_tree(&one, &other));
    Ok(findings)
}

/// Returns the names of the SQL files and modules of a store. The names have no extensions, because
/// a module may be a file in one store and a folder in the other.
fn twins(files: &BTreeSet<PathBuf>, store: &str) -> BTreeSet<String> {
    let in_store = files.iter().filter_map(|file| file.strip_prefix(store).ok());
    let twins = in_store.filter(|file| {
        (file.starts_with("queries") || file.starts_with("src")) && !file.starts_with(OWN_MODULES)
    });
    let name = |file: &Path| match file.file_stem() {
        Some(stem) if stem == "mod" => file.parent().unwrap_or(file).display().to_string(),
        _ => file.with_extension("").display().to_string(),
    };
    twins.map(name).collect()
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
            ("crates/evenkeel-store-sqlite/queries/claim.sql", "SELECT 1"),
            ("crates/evenkeel-store-sqlite/src/claim.rs", ""),
            ("crates/evenkeel-store-sqlite/src/connection/writer.rs", ""),
            ("crates/evenkeel-store-postgres/queries/claim.sql", "SELECT 1"),
            ("crates/evenkeel-store-postgres/src/claim/mod.rs", ""),
            ("crates/evenkeel-store-postgres/src/claim/choose.rs", ""),
        ];
        assert_eq!(check_tree(&tree), []);
    }

    #[test]
    fn a_file_that_only_one_store_has_is_found() {
        for store in STORES {
            for lost in ["queries/renew.sql", "src/renew.rs", "src/jobs/renew.rs"] {
                let findings = check_tree(&[(&format!("{store}/{lost}"), "")]);
                let name = lost.split('.').next().unwrap();
                assert!(
                    matches!(&findings[..], [Finding::Wrong(text)]
                        if text.contains(store) && text.contains(name)),
                    "{findings:?}"
                );
            }
        }
    }

    /// An old cargo shows only the first manifest key that it cannot parse, and neither comments
    /// nor `rust-version`.
    #[test]
    fn the_manifest_shows_an_old_cargo_which_rust_it_needs() {
        let read = |name: &str| fs::read_to_string(workspace::root().join(name)).unwrap();
        let manifest = read("Cargo.toml");
        let (_, needed) = manifest.split_once("\nrust-version = \"").unwrap();
        let needed = needed.split('"').next().unwrap();
        let mut settings = manifest.lines().filter(|line| !line.starts_with('#'));
        let shown = format!("[profile.needs-rust-{}-or-newer", needed.replace('.', "-"));
        assert!(settings.next().unwrap().starts_with(&shown), "{shown}");
        assert!(settings.take(2).any(|line| line.starts_with("debug = \"")));
        assert!(manifest.contains("\nresolver = \"2\"\n"));
        for document in ["README.md", "CONTRIBUTING.md"] {
            let text = read(document);
            assert!(
                text.contains(&format!("Rust {needed}")) && text.contains("rustup"),
                "{document}"
            );
        }
    }
}
