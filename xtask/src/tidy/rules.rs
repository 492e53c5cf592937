//! The rules of `cargo xtask tidy`. Each rule of `cargo xtask tidy` is a function that returns its
//! findings.

use super::Finding::{self, Note, Wrong};
use std::collections::BTreeSet;
use std::path::Path;

const LINES_MAX: usize = 500;
const LINES_WELCOME: usize = 300;

/// Texts that mark unfinished code, split so that this file does not break its own rule.
const UNFINISHED: [&str; 2] = [concat!("todo", "!("), concat!("unimplemented", "!(")];

/// Limits the number of lines of a file.
pub fn length(name: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    if lines > LINES_MAX {
        return Some(Wrong(format!("{name} has {lines} lines, more than {LINES_MAX}")));
    }
    (lines > LINES_WELCOME).then(|| Note(format!("{name} has {lines} lines")))
}

/// Finds unfinished code.
pub fn unfinished(name: &str, text: &str) -> Vec<Finding> {
    let marked = |line: &str| UNFINISHED.iter().any(|marker| line.contains(marker));
    let lines = text.lines().enumerate().filter(|(_, line)| marked(line));
    lines.map(|(index, _)| Wrong(format!("{name}:{} is unfinished", index + 1))).collect()
}

/// Finds absolute paths of the checkout, so that the source tree works wherever it is checked out.
/// Skips a checkout directly below `/`, because a short path such as `/app` is part of many other
/// paths.
pub fn absolute_path(name: &str, text: &str, root: &Path) -> Vec<Finding> {
    let root = root.display().to_string();
    if root.matches('/').count() < 2 {
        return Vec::new();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| mentions(line, &root));
    lines.map(|(index, _)| Wrong(format!("{name}:{} names {root}", index + 1))).collect()
}

fn mentions(line: &str, path: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    line.match_indices(path).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + path.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

/// Requires every crate to inherit the lints of the workspace. The workspace manifest itself
/// declares the lints.
pub fn lints(name: &str, manifest: &str) -> Option<Finding> {
    let mut section = "";
    let mut is_package = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
            is_package |= line == "[package]";
        }
        let compact = line.replace(' ', "");
        let inherits = match section {
            "[lints]" => compact == "workspace=true",
            "" => compact == "lints.workspace=true",
            _ => false,
        };
        if inherits {
            return None;
        }
    }
    is_package.then(|| Wrong(format!("{name} lacks `[lints] workspace = true`")))
}

pub fn documents(required: &[&str], present: impl Fn(&&str) -> bool) -> Vec<Finding> {
    let missing = required.iter().filter(|document| !present(document));
    missing.map(|document| Wrong(format!("{document} is missing"))).collect()
}

/// The folder of a store, and the names of its SQL files and modules.
pub type StoreTree<'a> = (&'a str, BTreeSet<String>);

/// Requires both stores to have the same files, so that a reader who knows one store finds the
/// counterpart in the other. A module that is one file in one store may be split into several files
/// in the other store.
pub fn same_tree(one: &StoreTree<'_>, other: &StoreTree<'_>) -> Vec<Finding> {
    let mut findings = lost(one, other);
    findings.extend(lost(other, one));
    findings
}

fn lost((folder, names): &StoreTree<'_>, (other, known): &StoreTree<'_>) -> Vec<Finding> {
    let is_one_file = |name: &str| {
        let within = format!("{name}/");
        known.contains(name) && !known.iter().any(|known| known.starts_with(&within))
    };
    let is_part = |name: &str| name.rsplit_once('/').is_some_and(|(whole, _)| is_one_file(whole));
    let lost = names.iter().filter(|name| !known.contains(*name) && !is_part(name));
    lost.map(|name| Wrong(format!("{folder}/{name} has no counterpart in {other}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_wrong(finding: Option<Finding>) -> bool {
        matches!(finding, Some(Wrong(_)))
    }

    #[test]
    fn a_long_file_is_noted_and_a_very_long_one_is_wrong() {
        assert_eq!(length("a.rs", &"\n".repeat(300)), None);
        assert!(matches!(length("a.rs", &"\n".repeat(301)), Some(Note(_))));
        assert!(matches!(length("a.rs", &"\n".repeat(500)), Some(Note(_))));
        assert!(is_wrong(length("a.rs", &"\n".repeat(501))));
    }

    #[test]
    fn unfinished_code_is_found_with_its_line() {
        let text = format!("fn a() {{}}\nfn b() {{ {}) }}\n", UNFINISHED[0]);
        assert_eq!(unfinished("a.rs", &text), [Wrong("a.rs:2 is unfinished".to_owned())]);
        assert_eq!(unfinished("a.rs", "// a todo list"), []);
    }

    #[test]
    fn only_the_checkout_itself_is_an_absolute_path() {
        let check = |text: &str| absolute_path("a", text, Path::new("/home/me/keel")).len();
        assert_eq!(check("cd /home/me/keel/crates\nx\n\"/home/me/keel\""), 2);
        assert_eq!(check("/home/me/keel-data /srv/home/me/keelhaul"), 0);
        assert_eq!(check("target of /mnt/x/home/me/keel"), 0);
    }

    #[test]
    fn a_checkout_below_the_root_is_skipped() {
        assert_eq!(absolute_path("a", "COPY . /app", Path::new("/app")), []);
    }

    #[test]
    fn a_crate_must_inherit_the_lints() {
        let package = "[package]\nname = \"a\"\n";
        assert_eq!(lints("a", &format!("{package}[lints]\nworkspace = true\n")), None);
        assert_eq!(lints("a", &format!("lints.workspace = true\n{package}")), None);
        assert!(is_wrong(lints("a", package)));
        assert!(is_wrong(lints("a", &format!("{package}[lints]\n[other]\nworkspace = true\n"))));
    }

    #[test]
    fn a_virtual_manifest_need_not_inherit() {
        assert_eq!(lints("a", "[workspace]\nmembers = []\n"), None);
    }

    #[test]
    fn a_missing_document_is_wrong() {
        let findings = documents(&["README.md", "LICENSE"], |name| *name == "LICENSE");
        assert_eq!(findings, [Wrong("README.md is missing".to_owned())]);
    }
}
