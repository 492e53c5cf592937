//! The next times of a schedule, without a server.

use evenkeel_core::Timestamp;
use serde::Serialize;

use crate::Fault;
use crate::read::{read_schedule, zone};

/// How many times can be asked for at once.
pub const NEXT_TIMES_MAX: usize = 10_000;

/// A time at which a schedule runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NextTime {
    /// The moment.
    pub utc: Timestamp,
    /// The same moment in the zone that was asked for, with its offset.
    pub local: String,
    /// By how much and why it is not where the expression says; nothing moves an interval.
    pub moved_by: Option<String>,
}

/// The first `n` times at which a job with the schedule `expression`, created at `from`, runs. The
/// fault's field is `expression`, `timezone` or `n`.
pub fn next_times(
    expression: &str,
    timezone: &str,
    from: Timestamp,
    n: usize,
) -> Result<Vec<NextTime>, Fault> {
    if n > NEXT_TIMES_MAX {
        return Err(Fault::new("n", format!("{n} is more than {NEXT_TIMES_MAX}")));
    }
    let schedule =
        read_schedule(expression).map_err(|message| Fault::new("expression", message))?;
    let zone = zone(timezone).map_err(|message| Fault::new("timezone", message))?;
    let times =
        std::iter::successors(schedule.first_after(from), |time| schedule.next_after(*time));
    let local = |utc: Timestamp| match jiff::Timestamp::from_microsecond(utc.as_micros()) {
        Ok(moment) => {
            moment.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S.%6f%:z").to_string()
        }
        Err(_) => utc.to_string(),
    };
    Ok(times.take(n).map(|utc| NextTime { utc, local: local(utc), moved_by: None }).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utc(expression: &str, from: &str, n: usize) -> Vec<String> {
        let times = next_times(expression, "UTC", from.parse().unwrap(), n).unwrap();
        times.iter().map(|time| time.utc.to_string()).collect()
    }

    #[test]
    fn an_anchored_interval_keeps_to_its_anchor() {
        assert_eq!(
            utc("R/2026-12-01T00:00:00Z/PT30M", "2026-12-01T10:10:00Z", 2),
            ["2026-12-01T10:30:00.000000Z", "2026-12-01T11:00:00.000000Z"]
        );
    }

    #[test]
    fn local_time_follows_the_zone_and_the_interval_does_not() {
        let from = "2026-11-01T04:30:00Z".parse().unwrap();
        let times = next_times("@every 1h", "America/Toronto", from, 3).unwrap();
        let local: Vec<_> = times.iter().map(|time| time.local.as_str()).collect();
        assert_eq!(
            local,
            [
                "2026-11-01T01:30:00.000000-04:00",
                "2026-11-01T01:30:00.000000-05:00",
                "2026-11-01T02:30:00.000000-05:00",
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let field = |expression, zone, n| {
            next_times(expression, zone, Timestamp::MIN, n).unwrap_err().field
        };
        assert_eq!(field("0 9 * * *", "UTC", 1), "expression");
        assert_eq!(field("30m", "Mars/Olympus", 1), "timezone");
        assert_eq!(field("30m", "UTC", NEXT_TIMES_MAX + 1), "n");
    }

    #[test]
    fn the_answer_is_shaped_like_the_contract() {
        let times = next_times("30m", "UTC", Timestamp::MIN, 1).unwrap();
        assert_eq!(
            serde_json::to_value(&times).unwrap(),
            serde_json::json!([{
                "utc": "1970-01-01T00:30:00.000000Z",
                "local": "1970-01-01T00:30:00.000000+00:00",
                "moved_by": null,
            }])
        );
    }

    proptest! {
        #[test]
        fn times_are_in_the_future_and_one_interval_apart(
            secs in 1_u64..1_000_000, from in 0_i64..1 << 51, n in 0_usize..50,
        ) {
            let from = Timestamp::from_micros(from);
            let times = next_times(&format!("@every {secs}s"), "UTC", from, n).unwrap();
            prop_assert_eq!(times.len(), n);
            let mut before = from;
            for time in times {
                prop_assert_eq!(time.utc.since(before).as_micros(), secs * 1_000_000);
                before = time.utc;
            }
        }
    }
}
