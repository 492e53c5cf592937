//! Tests of the faults that invalid documents report, and of the fields that the faults name.

use super::super::expression::read_cron;
use super::*;

#[test]
fn limits_of_an_unreadable_schedule_are_not_reported() {
    for (document, field) in [
        (
            json!({"cron_schedule": "0 9 * * 8", "cron_max_schedule_duration": "6h"}),
            "cron_schedule",
        ),
        (
            json!({"interval_minutes": 30, "cron_schedule": "0 9 * * 8",
                   "cron_max_schedule_duration": "6h"}),
            "cron_schedule",
        ),
        (
            json!({"scheduling_period": "1 fortnight", "cooldown_duration": "1h"}),
            "scheduling_period",
        ),
    ] {
        assert_eq!(faulty_fields(&noop(document.clone())), [field], "{document}");
    }
    let alone = json!({"interval_minutes": 30, "cron_max_schedule_duration": "6h"});
    assert_eq!(faulty_fields(&noop(alone)), ["cron_max_schedule_duration"]);
}

#[test]
fn too_short_intervals_have_a_position() {
    for (text, position) in [("@every 0.5s", 7), ("@every   0s", 9), ("0.5s", 0), ("R/PT0.5S", 2)] {
        let error = read_schedule(text).unwrap_err();
        assert_eq!(error.position, position, "{text}: {error}");
    }
}

#[test]
fn expected_duration_is_at_most_the_allowed_one() {
    let both = |expected: &str, allowed: &str| {
        noop(json!({"max_expected_duration": expected, "max_allowed_duration": allowed}))
    };
    assert!(read(&both("10m", "10m")).is_ok());
    assert_eq!(faulty_fields(&both("11m", "10m")), ["max_expected_duration"]);
    assert!(message(&both("11m", "10m")).contains("max_allowed_duration, which is 10m"));
}

/// Each job field is tested with a value that has no effect, and with its default value, which
/// clients send back.
#[test]
fn values_without_effect_are_refused_unless_default() {
    let (once, interval) = (json!({"kind": "once"}), json!({"kind": "interval", "every": "1h"}));
    let (period, cron) = (json!({"kind": "periodic", "period": "1h"}), json!("0 9 * * *"));
    let dst = [("dst_gap", "skip", "shift"), ("dst_overlap", "both", "first")];
    let mut cases = Vec::new();
    for schedule in [&once, &interval, &period] {
        for (field, value, default) in dst {
            cases.push((schedule, field, json!(value), json!(default)));
        }
    }
    cases.extend([
        (&once, "misfire", json!("all"), json!("skip")),
        (&period, "misfire", json!("skip"), json!("last")),
        (&period, "misfire_after", json!("5m"), json!("60s")),
        (&period, "overlap", json!("replace"), json!("allow")),
        (&period, "overlap", json!("queue"), json!("skip")),
        (&cron, "avoid_blackout", json!(true), json!(false)),
    ]);
    for (schedule, field, refused, accepted) in cases {
        let with = |value: &Value| noop(json!({"schedule": schedule, field: value}));
        assert_eq!(faulty_fields(&with(&refused)), [field], "{schedule}");
        assert!(message(&with(&refused)).contains("no effect"), "{schedule} {field}");
        assert!(read(&with(&accepted)).is_ok(), "{schedule} {field}");
    }
    let lost = |crashes: u64| noop(json!({"on_lost_worker": "fail", "max_crashes": crashes}));
    assert_eq!(faulty_fields(&lost(5)), ["max_crashes"]);
    assert!(read(&lost(3)).is_ok());
    // Documents in which each field has an effect are accepted.
    for document in [
        json!({"schedule": "0 9 * * *", "dst_gap": "skip", "dst_overlap": "both", "misfire": "all",
               "overlap": "replace", "avoid_blackout": true, "max_crashes": 5,
               "blackout_periods": [{"start": "22:00", "end": "06:00"}]}),
        json!({"schedule": "P1D", "dst_gap": "skip", "dst_overlap": "last"}),
        json!({"schedule": once, "misfire": "skip", "overlap": "allow"}),
        // The fields of a disabled schedule are accepted, although they have no effect.
        json!({"schedule": "0 9 * * *", "schedule_enabled": false, "dst_gap": "skip",
               "misfire": "all"}),
    ] {
        assert!(read(&noop(document.clone())).is_ok(), "{document}");
    }
}

#[test]
fn crontab_extras_are_refused_with_a_hint() {
    for (text, position, right) in [
        ("CRON_TZ=Europe/Berlin 0 9 * * *", 0, "timezone"),
        ("TZ=UTC 0 9 * * 1-5 /usr/bin/backup", 0, "timezone"),
        ("0 9 * * * /usr/bin/backup", 10, "executor"),
        ("0 9 * * 1-5 ./backup.sh -v", 12, "executor"),
        ("0 9 * * * root /usr/bin/backup", 10, "executor"),
        ("0 0 9 * * * curl https://example.com/", 12, "executor"),
        ("0 0 9 * * MON 2026", 14, "write 5 fields"),
    ] {
        for read in [read_schedule, read_cron] {
            let error = read(text).unwrap_err();
            assert_eq!(error.position, position, "{text}: {error}");
            assert!(error.message.contains(right), "{text}: {error}");
        }
    }
}

#[test]
fn lengths_without_unit_or_t_are_refused_with_a_correction() {
    for (text, right) in
        [("30", "write 30m"), ("P1H", "write PT1H"), ("p1d2h", "write P1DT2H"), ("P5S", "PT5S")]
    {
        let error = read_schedule(text).unwrap_err();
        assert!(error.message.contains(right), "{text}: {error}");
    }
    for document in [
        json!({"schedule": 30}),
        json!({"schedule": {"kind": "interval", "every": 30}}),
        json!({"scheduling_period": 30}),
        json!({"max_allowed_duration": 30}),
    ] {
        let message = message(&noop(document.clone()));
        assert!(message.contains("30 needs a unit: write \"30m\""), "{document}: {message}");
    }
}
