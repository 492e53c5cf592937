//! When a job runs, in all the ways a document may say it.

use super::*;

#[test]
fn every_way_to_say_an_interval_means_the_same() {
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
fn an_anchor_is_kept() {
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
fn without_a_schedule_or_with_it_off_a_job_runs_once_now() {
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
    assert_eq!(
        schedule(json!({"schedule": {"kind": "once", "at": at}})),
        Schedule::Once(Once { at: Some(at.parse().unwrap()) })
    );
}

#[test]
fn a_schedule_that_is_none_is_refused_with_its_field() {
    for (document, field) in [
        (json!({"schedule": "0 9 * * *"}), "schedule"),
        (json!({"schedule": "@daily"}), "schedule"),
        (json!({"schedule": "P1D"}), "schedule"),
        (json!({"schedule": "R5/2026-12-01T00:00:00Z/PT30M"}), "schedule"),
        (json!({"schedule": "R/yesterday/PT30M"}), "schedule"),
        (json!({"schedule": "R"}), "schedule"),
        (json!({"schedule": ""}), "schedule"),
        (json!({"schedule": 30}), "schedule"),
        (json!({"schedule": []}), "schedule"),
        (json!({"schedule": "@every 500ms"}), "schedule"),
        (json!({"schedule": {"kind": "cron", "expression": "0 9 * * *"}}), "schedule.kind"),
        (json!({"schedule": {"kind": "periodic", "period": "24h"}}), "schedule.kind"),
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
        assert_eq!(blamed(&noop(document.clone())), [field], "{document}");
    }
}

#[test]
fn kinds_to_come_are_named_as_such() {
    let cron = message(&noop(json!({"schedule": "0 9 * * 1-5"})));
    assert!(cron.contains("\"0 9 * * 1-5\"") && cron.contains("not supported yet"), "{cron}");
    let kind = message(&noop(json!({"schedule": {"kind": "periodic", "period": "24h"}})));
    assert!(kind.contains("interval and once"), "{kind}");
    let days = message(&noop(json!({"schedule": "P1D"})));
    assert!(days.contains("calendar units"), "{days}");
}

#[test]
fn zones_get_their_proper_names() {
    let zone = |name| read(&noop(json!({"timezone": name}))).unwrap().definition.timezone;
    assert_eq!(zone("america/toronto"), "America/Toronto");
    assert_eq!(zone("UTC"), "UTC");
}
