//! Tests of all forms of schedules.

use evenkeel_core::schedule::{CalendarInterval, Cron, CronSchedule, Periodic};

use super::*;

#[test]
fn all_forms_of_an_interval_are_equal() {
    for document in [
        json!({"schedule": {"kind": "interval", "every": "30m"}}),
        json!({"schedule": {"kind": "interval", "every": "PT30M"}}),
        json!({"schedule": "@every 30m"}),
        json!({"schedule": "PT30M"}),
        json!({"schedule": "R/PT30M"}),
        json!({"schedule": "30m"}),
        json!({"interval_minutes": 30}),
        json!({"interval_minutes": 30, "interval_type": "minutes", "schedule_enabled": true}),
        json!({"interval_minutes": 30, "schedule": "@every 1800s"}),
    ] {
        assert_eq!(schedule(document.clone()), every(1800), "{document}");
    }
    assert_eq!(schedule(json!({"interval_minutes": 6, "interval_type": "hours"})), every(21_600));
    assert_eq!(schedule(json!({"interval_minutes": 1, "interval_type": "days"})), every(86_400));
}

#[test]
fn anchors_are_kept() {
    let start = "2026-12-01T00:00:00Z";
    let anchored = Interval::new(Span::from_secs(1800), Some(start.parse().unwrap())).unwrap();
    for document in [
        json!({"schedule": {"kind": "interval", "every": "30m", "anchor": start}}),
        json!({"schedule": "R/2026-12-01T00:00:00Z/PT30M"}),
    ] {
        assert_eq!(schedule(document), Schedule::Interval(anchored));
    }
}

#[test]
fn jobs_without_an_enabled_schedule_run_once() {
    for document in [
        json!({}),
        json!({"schedule_enabled": false}),
        json!({"schedule_enabled": false, "interval_minutes": 30}),
        json!({"schedule": {"kind": "once"}}),
        json!({"schedule": null, "interval_minutes": null, "interval_type": null}),
    ] {
        assert_eq!(schedule(document.clone()), once(), "{document}");
    }
    let at = "2026-12-01T09:00:00Z";
    let tolerance = Some(Span::from_secs(300));
    assert_eq!(
        schedule(json!({"schedule": {"kind": "once", "at": at, "tolerance": "5m"}})),
        Schedule::Once(Once { at: Some(at.parse().unwrap()), tolerance })
    );
}

fn cron(expression: &str, max_hours: Option<u64>) -> Schedule {
    Schedule::Cron(CronSchedule {
        cron: Cron::parse(expression).unwrap(),
        max_duration: max_hours.map(|hours| Span::from_secs(hours * 3600)),
    })
}

#[test]
fn all_forms_of_a_cron_schedule_are_equal() {
    for document in [
        json!({"schedule": {"kind": "cron", "expression": "0 9 * * 1-5", "max_duration": "6h"}}),
        json!({"schedule": "0 9 * * 1-5", "cron_max_schedule_duration": "6h"}),
        json!({"cron_schedule": "0 9 * * 1-5", "cron_max_schedule_duration": "PT6H"}),
        json!({"cron_expression": "0 9 * * 1-5", "cron_max_schedule_duration": "6h"}),
        json!({"schedule": {"kind": "cron", "expression": "0 9 * * 1-5", "max_duration": "6h"},
               "cron_expression": "0 9 * * 1-5", "cron_schedule": "0  9 * * 1-5",
               "schedule_time": "0 9 * * 1-5", "cron_max_schedule_duration": "6h"}),
    ] {
        assert_eq!(schedule(document.clone()), cron("0 9 * * 1-5", Some(6)), "{document}");
    }
    assert_eq!(schedule(json!({"schedule_time": "@daily"})), cron("@daily", None));
    assert_eq!(schedule(json!({"schedule": "30 0 9 * * *"})), cron("30 0 9 * * *", None));
    assert_eq!(schedule(json!({"schedule": "@every 30m"})), every(1800));
    assert_eq!(schedule(json!({"cron_expression": "@every 30m"})), every(1800));
    assert_eq!(
        schedule(json!({"schedule": {"kind": "cron", "expression": "@every 30m"}})),
        every(1800)
    );
}

#[test]
fn interval_wins_over_a_former_cron() {
    let document = json!({"interval_minutes": 30, "schedule_time": "0 9 * * *"});
    assert_eq!(schedule(document), every(1800));
    assert_eq!(
        faulty_fields(&noop(json!({"interval_minutes": 30, "schedule_time": "0 9 * *"}))),
        ["schedule_time"]
    );
}

#[test]
fn former_cron_of_an_interval_is_kept() {
    let kept = |document| read(&noop(document)).unwrap().about.schedule_time;
    let short = json!({"interval_minutes": 6, "interval_type": "hours",
                       "schedule_time": "0 */6 * * *"});
    assert_eq!(kept(short).as_deref(), Some("0 */6 * * *"));
    let long = json!({"schedule": {"kind": "interval", "every": "6h",
                      "anchor": "2026-12-01T00:00:00Z"}, "schedule_time": "0 */6 * * *"});
    assert_eq!(kept(long).as_deref(), Some("0 */6 * * *"));
    assert_eq!(kept(json!({"schedule_time": "0 9 * * *"})), None);
    assert_eq!(kept(json!({"interval_minutes": 6})), None);
}

#[test]
fn periodic_schedules_are_read() {
    let hours = |n: u64| Span::from_secs(n * 3600);
    let periodic = |cooldown| Schedule::Periodic(Periodic::new(hours(24), cooldown).unwrap());
    for document in [
        json!({"schedule": {"kind": "periodic", "period": "24h", "cooldown": "1h"}}),
        json!({"scheduling_period": "24h", "cooldown_duration": "1h"}),
        json!({"schedule": {"kind": "periodic", "period": "24h", "cooldown": "1h"},
               "scheduling_period": "24h", "cooldown_duration": "1h"}),
        // The default cooldown of one field does not contradict an explicit cooldown in another
        // field.
        json!({"schedule": {"kind": "periodic", "period": "24h"}, "cooldown_duration": "1h"}),
        json!({"schedule": {"kind": "periodic", "period": "24h", "cooldown": "1h"},
               "scheduling_period": "24h"}),
        json!({"schedule": {"kind": "periodic", "period": "24h"},
               "scheduling_period": "24h", "cooldown_duration": "1h"}),
    ] {
        assert_eq!(schedule(document.clone()), periodic(Some(hours(1))), "{document}");
    }
    for document in [
        json!({"scheduling_period": "24h"}),
        json!({"schedule": {"kind": "periodic", "period": "24h"}, "scheduling_period": "24h"}),
    ] {
        assert_eq!(schedule(document.clone()), periodic(None), "{document}");
    }
    let none = json!({"schedule": {"kind": "periodic", "period": "24h", "cooldown": "0s"}});
    assert_eq!(schedule(none), periodic(Some(Span::ZERO)));
}

#[test]
fn periods_have_the_same_limit_in_all_forms() {
    let years = |n: u64| Span::from_secs(n * 365 * 86_400);
    for document in [
        json!({"schedule": {"kind": "periodic", "period": "3650d", "cooldown": "730d"}}),
        json!({"scheduling_period": "3650d", "cooldown_duration": "730d"}),
    ] {
        let periodic = Periodic::new(years(10), Some(years(2))).unwrap();
        assert_eq!(schedule(document.clone()), Schedule::Periodic(periodic), "{document}");
    }
    for (document, field) in [
        (json!({"schedule": {"kind": "periodic", "period": "36501d"}}), "schedule.period"),
        (json!({"scheduling_period": "36501d"}), "scheduling_period"),
    ] {
        assert_eq!(faulty_fields(&noop(document.clone())), [field], "{document}");
    }
}

#[test]
fn limits_are_read_in_all_forms() {
    let limit = Some(Span::from_secs(6 * 3600));
    let interval = Interval::new(Span::from_secs(1800), None).unwrap().with_tolerance(limit);
    let every = "P1D".parse().unwrap();
    let daily = CalendarInterval { every, anchor: None, tolerance: limit };
    for (expression, expected) in [
        ("0 9 * * *", cron("0 9 * * *", Some(6))),
        ("@every 30m", Schedule::Interval(interval)),
        ("@every P1D", Schedule::Calendar(daily)),
    ] {
        for document in [
            json!({"schedule": {"kind": "cron", "expression": expression, "max_duration": "6h"}}),
            json!({"schedule": {"kind": "cron", "expression": expression},
                   "cron_max_schedule_duration": "6h"}),
            json!({"schedule": expression, "cron_max_schedule_duration": "6h"}),
            json!({"cron_schedule": expression, "cron_max_schedule_duration": "6h"}),
            json!({"schedule": {"kind": "cron", "expression": expression, "max_duration": "6h"},
                   "cron_schedule": expression}),
        ] {
            assert_eq!(schedule(document.clone()), expected, "{document}");
        }
        let other = json!({
            "schedule": {"kind": "cron", "expression": expression, "max_duration": "6h"},
            "cron_max_schedule_duration": "2h",
        });
        assert_eq!(faulty_fields(&noop(other.clone())), ["cron_max_schedule_duration"], "{other}");
    }
}

#[test]
fn cron_expressions_are_not_mistaken_for_lengths() {
    for expression in ["30 H 1 1 1", "5 h 1 1 mon", "0 30 H 1 JAN FRIL", "1 1 15W 1 1"] {
        assert_eq!(schedule(json!({"schedule": expression})), cron(expression, None));
    }
    let length = Span::from_secs(7 * 86_400 + 2 * 86_400 + 3 * 3600 + 4 * 60 + 5);
    let parsed = schedule(json!({"schedule": "1w 2d 3h 4m 5s"}));
    assert_eq!(parsed, Schedule::Interval(Interval::new(length, None).unwrap()));
    assert_eq!(schedule(json!({"schedule": "1 h 30 m"})), every(5400));
    assert!(message(&noop(json!({"schedule": "30 H 1 1 8"}))).contains("day of the week"));
}

#[test]
fn days_and_months_follow_the_calendar() {
    let calendar = |every: &str| {
        let every = every.parse().unwrap();
        Schedule::Calendar(CalendarInterval { every, anchor: None, tolerance: None })
    };
    for document in [
        json!({"schedule": "P1M"}),
        json!({"schedule": "R/P1M"}),
        json!({"schedule": {"kind": "interval", "every": "P1M"}}),
        json!({"schedule": "@every P1M"}),
    ] {
        assert_eq!(schedule(document.clone()), calendar("P1M"), "{document}");
    }
    assert_eq!(schedule(json!({"schedule": "1d"})), every(86_400));
}

#[test]
fn invalid_schedules_are_refused_with_the_field() {
    for (document, field) in [
        (json!({"schedule": "0 9 * *"}), "schedule"),
        (json!({"schedule": "0 0 30 2 *"}), "schedule"),
        (json!({"schedule": "@fortnightly"}), "schedule"),
        (json!({"schedule": "P1H"}), "schedule"),
        (json!({"schedule": "R0/PT30M"}), "schedule"),
        (json!({"schedule": "2026-12-01T00:00:00Z"}), "schedule"),
        (json!({"schedule": "0,".repeat(600) + "0 * * * *"}), "schedule"),
        (json!({"schedule": "R/yesterday/PT30M"}), "schedule"),
        (json!({"schedule": "R"}), "schedule"),
        (json!({"schedule": ""}), "schedule"),
        (json!({"schedule": 30}), "schedule"),
        (json!({"schedule": []}), "schedule"),
        (json!({"schedule": "@every 500ms"}), "schedule"),
        (json!({"schedule": {"kind": "cron"}}), "schedule.expression"),
        (json!({"schedule": {"kind": "cron", "expression": "0 9 * * 8"}}), "schedule.expression"),
        (json!({"schedule": {"kind": "cron", "expression": "30m"}}), "schedule.expression"),
        (
            json!({"schedule": {"kind": "cron", "expression": "0,".repeat(600) + "0 * * * *"}}),
            "schedule.expression",
        ),
        (json!({"cron_schedule": "30m"}), "cron_schedule"),
        (json!({"cron_expression": "PT30M"}), "cron_expression"),
        (json!({"schedule": {"kind": "periodic"}}), "schedule.period"),
        (json!({"schedule": {"kind": "periodic", "period": "P1D"}}), "schedule.period"),
        (
            json!({"schedule": {"kind": "periodic", "period": "1h", "cooldown": "2h"}}),
            "schedule.cooldown",
        ),
        (json!({"scheduling_period": "1h", "cooldown_duration": "2h"}), "cooldown_duration"),
        (json!({"cooldown_duration": "2h"}), "cooldown_duration"),
        (
            json!({"schedule": {"kind": "periodic", "period": "1h"}, "cooldown_duration": "2h"}),
            "cooldown_duration",
        ),
        (json!({"cron_max_schedule_duration": "2h"}), "cron_max_schedule_duration"),
        (
            json!({"schedule": "30m", "cron_max_schedule_duration": "2h"}),
            "cron_max_schedule_duration",
        ),
        (json!({"schedule": {"kind": "sometimes"}}), "schedule.kind"),
        (json!({"schedule": {}}), "schedule.kind"),
        (json!({"schedule": {"kind": "interval"}}), "schedule.every"),
        (json!({"schedule": {"kind": "interval", "every": 30}}), "schedule.every"),
        (json!({"schedule": {"kind": "interval", "every": "1us"}}), "schedule.every"),
        (json!({"schedule": {"kind": "interval", "every": "1h", "at": "x"}}), "schedule.at"),
        (json!({"schedule": {"kind": "interval", "every": "1h", "anchor": 1}}), "schedule.anchor"),
        (json!({"schedule": {"kind": "once", "at": "1901-01-01T00:00:00Z"}}), "schedule.at"),
        (json!({"interval_minutes": 0}), "interval_minutes"),
        (json!({"interval_minutes": 1.5}), "interval_minutes"),
        (json!({"interval_minutes": "30"}), "interval_minutes"),
        (json!({"interval_minutes": 4_000_000_000_u64}), "interval_minutes"),
        (json!({"interval_minutes": 5, "interval_type": "weeks"}), "interval_type"),
        (json!({"interval_type": "days"}), "interval_type"),
        (json!({"interval_minutes": 5, "schedule": "30m"}), "interval_minutes"),
        (json!({"schedule_enabled": true}), "schedule_enabled"),
        (json!({"schedule_enabled": "yes"}), "schedule_enabled"),
        (json!({"timezone": "Mars/Olympus"}), "timezone"),
        (json!({"timezone": "Etc/Unknown"}), "timezone"),
    ] {
        assert_eq!(faulty_fields(&noop(document.clone())), [field], "{document}");
    }
}

#[test]
fn contradictory_forms_are_refused() {
    for (document, field, other) in [
        (json!({"schedule": "30m", "interval_minutes": 5}), "interval_minutes", "schedule"),
        (
            json!({"schedule": "0 9 * * *", "cron_expression": "0 8 * * *"}),
            "cron_expression",
            "schedule",
        ),
        (
            json!({"interval_minutes": 5, "cron_schedule": "0 9 * * *"}),
            "cron_schedule",
            "interval_minutes",
        ),
        (
            json!({"cron_expression": "@daily", "scheduling_period": "24h"}),
            "scheduling_period",
            "cron_expression",
        ),
        (
            json!({"schedule": {"kind": "cron", "expression": "@daily", "max_duration": "1h"},
                "cron_max_schedule_duration": "2h"}),
            "cron_max_schedule_duration",
            "schedule.max_duration",
        ),
        (
            json!({"schedule": {"kind": "periodic", "period": "24h", "cooldown": "1h"},
                "cooldown_duration": "2h"}),
            "cooldown_duration",
            "schedule.cooldown",
        ),
        (json!({"timezone": "UTC", "tz": "Europe/Berlin"}), "tz", "timezone"),
    ] {
        assert_eq!(faulty_fields(&noop(document.clone())), [field], "{document}");
        let message = message(&noop(document));
        assert!(message.contains(&format!("contradicts {other}")), "{message}");
    }
}

#[test]
fn syntax_errors_have_a_position_and_an_example() {
    for (document, position, right) in [
        (json!({"schedule": "0 9 * * 8"}), 8, "0 9 * * 1-5"),
        (json!({"schedule": "  0 25 * * *"}), 4, "0 9 * * 1-5"),
        (json!({"schedule": "0 9 * *"}), 7, "0 9 * * 1-5"),
        (json!({"schedule": "@every 30x"}), 9, "@every 30m"),
        (json!({"schedule": "30"}), 2, "1h 30m"),
        (json!({"schedule": "PT30"}), 4, "PT30M"),
        (json!({"schedule": "R/tomorrow/PT30M"}), 2, "R/2026-12-01T00:00:00Z/PT30M"),
        (json!({"schedule": "R/2026-12-01T00:00:00Z/PT3X"}), 26, "R/2026-12-01T00:00:00Z/PT30M"),
        (json!({"schedule": "never"}), 0, "@daily"),
        (json!({"schedule": {"kind": "cron", "expression": "0 9 30 2 *"}}), 4, "0 9 * * 1-5"),
        (json!({"schedule": {"kind": "interval", "every": "5 parsecs"}}), 2, "1h 30m"),
    ] {
        let faults = read(&noop(document.clone())).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].position, Some(position), "{document} {}", faults[0].message);
        let message = &faults[0].message;
        assert!(message.contains(right), "{message}");
        assert!(message.contains(&format!("character {}", position + 1)), "{message}");
    }
}

#[test]
fn zones_are_shown_with_their_proper_name() {
    let zone = |name| read(&noop(json!({"timezone": name}))).unwrap().definition.timezone;
    assert_eq!(zone("america/toronto").name(), "America/Toronto");
    assert!(zone("UTC").is_utc());
    let short = read(&noop(json!({"tz": "Europe/Berlin", "timezone": "europe/berlin"}))).unwrap();
    assert_eq!(short.definition.timezone.name(), "Europe/Berlin");
}
