//! `cargo xtask tidy`: rules of the source tree that no compiler knows.

mod dependencies;
mod rules;

use crate::workspace;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What a newcomer looks for first.
const DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"];

/// The verbs of the port. A statement's file is called after the verb it serves, so that whoever
/// knows it in one dialect finds its counterpart in the other.
const VERBS: [&str; 136] = [
    "all_condition_counts",
    "all_job_counts",
    "announce",
    "are_dead",
    "begin_rebalance",
    "begin_request",
    "begin_steal",
    "cancel_run",
    "cancellations",
    "census",
    "change_target",
    "claim",
    "clear_pages",
    "close",
    "closed",
    "condition_counts",
    "count_uncounted",
    "delete_dead",
    "delete_secret",
    "delete_target",
    "drain",
    "end_rebalance",
    "end_request",
    "events_after",
    "find_key",
    "find_owned",
    "find_running",
    "finish",
    "fire",
    "fire_delayed",
    "prune_audit",
    "prune_balance",
    "prune_dead",
    "prune_dedup",
    "prune_failing",
    "prune_failures",
    "prune_pages",
    "prune_permits",
    "prune_requests",
    "get",
    "get_dead",
    "get_jobs",
    "get_page",
    "get_rebalance",
    "get_run",
    "get_secret",
    "get_secrets",
    "get_targets",
    "get_with_now",
    "active_attempts",
    "ids_of_numbers",
    "job_counts",
    "job_titles",
    "jobs_named",
    "jobs_of_target",
    "join",
    "judge",
    "save_pages",
    "save_score",
    "known_pages",
    "list_at_risk",
    "list_audit",
    "list_dead",
    "list_failing",
    "list_failures",
    "list_jobs",
    "list_keys",
    "list_pages",
    "list_rebalances",
    "list_runs",
    "list_secrets",
    "list_targets",
    "listen",
    "listened_until",
    "load_due",
    "load_jobs",
    "look_ahead",
    "create_key",
    "create_target",
    "members",
    "move_jobs",
    "newest_event",
    "note",
    "now",
    "order",
    "overdue_in_queue",
    "tenant_load_profiles",
    "owned",
    "ping",
    "placements",
    "placements_of",
    "plan_rebalance",
    "postpone",
    "prune",
    "publish",
    "purge",
    "put_secret",
    "queue_depths",
    "queue_front",
    "reprioritize",
    "rebalance_part",
    "record",
    "redrive",
    "register",
    "register_paused",
    "reopen",
    "requeue",
    "reseal_secrets",
    "retire",
    "revoke_key",
    "rhythms",
    "scores",
    "see_pages",
    "send_message",
    "setting",
    "settle",
    "slot_loads",
    "stale_secrets",
    "stale_targets",
    "steal",
    "supersede",
    "take_messages",
    "run_totals",
    "tally",
    "target_urls",
    "tenant",
    "to_judge",
    "trigger",
    "release_limited",
    "release_all_limited",
    "use_keys",
    "waiting",
    "waiting_ahead",
    "waiting_of",
    "watch",
    "recount_load",
];

/// What a store does before any verb.
const BEFORE_VERBS: [&str; 2] = ["connect", "migrate"];

/// The folders that hold the statements of a dialect.
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
        if file == Path::new("Cargo.lock") {
            findings.extend(dependencies::banned(&text));
        }
    }
    let present = |document: &&str| files.contains(Path::new(document));
    findings.extend(rules::documents(&DOCUMENTS, present));
    let beginnings = [&VERBS[..], &BEFORE_VERBS[..]].concat();
    for folder in QUERIES {
        findings.extend(rules::statements(folder, &statements(files, folder), &beginnings));
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
            ("crates/evenkeel-store-sqlite/queries/claim_take.sql", "SELECT 1"),
            ("crates/evenkeel-store-postgres/queries/claim.sql", "SELECT 1"),
            ("crates/evenkeel-store-postgres/queries/migrate_lock.sql", "SELECT 1"),
        ];
        assert_eq!(check_tree(&tree), []);
    }

    #[test]
    fn a_statement_of_no_verb_is_found_in_either_dialect() {
        for store in ["sqlite", "postgres"] {
            let lost = format!("crates/evenkeel-store-{store}/queries/renew.sql");
            let other = format!("crates/evenkeel-store-{store}/src/notes.sql");
            let findings = check_tree(&[(&lost, "SELECT 1"), (&other, "SELECT 1")]);
            assert!(
                matches!(&findings[..], [Finding::Wrong(text)] if text.contains(&lost)),
                "{findings:?}"
            );
        }
    }

    /// An old cargo shows the first key that it can't read, and nothing of comments or `rust-version`.
    #[test]
    fn the_manifest_tells_an_old_cargo_which_rust_it_needs() {
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

    #[test]
    fn every_verb_of_the_port_is_known_and_no_other() {
        let mut verbs = BTreeSet::new();
        let source = workspace::root().join("crates/evenkeel-store/src");
        for file in fs::read_dir(source).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            let signatures = text.lines().filter_map(|line| line.strip_prefix("    async fn "));
            verbs.extend(signatures.map(|rest| rest.split('(').next().unwrap().to_owned()));
        }
        assert_eq!(verbs, VERBS.map(str::to_owned).into());
    }
}
