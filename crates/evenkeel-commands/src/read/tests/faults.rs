//! What is said to who made a mistake, and to which field.

use super::*;

#[test]
fn what_belongs_to_a_schedule_that_cannot_be_read_is_not_blamed_as_well() {
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
        assert_eq!(blamed(&noop(document.clone())), [field], "{document}");
    }
    let alone = json!({"interval_minutes": 30, "cron_max_schedule_duration": "6h"});
    assert_eq!(blamed(&noop(alone)), ["cron_max_schedule_duration"]);
}

#[test]
fn the_place_of_an_interval_that_is_too_short_is_its_own() {
    for (text, position) in [("@every 0.5s", 7), ("@every   0s", 9), ("0.5s", 0), ("R/PT0.5S", 2)] {
        let misread = read_schedule(text).unwrap_err();
        assert_eq!(misread.position, position, "{text}: {misread}");
    }
}

#[test]
fn a_run_is_expected_to_be_over_before_it_must_be() {
    let both = |expected: &str, allowed: &str| {
        noop(json!({"max_expected_duration": expected, "max_allowed_duration": allowed}))
    };
    assert!(read(&both("10m", "10m")).is_ok());
    assert_eq!(blamed(&both("11m", "10m")), ["max_expected_duration"]);
    assert!(message(&both("11m", "10m")).contains("max_allowed_duration, which is 10m"));
}
