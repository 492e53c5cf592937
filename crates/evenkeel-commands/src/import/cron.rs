//! Converts a cron expression to an interval if both have the same run times.

use evenkeel_core::schedule::{Cron, Dst};
use evenkeel_core::{Schedule, Span, Timestamp, Zone};

use super::Disposition;
use crate::read::read_cron;

/// The schedule that replaces a cron expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Converted {
    /// An interval. The interval is anchored at the next run time of the cron expression, unless
    /// its start time may be chosen freely.
    Interval {
        every: Span,
        anchor: Option<Timestamp>,
    },
    Cron {
        expression: String,
        zone: Zone,
        why: KeptBecause,
    },
}

/// Why a cron expression is kept instead of being converted to an interval.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum KeptBecause {
    /// The run times of the cron expression are not equally far apart.
    Uneven,
    /// The run times of the cron expression are not equally far apart at daylight saving changes of
    /// its time zone.
    Zone,
}

impl Converted {
    /// Returns whether the cron expression was converted to an interval, a reason code, and the
    /// reason as a text.
    pub(super) fn reason(&self) -> (Disposition, &'static str, String) {
        let (code, why) = match self {
            Self::Interval { .. } => {
                let why = "its times are always equally far apart".into();
                return (Disposition::Interval, "converted", why);
            }
            Self::Cron { why: KeptBecause::Uneven, .. } => {
                ("not_even", "its times are not always equally far apart".into())
            }
            Self::Cron { why: KeptBecause::Zone, zone, .. } => {
                ("zone", format!("an interval would not follow the clocks of {zone}"))
            }
        };
        (Disposition::Cron, code, why)
    }
}

/// Converts a cron expression, which may name its time zone (`CRON_TZ=America/Toronto 0 9 * * *`).
/// The error tells why the cron expression cannot be parsed.
pub(super) fn convert(text: &str, zone: &Zone, now: Timestamp) -> Result<Converted, String> {
    let (zone, expression) = zone_of(text.trim(), zone)?;
    let parsed = read_cron(expression).map_err(|error| error.of("", expression).message)?;
    match parsed.schedule {
        // The old server counted `@every 30m` from its own start, so the start time of the job may
        // be chosen freely.
        Schedule::Interval(interval) => {
            Ok(Converted::Interval { every: interval.every(), anchor: None })
        }
        Schedule::Cron(by) => Ok(convert_cron(&by.cron, zone, now)),
        _ => Err("its schedule is not a cron expression".into()),
    }
}

fn convert_cron(cron: &Cron, zone: Zone, now: Timestamp) -> Converted {
    let stays =
        |why| Converted::Cron { expression: cron.expression().into(), zone: zone.clone(), why };
    let Some(every) = cron.even_span() else { return stays(KeptBecause::Uneven) };
    if !is_even_in(&zone, cron, every, now) {
        return stays(KeptBecause::Zone);
    }
    Converted::Interval { every, anchor: cron.next_after(now, &zone, Dst::default()) }
}

/// True if the distance between run times stays the same at all daylight saving changes after
/// `now`.
///
/// Runs at a fixed time of day follow the local clock, so a clock change alters the distance
/// between them. Equal distances between run times stay equal if each clock change is a multiple of
/// the distance.
fn is_even_in(zone: &Zone, cron: &Cron, every: Span, now: Timestamp) -> bool {
    if zone.is_utc() {
        return true;
    }
    let secs = every.as_micros() / 1_000_000;
    if !cron.keeps_rhythm() || 3600 % secs != 0 {
        return false;
    }
    let mut period = zone.offset_period_at(now);
    while period.end < Timestamp::MAX {
        let next = zone.offset_period_at(period.end);
        if u64::from(next.offset.abs_diff(period.offset)) % secs != 0 {
            return false;
        }
        period = next;
    }
    true
}

/// Splits a cron expression with a time zone into both parts.
fn zone_of<'a>(text: &'a str, otherwise: &Zone) -> Result<(Zone, &'a str), String> {
    let named = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ="));
    let Some(named) = named else { return Ok((otherwise.clone(), text)) };
    let (name, rest) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
    let zone = super::zone(name).map_err(|error| format!("{name:?} is {error}"))?;
    Ok((zone, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T13:37:42Z".parse().unwrap()
    }

    fn converted(text: &str, zone: &str) -> Converted {
        convert(text, &Zone::get(zone).unwrap(), now()).unwrap()
    }

    #[test]
    fn expressions_of_the_document_become_anchored_intervals() {
        for (text, minutes, anchor) in [
            ("0 * * * *", 60, "2026-11-15T14:00:00Z"),
            ("0 0 * * *", 1440, "2026-11-16T00:00:00Z"),
            ("0 */6 * * *", 360, "2026-11-15T18:00:00Z"),
        ] {
            let every = Span::from_secs(minutes * 60);
            let anchor = Some(anchor.parse().unwrap());
            assert_eq!(converted(text, "UTC"), Converted::Interval { every, anchor }, "{text}");
        }
    }

    #[test]
    fn expressions_that_follow_a_zone_stay_cron() {
        for (text, zone) in [
            ("0 0 * * *", "America/Toronto"),
            ("CRON_TZ=America/Toronto 0 0 * * *", "UTC"),
            ("TZ=Asia/Tokyo 0 9 * * *", "UTC"),
            ("0 */6 * * *", "Europe/Berlin"),
            ("0 * * * *", "Australia/Lord_Howe"),
        ] {
            let Converted::Cron { why, expression, .. } = converted(text, zone) else {
                panic!("{text} in {zone}")
            };
            assert_eq!(why, KeptBecause::Zone, "{text} in {zone}");
            assert!(!expression.contains("TZ="), "{expression}");
        }
    }

    #[test]
    fn regular_expressions_become_intervals_in_every_zone() {
        for (text, zone) in [
            ("*/15 * * * *", "Europe/Berlin"),
            ("0 * * * *", "Europe/Berlin"),
            ("*/30 * * * *", "Australia/Lord_Howe"),
            ("CRON_TZ=UTC 0 0 * * *", "Europe/Berlin"),
            ("CRON_TZ=Etc/UTC 0 0 * * *", "Europe/Berlin"),
        ] {
            assert!(
                matches!(converted(text, zone), Converted::Interval { .. }),
                "{text} in {zone}"
            );
        }
    }

    #[test]
    fn every_expressions_have_no_anchor() {
        let every = Span::from_secs(5400);
        assert_eq!(converted("@every 1h30m", "UTC"), Converted::Interval { every, anchor: None });
    }

    #[test]
    fn impossible_and_unreadable_expressions_are_refused() {
        for text in
            ["0 0 30 2 *", "0 9 * *", "09:30", "", "hourly", "CRON_TZ=Mars/Olympus 0 9 * * *"]
        {
            assert!(!convert(text, &Zone::utc(), now()).unwrap_err().is_empty(), "{text}");
        }
    }

    proptest! {
        /// A converted interval fires at the same times as the cron expression, at every daylight
        /// saving change of the next year.
        #[test]
        fn converted_intervals_fire_when_the_expression_would(
            minute in "(\\*|[0-9]|[1-5][0-9]|\\*/(2|3|4|5|6|10|12|15|20|30|40|45)|0,30|5,25,45)",
            hour in "(\\*|[0-9]|1[0-9]|\\*/(2|3|4|5|6|8|12)|0,12|1,9,17)",
            zone in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "America/Toronto", "Australia/Lord_Howe", "Asia/Kolkata",
                "Africa/Casablanca",
            ]),
        ) {
            let zone = Zone::get(zone).unwrap();
            let text = format!("{minute} {hour} * * *");
            let cron = Cron::parse(&text).unwrap();
            if let Converted::Interval { every, anchor } = convert(&text, &zone, now()).unwrap() {
                let anchor = anchor.unwrap();
                let count = |until| cron.count(anchor, until, &zone, Dst::default());
                let micros = every.as_micros();
                for day in 1..=400_u64 {
                    let until = anchor.saturating_add(Span::from_secs(day * 86_400));
                    prop_assert_eq!(count(until), day * 86_400_000_000 / micros, "{} day {}", &text, day);
                    let last = cron.last_before(until, &zone, Dst::default()).unwrap();
                    prop_assert_eq!(last.since(anchor).as_micros() % micros, 0);
                }
            }
        }
    }
}
