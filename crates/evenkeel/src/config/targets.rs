//! Settings of the check for stale targets: the table `[targets]` of the config file.

use clap::Args;
use evenkeel_core::Span;
use evenkeel_core::order::Priority;
use evenkeel_engine::Staleness;
use serde::Deserialize;

use super::ConfigError;
use super::raw::fill;
use super::resolve::{invalid, number};

const DAY: Span = Span::from_secs(86_400);
const CHECK_MIN: Span = Span::from_secs(60);
const CHECK_MAX: Span = Span::from_secs(30 * 86_400);

/// Unresolved settings of stale targets.
#[derive(Args, Deserialize, Clone, Default, Debug)]
#[serde(default)]
pub struct RawTargets {
    /// Days without a successful run after which a target is stale and runs again; 0 switches the
    /// check off [default: 30]
    #[arg(long, env = "EVENKEEL_STALE_DAYS", value_name = "DAYS")]
    #[arg(hide_short_help = true, help_heading = "Targets")]
    pub stale_days: Option<u64>,

    /// Interval of the check for stale targets; checks run at whole multiples of the interval
    /// [default: 6h]
    #[arg(long, env = "EVENKEEL_STALE_CHECK_INTERVAL", value_name = "TIME")]
    #[arg(hide_short_help = true, help_heading = "Targets")]
    pub stale_check_interval: Option<Span>,

    /// Priority of the runs of stale targets, from 0 to 100 [default: 0]
    #[arg(long, env = "EVENKEEL_STALE_PRIORITY", value_name = "N")]
    #[arg(hide_short_help = true, help_heading = "Targets")]
    pub stale_priority: Option<u8>,

    /// Maximum number of stale targets to run per tenant and check [default: 500]
    #[arg(long, env = "EVENKEEL_STALE_BATCH", value_name = "N")]
    #[arg(hide_short_help = true, help_heading = "Targets")]
    pub stale_batch: Option<u32>,
}

impl RawTargets {
    /// Uses the values of the config file for settings without a flag or environment variable.
    #[must_use]
    pub fn or(mut self, file: &Self) -> Self {
        fill!(self, file, stale_days, stale_check_interval, stale_priority, stale_batch);
        self
    }
}

pub(super) fn resolve(raw: &RawTargets) -> Result<Staleness, ConfigError> {
    let default = Staleness::default();
    let days = number("[targets] stale_days", raw.stale_days, 30, 0..=36_500)?;
    let every = raw.stale_check_interval.unwrap_or(default.every);
    if !(CHECK_MIN..=CHECK_MAX).contains(&every) {
        let message = format!("{every} is not between {CHECK_MIN} and {CHECK_MAX}");
        return Err(invalid("[targets] stale_check_interval", message, "leave it out for 6h"));
    }
    let key = "[targets] stale_priority";
    let priority = number(key, raw.stale_priority, default.priority.get(), 0..=100)?;
    Ok(Staleness {
        after: (days > 0).then(|| DAY.saturating_mul(days)),
        every,
        priority: Priority::try_from(priority).unwrap_or(default.priority),
        batch: number("[targets] stale_batch", raw.stale_batch, default.batch, 1..=100_000)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    #[test]
    fn omitted_keys_have_defaults() {
        assert_eq!(resolve(&RawTargets::default()).unwrap(), Staleness::default());
    }

    #[test]
    fn all_keys_are_read() {
        let raw = RawTargets {
            stale_days: Some(7),
            stale_check_interval: Some(Span::from_secs(3600)),
            stale_priority: Some(5),
            stale_batch: Some(20),
        };
        let settings = Staleness {
            after: Some(Span::from_secs(7 * 86_400)),
            every: Span::from_secs(3600),
            priority: Priority::try_from(5).unwrap(),
            batch: 20,
        };
        assert_eq!(resolve(&raw).unwrap(), settings);
        let off = RawTargets { stale_days: Some(0), ..RawTargets::default() };
        assert_eq!(resolve(&off).unwrap().after, None);
    }

    #[test]
    fn each_error_names_the_key_and_the_way_out() {
        let default = RawTargets::default;
        for (raw, key) in [
            (RawTargets { stale_days: Some(40_000), ..default() }, "stale_days"),
            (
                RawTargets { stale_check_interval: Some(Span::ZERO), ..default() },
                "stale_check_interval",
            ),
            (RawTargets { stale_priority: Some(101), ..default() }, "stale_priority"),
            (RawTargets { stale_batch: Some(0), ..default() }, "stale_batch"),
        ] {
            let failure = Failure::from(resolve(&raw).unwrap_err());
            assert!(failure.what.starts_with(&format!("[targets] {key}: ")), "{}", failure.what);
            assert!(failure.way_out.is_some_and(|advice| advice.len() > 10));
        }
    }
}
