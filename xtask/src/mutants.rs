//! `cargo xtask mutants`: proof that the tests notice. Each `mutants/*.patch` breaks something
//! on purpose, and names the tests that must fail.

mod patch;
mod tree;

use crate::program::finish;
use crate::{provision, test, workspace};
use anyhow::{Context, Result, bail};
use evenkeel_private_postgres::{Options, PrivatePostgres};
use patch::Patch;
use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;
use std::time::Duration;
use tree::Tree;

const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
const TEST_LIMIT: Duration = Duration::from_secs(30 * 60);

/// What became of a mutant.
#[derive(Debug, PartialEq, Eq)]
enum Disposition {
    /// A test failed, as one should.
    Caught,
    /// Every test passed: nobody would have noticed.
    Survived,
    /// It proves nothing, for this reason.
    Void(String),
}

impl fmt::Display for Disposition {
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
    if patches.is_empty() {
        bail!("no mutants/*.patch found");
    }
    if !provision::has_nextest() {
        bail!(
            "nextest tells a failed test from a failed build, which this needs: cargo install --locked \
             cargo-nextest, or see https://nexte.st"
        );
    }
    provision::postgres()?;
    let bench = Bench {
        server: PrivatePostgres::start(Options::unit_test())?,
        tree: Tree::at(workspace::target()?.join("mutants-tree"), workspace::files()?),
    };
    let mut sound = BTreeMap::new();
    let mut fates = Vec::new();
    for patch in &patches {
        println!("\n==> {}", patch.name);
        fates.push((patch.name.as_str(), bench.fate(patch, &mut sound)?));
    }
    let width = fates.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    println!();
    for (name, fate) in &fates {
        println!("{name:width$}  {fate}");
    }
    let uncaught = fates.iter().filter(|(_, fate)| *fate != Disposition::Caught).count();
    if uncaught > 0 {
        bail!("{uncaught} of {} mutants were not caught", fates.len());
    }
    Ok(())
}

/// Where mutants are tried.
struct Bench {
    server: PrivatePostgres,
    tree: Tree,
}

impl Bench {
    /// `sound` remembers which checks pass on the unbroken tree.
    fn fate(&self, patch: &Patch, sound: &mut BTreeMap<String, bool>) -> Result<Disposition> {
        let void = |reason: &str| Ok(Disposition::Void(reason.to_owned()));
        let Some(check) = &patch.check else {
            return void("has no line `# check: cargo nextest run …`");
        };
        self.tree.reset()?;
        // A test that fails anyway catches nothing.
        if !sound.contains_key(check) {
            let passes = self.nextest(check, "", TEST_LIMIT + BUILD_LIMIT)? == Some(0);
            sound.insert(check.clone(), passes);
        }
        if !sound[check] {
            return void("its check does not pass without it");
        }
        if !self.tree.apply(&patch.path)? {
            return void("does not apply");
        }
        if self.nextest(check, "--no-run", BUILD_LIMIT)? != Some(0) {
            return void("does not compile");
        }
        Ok(judge(self.nextest(check, "", TEST_LIMIT)?))
    }

    /// Runs a check with one more option, and returns its exit code.
    fn nextest(&self, check: &str, option: &str, limit: Duration) -> Result<Option<i32>> {
        let script = format!("exec {} {option} {check}", patch::PREFIX);
        println!("--> {} {option} {check}", patch::PREFIX);
        let status = finish(
            Command::new("sh")
                .args(["-c", &script])
                .current_dir(self.tree.path())
                .env("CARGO_TARGET_DIR", workspace::target()?.join("mutants"))
                .env(test::POSTGRES_VARIABLE, self.server.url()),
            limit,
        )
        .context("a check did not end")?;
        Ok(status.code())
    }
}

/// What nextest's exit code says about a mutant that compiles.
fn judge(code: Option<i32>) -> Disposition {
    match code {
        Some(0) => Disposition::Survived,
        Some(100) => Disposition::Caught,
        Some(4) => Disposition::Void("its check selects no test".to_owned()),
        Some(code) => Disposition::Void(format!("nextest ended with code {code}")),
        None => Disposition::Void("nextest was killed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failed_tests_catch_a_mutant() {
        assert_eq!(judge(Some(100)), Disposition::Caught);
        assert_eq!(judge(Some(0)), Disposition::Survived);
        for code in [Some(4), Some(101), Some(1), None] {
            assert!(matches!(judge(code), Disposition::Void(_)), "{code:?}");
        }
    }

    #[test]
    fn every_mutant_fits_the_tree_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path().join("tree"), workspace::files().unwrap());
        for patch in patch::all(&workspace::root().join("mutants")).unwrap() {
            tree.reset().unwrap();
            assert!(tree.apply(&patch.path).unwrap(), "{} no longer applies", patch.name);
        }
    }
}
