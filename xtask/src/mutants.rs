//! `cargo xtask mutants`: checks that the tests detect broken code. Each `mutants/*.patch` breaks
//! the code on purpose and names the tests that must fail.

mod patch;
mod tree;

use crate::program::finish;
use crate::{provision, test, workspace};
use anyhow::{Context, Result, ensure};
use evenkeel_private_postgres::{Options, PrivatePostgres};
use patch::Patch;
use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;
use std::time::Duration;
use tree::Tree;

const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
const TEST_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The result of a mutant.
#[derive(Debug, PartialEq, Eq)]
enum MutantResult {
    /// A test failed, so the tests detect the mutant.
    Caught,
    /// Every test passed, so no test detects the mutant.
    Survived,
    /// The mutant could not be tested, for this reason.
    Void(String),
}

impl fmt::Display for MutantResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught => write!(f, "caught"),
            Self::Survived => write!(f, "SURVIVED"),
            Self::Void(reason) => write!(f, "VOID: {reason}"),
        }
    }
}

pub fn run(names: &[String]) -> Result<()> {
    let mut patches = patch::all(&workspace::root().join("mutants"))?;
    patches.retain(|patch| names.is_empty() || names.iter().any(|name| patch.name.contains(name)));
    ensure!(!patches.is_empty(), "no mutants/*.patch found");
    ensure!(
        provision::has_nextest(),
        "this task needs nextest, whose exit code distinguishes a failed test from a failed build: \
         cargo install --locked cargo-nextest, or see https://nexte.st"
    );
    provision::postgres()?;
    let runner = MutantRunner {
        server: PrivatePostgres::start(Options::unit_test())?,
        tree: Tree { path: workspace::target()?.join("mutants-tree"), files: workspace::files()? },
    };
    let mut sound = BTreeMap::new();
    let mut results = Vec::new();
    for patch in &patches {
        println!("\n==> {}", patch.name);
        results.push((patch.name.as_str(), runner.try_mutant(patch, &mut sound)?));
    }
    let width = results.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    println!();
    for (name, result) in &results {
        println!("{name:width$}  {result}");
    }
    let uncaught = results.iter().filter(|(_, result)| *result != MutantResult::Caught).count();
    ensure!(uncaught == 0, "{uncaught} of {} mutants were not caught", results.len());
    Ok(())
}

struct MutantRunner {
    server: PrivatePostgres,
    tree: Tree,
}

impl MutantRunner {
    /// Tests one mutant. `sound` caches for each check whether it passes on the unmodified source
    /// tree.
    fn try_mutant(
        &self,
        patch: &Patch,
        sound: &mut BTreeMap<String, bool>,
    ) -> Result<MutantResult> {
        let void = |reason: &str| Ok(MutantResult::Void(reason.to_owned()));
        let Some(check) = &patch.check else {
            return void("no line `# check: cargo nextest run …`");
        };
        self.tree.reset()?;
        // A test that also fails on the unmodified source tree does not detect the mutant.
        if !sound.contains_key(check) {
            let passes = self.nextest(check, "", TEST_LIMIT + BUILD_LIMIT)? == Some(0);
            sound.insert(check.clone(), passes);
        }
        if !sound[check] {
            return void("its check also fails without the mutant");
        }
        if !self.tree.apply(&patch.path)? {
            return void("does not apply");
        }
        if self.nextest(check, "--no-run", BUILD_LIMIT)? != Some(0) {
            return void("does not compile");
        }
        Ok(judge(self.nextest(check, "", TEST_LIMIT)?))
    }

    /// Runs the check of a mutant with one additional nextest option, and returns the exit code.
    fn nextest(&self, check: &str, option: &str, limit: Duration) -> Result<Option<i32>> {
        let script = format!("exec {} {option} {check}", patch::PREFIX);
        println!("--> {} {option} {check}", patch::PREFIX);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&self.tree.path);
        shell.env("CARGO_TARGET_DIR", workspace::target()?.join("mutants"));
        shell.env(test::POSTGRES_VARIABLE, self.server.url());
        Ok(finish(&mut shell, limit).context("a check failed to end")?.code())
    }
}

/// Interprets nextest's exit code for a mutant that compiles.
fn judge(code: Option<i32>) -> MutantResult {
    match code {
        Some(0) => MutantResult::Survived,
        Some(100) => MutantResult::Caught,
        Some(4) => MutantResult::Void("its check selects no test".to_owned()),
        Some(code) => MutantResult::Void(format!("nextest ended with code {code}")),
        None => MutantResult::Void("nextest was killed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutant_is_caught_only_by_failed_tests() {
        assert_eq!(judge(Some(100)), MutantResult::Caught);
        assert_eq!(judge(Some(0)), MutantResult::Survived);
        for code in [Some(4), Some(101), Some(1), None] {
            assert!(matches!(judge(code), MutantResult::Void(_)), "{code:?}");
        }
    }

    #[test]
    fn every_mutant_applies_to_the_current_tree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree");
        let tree = Tree { path, files: workspace::files().unwrap() };
        for patch in patch::all(&workspace::root().join("mutants")).unwrap() {
            tree.reset().unwrap();
            assert!(tree.apply(&patch.path).unwrap(), "{} no longer applies", patch.name);
        }
    }
}
