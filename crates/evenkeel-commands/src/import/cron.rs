//! Cron expressions that an interval says as well, and those that it can't.

use evenkeel_core::schedule::{Cron, Dst};
use evenkeel_core::{Schedule, Span, Timestamp, Zone};

use super::Disposition;
use crate::read::read_cron;

/// When something runs here that ran by a cron expression elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Converted {
    /// Every so often; from the expression's own next time on, unless it is as good as any.
    Interval { every: Span, anchor: Option<Timestamp> },
    /// As before, by the clocks of a zone.
    Cron { expression: String, zone: Zone, why: WhyCron },
}

/// Why an expression stays one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum WhyCron {
    /// Its times are not always equally far apart.
    Uneven,
    /// They are not when the clocks of its zone are changed.
    Zone,
}

impl Converted {
    pub(super) fn fate(&self) -> Disposition {
        match self {
            Self::Interval { .. } => Disposition::Interval,
            Self::Cron { .. } => Disposition::Cron,
        }
    }

    /// Why, for programs and for people.
    pub(super) fn reason(&self) -> (&'static str, String) {
        match self {
            Self::Interval { .. } => ("converted", "its times are always equally far apart".into()),
            Self::Cron { why: WhyCron::Uneven, .. } => {
                ("not_even", "its times are not always equally far apart".into())
            }
            Self::Cron { why: WhyCron::Zone, zone, .. } => {
                ("zone", format!("an interval would not follow the clocks of {zone}"))
            }
        }
    }
}

/// Reads an expression, which may name its zone (`CRON_TZ=America/Toronto 0 9 * * *`), and says
/// what it becomes. The message says why it can't be read.
pub(super) fn convert(text: &str, zone: &Zone, now: Timestamp) -> Result<Converted, String> {
    let (zone, expression) = zone_of(text.trim(), zone)?;
    let said = read_cron(expression).map_err(|misread| misread.of("", expression).message)?;
    match said.schedule {
        // `@every 30m`, which counts from whenever its server was started.
        Schedule::Interval(interval) => {
            Ok(Converted::Interval { every: interval.every(), anchor: None })
        }
        Schedule::Cron(by) => Ok(decided(&by.cron, zone, now)),
        _ => Err("is no cron expression".into()),
    }
}

fn decided(cron: &Cron, zone: Zone, now: Timestamp) -> Converted {
    let stays =
        |why| Converted::Cron { expression: cron.expression().into(), zone: zone.clone(), why };
    let Some(every) = cron.even_span() else { return stays(WhyCron::Uneven) };
    if !is_even_in(&zone, cron, every, now) {
        return stays(WhyCron::Zone);
    }
    Converted::Interval { every, anchor: cron.next_after(now, &zone, Dst::default()) }
}

/// Are its times equally far apart whenever the clocks are changed from `now` on?
///
/// What names a time of day follows the clocks, whatever they will be told to show. A rhythm is kept
/// through their changes, if these are whole times of it.
fn is_even_in(zone: &Zone, cron: &Cron, every: Span, now: Timestamp) -> bool {
    if zone.is_utc() {
        return true;
    }
    let secs = every.as_micros() / 1_000_000;
    if !cron.keeps_rhythm() || 3600 % secs != 0 {
        return false;
    }
    let mut stretch = zone.stretch_at(now);
    while stretch.end < Timestamp::MAX {
        let next = zone.stretch_at(stretch.end);
        if u64::from(next.offset.abs_diff(stretch.offset)) % secs != 0 {
            return false;
        }
        stretch = next;
    }
    true
}

/// The zone that an expression names, if it does, and the rest of it.
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
    fn the_three_of_the_document_become_intervals_at_their_own_next_time() {
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
    fn what_follows_the_clocks_of_a_zone_stays_cron() {
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
            assert_eq!(why, WhyCron::Zone, "{text} in {zone}");
            assert!(!expression.contains("TZ="), "{expression}");
        }
    }

    #[test]
    fn a_rhythm_that_changes_of_the_clocks_do_not_break_is_an_interval_anywhere() {
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
    fn a_rhythm_without_a_phase_is_given_none() {
        let every = Span::from_secs(5400);
        assert_eq!(converted("@every 1h30m", "UTC"), Converted::Interval { every, anchor: None });
    }

    #[test]
    fn what_no_clock_ever_shows_and_what_is_no_expression_is_told() {
        for text in
            ["0 0 30 2 *", "0 9 * *", "09:30", "", "hourly", "CRON_TZ=Mars/Olympus 0 9 * * *"]
        {
            assert!(!convert(text, &Zone::utc(), now()).unwrap_err().is_empty(), "{text}");
        }
    }

    proptest! {
        /// The interval fires when the expression would have, through every change of the clocks
        /// of the coming year.
        #[test]
        fn an_interval_means_what_its_expression_meant(
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
