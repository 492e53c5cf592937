//! Settings of the check for stale targets: the table `[targets]` of the config file.

use evenkeel_core::Span;
use evenkeel_core::order::Priority;
use evenkeel_engine::Staleness;

use super::Result;
use super::raw::settings;
use super::resolve::number;

const DAY: Span = Span::from_secs(86_400);
const CHECK_MIN: Span = Span::from_secs(60);
const CHECK_MAX: Span = Span::from_secs(30 * 86_400);

settings! {
    (hide_short_help = true, help_heading = "Targets")
    /// Unresolved settings of stale targets.
    pub struct RawTargets {
        /// Days without a successful run after which a target is stale and runs again; 0 switches
        /// the check off [default: 30]
        #[arg(env = "EVENKEEL_STALE_DAYS", value_name = "DAYS")]
        pub stale_days: Option<u64>,

        /// Interval of the check for stale targets; checks run at whole multiples of the interval
        /// [default: 6h]
        #[arg(env = "EVENKEEL_STALE_CHECK_INTERVAL", value_name = "TIME")]
        pub stale_check_interval: Option<Span>,

        /// Priority of the runs of stale targets, from 0 to 100 [default: 0]
        #[arg(env = "EVENKEEL_STALE_PRIORITY", value_name = "N")]
        pub stale_priority: Option<u8>,

        /// Maximum number of stale targets to run per tenant and check [default: 500]
        #[arg(env = "EVENKEEL_STALE_BATCH", value_name = "N")]
        pub stale_batch: Option<u32>,
    }
}

pub(super) fn resolve(raw: &RawTargets) -> Result<Staleness> {
    let default = Staleness::default();
    let days = number("[targets] stale_days", raw.stale_days, 30, 0..=36_500)?;
    let key = "[targets] stale_check_interval";
    let every = number(key, raw.stale_check_interval, default.every, CHECK_MIN..=CHECK_MAX)?;
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
