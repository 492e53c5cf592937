//! Counts passed and failed tests.

use anyhow::{Context, Result};
use std::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

impl Tally {
    /// Reads the test totals from the first tag of nextest's JUnit report.
    pub fn from_junit(report: &str) -> Result<Self> {
        let start = report.find("<testsuites ").context("the test report has no summary")?;
        let tag = report[start..].split('>').next().unwrap_or_default();
        let number = |name: &str| -> Result<u64> {
            let (_, rest) = tag
                .split_once(&format!(" {name}=\""))
                .with_context(|| format!("the test report has no `{name}`"))?;
            Ok(rest.split('"').next().unwrap_or_default().parse()?)
        };
        let failed = number("failures")? + number("errors")?;
        Ok(Self { passed: number("tests")?.saturating_sub(failed), failed })
    }

    /// Adds up the result lines in the output of `cargo test`, which has one such line per test
    /// binary.
    pub fn from_libtest(output: &str) -> Self {
        let results = output.lines().filter(|line| line.starts_with("test result: "));
        results.fold(Self::default(), |tally, line| {
            let number = |label: &str| {
                let before = line.split(label).next()?;
                before.rsplit(' ').next()?.parse::<u64>().ok()
            };
            tally.plus(Self {
                passed: number(" passed").unwrap_or(0),
                failed: number(" failed").unwrap_or(0),
            })
        })
    }

    /// Reads the last line of a program that ends with a summary in the form of [`Tally`]'s display.
    pub fn from_last_line(output: &str) -> Option<Self> {
        let (passed, failed) = output.trim_end().lines().next_back()?.split_once(", ")?;
        let passed = passed.strip_suffix(" passed")?.parse().ok()?;
        Some(Self { passed, failed: failed.strip_suffix(" failed")?.parse().ok()? })
    }

    pub fn plus(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junit_failures_and_errors_count_as_failed() {
        let report = r#"<?xml version="1.0"?>
            <testsuites name="nextest-run" tests="20" failures="2" errors="1" time="0.1">
            <testsuite name="x" tests="9" failures="9" errors="0">"#;
        assert_eq!(Tally::from_junit(report).unwrap(), Tally { passed: 17, failed: 3 });
    }

    #[test]
    fn junit_report_without_totals_is_an_error() {
        assert!(Tally::from_junit("").is_err());
        assert!(Tally::from_junit(r#"<testsuites name="x">"#).is_err());
    }

    #[test]
    fn libtest_results_of_several_crates_add_up() {
        let output = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 10 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(Tally::from_libtest(output), Tally { passed: 12, failed: 1 });
    }

    #[test]
    fn last_line_counts_only_if_it_is_a_summary() {
        let tally = Tally { passed: 12, failed: 3 };
        assert_eq!(
            Tally::from_last_line(&format!("ok a\n1 passed, 0 failed\n{tally}\n")),
            Some(tally)
        );
        for output in ["", "12 passed", "1 passed, 0 failed\nTraceback"] {
            assert_eq!(Tally::from_last_line(output), None, "{output}");
        }
    }

    #[test]
    fn tally_displays_as_the_summary_line() {
        assert_eq!(Tally { passed: 12, failed: 0 }.to_string(), "12 passed, 0 failed");
    }
}
