//! Accepts environment variables under the names that other schedulers use, for migration.

use evenkeel_core::Span;

use super::raw::RawEngine;
use super::resolve::invalid;
use super::{RawTables, RawTargets, Result};

const STALE_DAYS: &str = "STALE_DAYS";
const RESET_AFTER_MIN: &str = "RESET_CRAWLING_AFTER_MIN";

/// Reads settings from environment variables of this process that other schedulers use:
/// `RESET_CRAWLING_AFTER_MIN` is `reset_running_after` in minutes, and `STALE_DAYS` is `stale_days`.
/// Evenkeel's own names take precedence.
pub fn other_names() -> Result<RawTables> {
    read(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
}

fn read(variable: impl Fn(&str) -> Option<String>) -> Result<RawTables> {
    let number = |name: &'static str| -> Result<Option<u64>> {
        let Some(text) = variable(name).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        text.trim().parse().map(Some).map_err(|_| {
            let message = format!("{text:?} is not a whole number");
            invalid(name, message, "unset the variable, or set it to a number")
        })
    };
    let minutes = number(RESET_AFTER_MIN)?;
    Ok(RawTables {
        engine: RawEngine {
            reset_running_after: minutes.map(|it| Span::from_secs(60).saturating_mul(it)),
            ..RawEngine::default()
        },
        targets: RawTargets { stale_days: number(STALE_DAYS)?, ..RawTargets::default() },
        ..RawTables::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    fn read(variables: &[(&str, &str)]) -> Result<RawTables, Failure> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        super::read(find).map_err(Failure::from)
    }

    #[test]
    fn missing_variables_set_nothing() {
        let other = read(&[(STALE_DAYS, "")]).unwrap();
        assert_eq!(other.engine.reset_running_after, None);
        assert_eq!(other.targets.stale_days, None);
    }

    #[test]
    fn minutes_and_days_are_parsed() {
        let other = read(&[(STALE_DAYS, "14"), (RESET_AFTER_MIN, "15")]).unwrap();
        assert_eq!(other.engine.reset_running_after, Some(Span::from_secs(900)));
        assert_eq!(other.targets.stale_days, Some(14));
    }

    #[test]
    fn variable_without_a_number_is_refused_by_name() {
        let failure = read(&[(RESET_AFTER_MIN, "soon")]).err().unwrap();
        assert!(failure.what.starts_with("RESET_CRAWLING_AFTER_MIN: "), "{}", failure.what);
    }
}
