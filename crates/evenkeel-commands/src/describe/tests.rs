//! Tests of schedule descriptions.

mod meaning;

use evenkeel_core::schedule::{Dst, Schedule};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::preview::preview;
use crate::read::read_schedule;

fn described(expression: &str) -> String {
    let schedule = read_schedule(expression).unwrap().schedule;
    describe(&Definition::noop(schedule), true)
}

fn preview_text(document: Value) -> String {
    preview(&document, "2026-06-01T12:00:00Z".parse().unwrap(), 10).unwrap().description
}

#[test]
fn cron_expressions_are_described_in_english() {
    for (expression, words) in [
        ("* * * * *", "Every minute, UTC."),
        ("*/5 * * * *", "Every 5 minutes, UTC."),
        ("*/7 * * * *", "At every 7th minute from 0 on of every hour, UTC."),
        ("0 * * * *", "Every hour, on the hour, UTC."),
        ("5 * * * *", "At minute 5 of every hour, UTC."),
        ("5,20,40 * * * *", "At minutes 5, 20 and 40 of every hour, UTC."),
        ("0-29 * * * *", "At minutes 0 to 29 of every hour, UTC."),
        ("10-50/20 * * * *", "At every 20th minute from 10 to 50 of every hour, UTC."),
        ("0 */6 * * *", "Every 6 hours, on the hour, from midnight on, UTC."),
        ("15 */6 * * *", "At minute 15 of every 6th hour from midnight on, UTC."),
        ("*/15 9-17 * * 1-5", "Every 15 minutes of the hours 9 to 17, Monday to Friday, UTC."),
        ("0 9 * * *", "At 09:00 every day, UTC."),
        ("0 9,17 * * *", "At 09:00 and 17:00 every day, UTC."),
        ("0,30 9 * * *", "At 09:00 and 09:30 every day, UTC."),
        ("0 9 * * 1-5", "At 09:00, Monday to Friday, UTC."),
        ("0 9 * * MON,WED,FRI", "At 09:00, on Monday, Wednesday and Friday, UTC."),
        ("0 9 * * 7", "At 09:00, on Sunday, UTC."),
        ("0 9 * * sat-7", "At 09:00, Saturday to Sunday, UTC."),
        ("0 0 1 * *", "At 00:00, on the 1st of the month, UTC."),
        ("0 0 1,15 * *", "At 00:00, on the 1st and 15th of the month, UTC."),
        ("0 0 2-7 * *", "At 00:00, on the 2nd to 7th of the month, UTC."),
        ("0 0 */2 * *", "At 00:00, every 2nd day of the month from the 1st on, UTC."),
        ("0 0 L * *", "At 00:00, on the last day of the month, UTC."),
        ("0 0 LW * *", "At 00:00, on the last day from Monday to Friday of the month, UTC."),
        ("0 0 L-3 * *", "At 00:00, 3 days before the last of the month, UTC."),
        ("0 0 15W * *", "At 00:00, on the day from Monday to Friday nearest to the 15th, UTC."),
        ("0 0 * * FRI#2", "At 00:00, on the 2nd Friday of the month, UTC."),
        ("0 0 * * 5L", "At 00:00, on the last Friday of the month, UTC."),
        ("0 0 ? * MON", "At 00:00, on Monday, UTC."),
        ("0 0 13 * FRI", "At 00:00, on the 13th of the month, and also on Friday, UTC."),
        (
            "0 0 */2 * MON",
            "At 00:00, every 2nd day of the month from the 1st on, if it is Monday, UTC.",
        ),
        ("0 0 1 1 *", "At 00:00, on the 1st of the month, in January, UTC."),
        ("0 0 * 6-8 *", "At 00:00, every day in June to August, UTC."),
        (
            "0 0 1 */3 *",
            "At 00:00, on the 1st of the month, in every 3rd month from January on, UTC.",
        ),
        ("30 0 9 * * *", "At 09:00:30 every day, UTC."),
        ("*/10 * * * * *", "Every 10 seconds, UTC."),
        ("* * * * * *", "Every second, UTC."),
        ("*/10 0-9 * * * *", "Every 10 seconds at minutes 0 to 9 of every hour, UTC."),
        ("H * * * *", "At a minute of its own of every hour, UTC."),
        ("H H * * *", "At a time of the day of its own every day, UTC."),
        ("H 9 * * *", "At a minute of its own after 09:00 every day, UTC."),
        ("H(0-29) 9 * * *", "At a minute of its own from 0 to 29 of hour 9 every day, UTC."),
        ("H/15 * * * *", "At every 15th minute from one of its own on of every hour, UTC."),
        ("0 8-18/2 * * *", "At minute 0 of every 2nd hour from 8 to 18 every day, UTC."),
        ("0 8/4,3 * * *", "At minute 0 of the hours every 4th from 8 on and 3 every day, UTC."),
        ("* 9 * * *", "Every minute of hour 9 every day, UTC."),
        ("0 */5 * * *", "At minute 0 of every 5th hour from midnight on, UTC."),
        ("0 9 H * *", "At 09:00, on a day of the month of its own, UTC."),
        ("0 0/1 * * * ?", "Every minute, UTC."),
        ("0 0 12 1/1 * ?", "At 12:00 every day, UTC."),
        ("*,5 * * * *", "Every minute, UTC."),
        ("0-59/15 * * * *", "Every 15 minutes, UTC."),
        ("30/1 * * * *", "At minutes 30 to 59 of every hour, UTC."),
        ("5/20 * * * *", "At every 20th minute from 5 on of every hour, UTC."),
        ("5,5 9 * * *", "At 09:05 every day, UTC."),
        ("*/7 * * * * *", "At every 7th second from 0 on of every minute, UTC."),
        ("5 * 9 * * *", "At second 5 of every minute of hour 9 every day, UTC."),
        ("H * * * * *", "At a second of its own of every minute, UTC."),
        ("* H 9 * * *", "Every second at a minute of its own of hour 9 every day, UTC."),
        (
            "30 H H * * *",
            "At second 30 at a minute of its own of an hour of its own every day, UTC.",
        ),
        ("H H 9 * * *", "At a minute and second of its own after 09:00 every day, UTC."),
        ("H H H * * *", "At a time of the day of its own every day, UTC."),
        ("H/1 * * * *", "Every minute, UTC."),
        ("0 0 H/1 * *", "At 00:00, on the 1st to 28th of the month, UTC."),
        ("0 0 5/1 * *", "At 00:00, on the 5th to 31st of the month, UTC."),
        ("0 0 * 3/1 *", "At 00:00, every day in March to December, UTC."),
        ("0 0 * * 5/1", "At 00:00, Friday to Sunday, UTC."),
        ("0 0 * * 1/2", "At 00:00, on Monday, Wednesday, Friday and Sunday, UTC."),
        // One of the two day fields of a cron expression must match; both must match if one begins
        // with a star.
        ("0 0 1/1 * MON", "At 00:00 every day, UTC."),
        ("0 0 13 * 0-6", "At 00:00 every day, UTC."),
        ("0 0 *,5 * MON", "At 00:00, on Monday, UTC."),
        (
            "0 0 H(5-9) * *",
            "At 00:00, on a day of the month of its own from the 5th to the 9th, UTC.",
        ),
        ("@daily", "At 00:00 every day, UTC."),
        ("@hourly", "Every hour, on the hour, UTC."),
        ("@weekly", "At 00:00, on Sunday, UTC."),
        ("@yearly", "At 00:00, on the 1st of the month, in January, UTC."),
    ] {
        assert_eq!(described(expression), words, "{expression}");
    }
}

#[test]
fn other_schedules_are_described_in_english() {
    for (expression, words) in [
        ("30m", "Every 30 minutes."),
        ("@every 1h", "Every hour."),
        ("PT1H30M", "Every 1 hour 30 minutes."),
        ("PT24H", "Every 24 hours."),
        ("1d", "Every 24 hours."),
        ("@every 49h", "Every 49 hours."),
        ("P1D", "Every day by the clocks of UTC."),
        ("P2W", "Every 2 weeks by the clocks of UTC."),
        ("P1M", "Every month by the clocks of UTC."),
        ("P1Y2M10DT2H", "Every 1 year, 2 months, 10 days and 2 hours by the clocks of UTC."),
        ("R/2026-12-01T00:00:00Z/PT30M", "Every 30 minutes, counted from 2026-12-01 00:00 UTC."),
    ] {
        assert_eq!(described(expression), words, "{expression}");
    }
    assert_eq!(describe(&Definition::noop(Schedule::Once(Once::NOW)), true), "Once, now.");
    assert_eq!(
        preview_text(json!({"interval_minutes": 1, "interval_type": "days"})),
        "Every 24 hours."
    );
    assert_eq!(
        preview_text(
            json!({"schedule": {"kind": "once", "at": "2026-12-01T09:00:30Z", "tolerance": "5m"}})
        ),
        "Once, at 2026-12-01 09:00:30 UTC. It must have started 5 minutes after that."
    );
    assert_eq!(
        preview_text(json!({"scheduling_period": "24h", "cooldown_duration": "1h"})),
        "As often as it takes for a successful run to have started in the last 1 day, and not \
         sooner than 1 hour after the end of the previous run."
    );
}

#[test]
fn descriptions_include_zones_bounds_and_promises() {
    assert_eq!(
        preview_text(json!({
            "schedule": {"kind": "cron", "expression": "0 0 * * *", "max_duration": "6h"},
            "timezone": "America/Toronto", "dst_gap": "skip", "dst_overlap": "both",
            "start_at": "2026-12-01T05:00:00Z", "end_at": "2027-01-01T05:00:00Z", "max_runs": 10,
            "blackout_periods": [{"start": "22:00", "end": "06:00:30"}],
        })),
        "At 00:00 every day, America/Toronto time, from 2026-12-01 00:00 America/Toronto time on, \
         until 2027-01-01 00:00 America/Toronto time, 10 times at most. Each run must be over 6 \
         hours after its time. Times that the clocks jump over are left out. Times that the clocks \
         show twice run twice. Never from 22:00 to 06:00:30, America/Toronto time."
    );
    assert_eq!(
        preview_text(json!({"schedule": "0 9 * * *", "exact": false})),
        "At 09:00 every day, UTC, some seconds later than others with the same expression."
    );
    assert_eq!(
        preview_text(json!({"schedule": "24h", "exact": true, "timezone": "Europe/Berlin",
                    "prefer_window": {"start": "22:00", "end": "06:00"}})),
        "Every 24 hours, with the start of its slot. Best from 22:00 to 06:00, Europe/Berlin time."
    );
    assert_eq!(preview_text(json!({"schedule": "1h", "exact": false})), "Every hour.");
    assert_eq!(preview_text(json!({"schedule": "R1/PT5M"})), "Every 5 minutes, one time at most.");
}

#[test]
fn policies_without_effect_are_not_described() {
    let described = |schedule: &str, overlap: &str| {
        preview_text(json!({"schedule": schedule, "timezone": "Europe/Berlin", "dst_gap": "skip",
                    "dst_overlap": overlap}))
    };
    let left_out = "Times that the clocks jump over are left out.";
    // A schedule with equal distances between its run times runs at every matching clock time,
    // whatever its daylight saving policy is.
    for expression in ["*/30 * * * *", "5 * * * *", "* 2 * * *", "0 0 */2 * * *"] {
        for overlap in ["first", "last", "both"] {
            let words = described(expression, overlap);
            assert!(words.ends_with("Europe/Berlin time."), "{words}");
        }
    }
    assert!(described("30 2 * * *", "last").ends_with("the second one counts."));
    assert!(described("P1D", "last").ends_with("the second one counts."));
    assert!(described("P1D", "first").ends_with(left_out));
    let both = Dst { gap: Gap::Skip, overlap: Overlap::Both };
    let timezone = Zone::get("Europe/Berlin").unwrap();
    let schedule = read_schedule("P1D").unwrap().schedule;
    let stored = Definition { dst: both, timezone, ..Definition::noop(schedule) };
    assert!(describe(&stored, true).ends_with(left_out));
}

fn field(values: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(values), 1..3).prop_map(|items| items.join(","))
}

proptest! {
    #[test]
    fn every_expression_has_a_description(
        second in prop::option::of(field(&["*", "0", "*/7", "10-40/3", "H", "H(0-9)", "5/20", "3/1", "59"])),
        minute in field(&["*", "0", "*/7", "10-40/3", "H", "H(0-9)/3", "5/20", "3/1", "59"]),
        hour in field(&["*", "0", "*/5", "9-17", "9-17/2", "H", "H/4", "H/1", "23"]),
        date in field(&["*", "?", "1", "L", "LW", "L-3", "15W", "2-9", "*/3", "H", "5/1", "31"]),
        month in field(&["*", "1", "JAN", "feb-NOV", "*/5", "3-12/2", "H"]),
        weekday in field(&["*", "?", "0", "7", "MON", "tue-FRI", "FRI#2", "FRIL", "5L", "*/2", "H"]),
    ) {
        let fields = [minute, hour, date, month, weekday];
        let expression: Vec<String> = second.into_iter().chain(fields).collect();
        let expression = expression.join(" ");
        // Some combinations of random fields are not valid cron expressions.
        if read_schedule(&expression).is_ok() {
            let words = described(&expression);
            prop_assert!(words.ends_with(", UTC.") && words.len() > 10, "{expression}: {words}");
            let odd = ["  ", ",,", " ,", "..", "every every", "on on"];
            prop_assert!(!odd.iter().any(|odd| words.contains(odd)), "{expression}: {words}");
        }
    }
}
