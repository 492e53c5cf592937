//! Load-balancing settings: the table `[balance]` of the config file.

use evenkeel_core::Span;
use evenkeel_core::balance::{BalanceSettings, Policy, SearchWindow};

use super::Result;
use super::raw::settings;
use super::resolve::{choice, invalid, number};

const DAY: Span = Span::from_secs(86_400);
const SLOT_MIN: Span = Span::from_secs(1);
const SLOT_MAX: Span = Span::from_secs(3600);
/// Upper limit of the settings `protection` and `cooldown`.
const GUARD_MAX: Span = Span::from_secs(7 * 86_400);

settings! {
    (hide_short_help = true, help_heading = "Balance")
    /// Unresolved settings of balance.
    pub struct RawBalance {
        /// How to choose the start time of an interval job: projected (minimizes the load at all
        /// its runs) or next (a time at which the fewest jobs have their next run) [default:
        /// projected]
        #[arg(long = "balance-policy", env = "EVENKEEL_BALANCE_POLICY", value_name = "POLICY")]
        pub policy: Option<String>,

        /// Latest start time for a new interval job: interval (within one interval) or document
        /// (within a day, or one interval if that is longer) [default: interval]
        #[arg(long = "balance-search-window", env = "EVENKEEL_BALANCE_SEARCH_WINDOW")]
        #[arg(value_name = "WINDOW")]
        pub search_window: Option<String>,

        /// Length of the time slots in which load is counted, from 1s to 1h; must divide a day
        /// [default: 15m]
        #[arg(long = "balance-slot", env = "EVENKEEL_BALANCE_SLOT", value_name = "TIME")]
        pub slot: Option<Span>,

        /// A rebalance does not move a job whose next run is within this time [default: 30m]
        #[arg(long = "balance-protection", env = "EVENKEEL_BALANCE_PROTECTION")]
        #[arg(value_name = "TIME")]
        pub protection: Option<Span>,

        /// A rebalance does not move a job whose start time was chosen less than this time ago
        /// [default: 1h]
        #[arg(long = "balance-cooldown", env = "EVENKEEL_BALANCE_COOLDOWN", value_name = "TIME")]
        pub cooldown: Option<Span>,

        /// Log a warning when the distribution score of a tenant (1 is perfectly even) falls below
        /// this value; 0 switches the warning off [default: 0.7]
        #[arg(long = "balance-alert-below", env = "EVENKEEL_BALANCE_ALERT_BELOW")]
        #[arg(value_name = "SCORE")]
        pub alert_below: Option<f64>,
    }
}

pub(super) fn resolve(raw: &RawBalance) -> Result<BalanceSettings> {
    let default = BalanceSettings::default();
    Ok(BalanceSettings {
        policy: choice(
            ("[balance] policy", "policy", "the policies are projected and next"),
            raw.policy.as_deref(),
            &[("projected", Policy::Projected), ("next", Policy::Next)],
        )?,
        search_window: choice(
            ("[balance] search_window", "search window", "write interval or document"),
            raw.search_window.as_deref(),
            &[("interval", SearchWindow::Interval), ("document", SearchWindow::Document)],
        )?,
        slot: slot(raw.slot)?,
        protection: guard("[balance] protection", raw.protection, default.protection)?,
        cooldown: guard("[balance] cooldown", raw.cooldown, default.cooldown)?,
        alert_below: alert_below(raw.alert_below)?,
    })
}

fn slot(given: Option<Span>) -> Result<Span> {
    let key = "[balance] slot";
    let slot = number(key, given, BalanceSettings::default().slot, SLOT_MIN..=SLOT_MAX)?;
    if !DAY.as_micros().is_multiple_of(slot.as_micros()) {
        let message = format!("{slot} does not divide a day");
        return Err(invalid(key, message, "choose one that divides a day, like 5m, 15m or 1h"));
    }
    Ok(slot)
}

fn guard(key: &'static str, given: Option<Span>, default: Span) -> Result<Span> {
    let guard = given.unwrap_or(default);
    if guard > GUARD_MAX {
        let message = format!("{guard} is more than {GUARD_MAX}: nothing could ever be moved");
        return Err(invalid(key, message, format!("leave it out for {default}; 0s turns it off")));
    }
    Ok(guard)
}

fn alert_below(given: Option<f64>) -> Result<f64> {
    let score = given.unwrap_or(BalanceSettings::default().alert_below);
    if (0.0..=1.0).contains(&score) {
        return Ok(score);
    }
    let message = format!("{score} is not between 0 and 1");
    Err(invalid("[balance] alert_below", message, "leave it out for 0.7; 0 turns it off"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    #[test]
    fn omitted_keys_have_defaults() {
        assert_eq!(resolve(&RawBalance::default()).unwrap(), BalanceSettings::default());
    }

    #[test]
    fn all_keys_are_read() {
        let raw = RawBalance {
            policy: Some("next".into()),
            search_window: Some("document".into()),
            slot: Some(Span::from_secs(60)),
            protection: Some(Span::ZERO),
            cooldown: Some(Span::ZERO),
            alert_below: Some(0.0),
        };
        let settings = BalanceSettings {
            policy: Policy::Next,
            search_window: SearchWindow::Document,
            slot: Span::from_secs(60),
            protection: Span::ZERO,
            cooldown: Span::ZERO,
            alert_below: 0.0,
        };
        assert_eq!(resolve(&raw).unwrap(), settings);
    }

    #[test]
    fn each_error_names_the_key_and_the_way_out() {
        let default = RawBalance::default;
        for (raw, key) in [
            (RawBalance { policy: Some("best".into()), ..default() }, "policy"),
            (RawBalance { search_window: Some("day".into()), ..default() }, "search_window"),
            (RawBalance { slot: Some(Span::from_secs(7200)), ..default() }, "slot"),
            (RawBalance { slot: Some(Span::from_secs(7 * 60)), ..default() }, "slot"),
            (RawBalance { slot: Some(Span::ZERO), ..default() }, "slot"),
            (RawBalance { cooldown: Some(Span::from_secs(700_000)), ..default() }, "cooldown"),
            (RawBalance { alert_below: Some(1.1), ..default() }, "alert_below"),
            (RawBalance { alert_below: Some(f64::NAN), ..default() }, "alert_below"),
        ] {
            let failure = Failure::from(resolve(&raw).unwrap_err());
            assert!(failure.what.starts_with(&format!("[balance] {key}: ")), "{}", failure.what);
            assert!(failure.way_out.is_some_and(|advice| advice.len() > 10));
        }
    }
}
