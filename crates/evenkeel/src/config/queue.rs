//! Settings of the dispatch order: the table `[queue]` of the config file.

use evenkeel_core::Span;
use evenkeel_core::aging::Aging;
use evenkeel_core::order::{Priority, Shares};

use super::Result;
use super::raw::settings;
use super::resolve::{invalid, number};

const EVERY_MIN: Span = Span::from_secs(1);
const EVERY_MAX: Span = Span::from_secs(86_400);
/// Upper limit of `aging_after`.
const AFTER_MAX: Span = Span::from_secs(30 * 86_400);

settings! {
    (hide_short_help = true, help_heading = "Queue")
    /// Unresolved settings of the queue.
    pub struct RawQueue {
        /// Interval at which waiting runs gain priority, from 1s to 1d [default: 5m]
        #[arg(env = "EVENKEEL_AGING_EVERY", value_name = "TIME")]
        pub aging_every: Option<Span>,

        /// Time that a run waits in the queue before it gains priority [default: 1h]
        #[arg(env = "EVENKEEL_AGING_AFTER", value_name = "TIME")]
        pub aging_after: Option<Span>,

        /// Priority that a waiting run gains per interval, up to 100; 0 switches aging off
        /// [default: 10]
        #[arg(env = "EVENKEEL_AGING_STEP", value_name = "N")]
        pub aging_step: Option<u8>,

        /// Highest displayed priority; among runs with this priority, the run that has waited
        /// longest starts first [default: 100]
        #[arg(env = "EVENKEEL_AGING_CAP", value_name = "N")]
        pub aging_cap: Option<u8>,

        /// Guaranteed percentage of free workers for the lanes critical, standard and batch
        /// [default: 50,30,10]
        #[arg(env = "EVENKEEL_LANE_SHARES", value_delimiter = ',', value_name = "PERCENTS")]
        pub lane_shares: Option<Vec<u8>>,
    }
}

/// Resolved settings of the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueConfig {
    pub aging: Aging,
    pub shares: Shares,
}

pub(super) fn resolve(raw: &RawQueue) -> Result<QueueConfig> {
    let default = Aging::default();
    let top = Priority::MAX.get();
    let cap = number("[queue] aging_cap", raw.aging_cap, default.cap.get(), 0..=top)?;
    let aging = Aging {
        every: number(
            "[queue] aging_every",
            raw.aging_every,
            default.every,
            EVERY_MIN..=EVERY_MAX,
        )?,
        after: after(raw.aging_after.unwrap_or(default.after))?,
        step: number("[queue] aging_step", raw.aging_step, default.step, 0..=top)?,
        cap: Priority::try_from(cap).unwrap_or(Priority::MAX),
    };
    Ok(QueueConfig { aging, shares: shares(raw.lane_shares.as_deref())? })
}

fn after(given: Span) -> Result<Span> {
    if given <= AFTER_MAX {
        return Ok(given);
    }
    let message = format!("{given} is more than {AFTER_MAX}");
    Err(invalid("[queue] aging_after", message, "leave it out for 1h; aging_step = 0 turns it off"))
}

fn shares(given: Option<&[u8]>) -> Result<Shares> {
    let Some(given) = given else { return Ok(Shares::default()) };
    let key = "[queue] lane_shares";
    let way_out = "write them like 50,30,10 for critical, standard and batch";
    let three = <[u8; 3]>::try_from(given).map_err(|_| {
        invalid(key, format!("needs three numbers, one per lane, not {}", given.len()), way_out)
    })?;
    Shares::try_from(three).map_err(|fault| invalid(key, fault.to_string(), way_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    #[test]
    fn omitted_keys_have_defaults() {
        assert_eq!(resolve(&RawQueue::default()).unwrap(), QueueConfig::default());
    }

    #[test]
    fn all_keys_are_read() {
        let raw = RawQueue {
            aging_every: Some(Span::from_secs(60)),
            aging_after: Some(Span::ZERO),
            aging_step: Some(0),
            aging_cap: Some(90),
            lane_shares: Some(vec![0, 0, 100]),
        };
        let aging = Aging {
            every: Span::from_secs(60),
            after: Span::ZERO,
            step: 0,
            cap: Priority::try_from(90).unwrap(),
        };
        let shares = Shares::try_from([0, 0, 100]).unwrap();
        assert_eq!(resolve(&raw).unwrap(), QueueConfig { aging, shares });
    }

    #[test]
    fn each_error_names_the_key_and_the_way_out() {
        let default = RawQueue::default;
        for (raw, key) in [
            (RawQueue { aging_every: Some(Span::ZERO), ..default() }, "aging_every"),
            (RawQueue { aging_every: Some(Span::from_secs(90_000)), ..default() }, "aging_every"),
            (
                RawQueue { aging_after: Some(Span::from_secs(2_700_000)), ..default() },
                "aging_after",
            ),
            (RawQueue { aging_step: Some(101), ..default() }, "aging_step"),
            (RawQueue { aging_cap: Some(101), ..default() }, "aging_cap"),
            (RawQueue { lane_shares: Some(vec![50, 50]), ..default() }, "lane_shares"),
            (RawQueue { lane_shares: Some(vec![50, 50, 1]), ..default() }, "lane_shares"),
        ] {
            let failure = Failure::from(resolve(&raw).unwrap_err());
            assert!(failure.what.starts_with(&format!("[queue] {key}: ")), "{}", failure.what);
            assert!(failure.way_out.is_some_and(|advice| advice.len() > 10));
        }
    }
}
