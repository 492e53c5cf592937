//! Tests of bounds, daylight saving changes, preferred hours and retries.

use evenkeel_core::Timestamp;
use evenkeel_core::job::Bounds;
use evenkeel_core::on_failure::OnFailure;
use evenkeel_core::retry::{Backoff, Jitter};
use evenkeel_core::schedule::{Dst, Gap, Overlap};

use super::*;

fn bounds(more: Value) -> Bounds {
    read(&noop(more)).unwrap().definition.bounds
}

#[test]
fn recurring_jobs_have_bounds() {
    let (start, end) = ("2026-12-01T00:00:00Z", "2026-12-31T00:00:00Z");
    let given = json!({"schedule": "30m", "start_at": start, "end_at": end, "max_runs": 7});
    let expected = Bounds {
        start_at: Some(start.parse().unwrap()),
        end_at: Some(end.parse().unwrap()),
        max_runs: Some(7),
    };
    assert_eq!(bounds(given), expected);
    assert_eq!(bounds(json!({"schedule": "@daily"})), Bounds::default());
}

#[test]
fn repetition_count_becomes_a_bound() {
    assert_eq!(bounds(json!({"schedule": "R5/PT30M"})).max_runs, Some(5));
    let fifth = Some("2026-12-01T02:00:00Z".parse().unwrap());
    let anchored = bounds(json!({"schedule": "R5/2026-12-01T00:00:00Z/PT30M"}));
    assert_eq!((anchored.end_at, anchored.max_runs), (fifth, None));
    // An interval of calendar days keeps its local time in Berlin at a daylight saving change.
    let days = json!({"schedule": "R3/2026-03-28T08:00:00Z/P1D", "timezone": "Europe/Berlin"});
    assert_eq!(bounds(days).end_at, Some("2026-03-30T07:00:00Z".parse().unwrap()));
    // A scheduled time that is skipped because of daylight saving counts as one of the three runs
    // of `R3`.
    let skipping = json!({"schedule": "R3/2026-03-28T01:30:00Z/P1D", "timezone": "Europe/Berlin",
        "dst_gap": "skip"});
    assert_eq!(bounds(skipping).end_at, Some("2026-03-30T00:30:00Z".parse().unwrap()));
    for endless in ["R999999999/1970-01-01T00:00:00Z/P1D", "R999999999999/1970-01-01T00:00:00Z/P1M"]
    {
        assert_eq!(bounds(json!({"schedule": endless})).end_at, Some(Timestamp::MAX));
    }
}

#[test]
fn contradictory_bounds_are_refused() {
    let time = "2026-12-01T00:00:00Z";
    for (document, field) in [
        (json!({"start_at": time}), "start_at"),
        (json!({"end_at": time}), "end_at"),
        (json!({"schedule": {"kind": "once"}, "max_runs": 2}), "max_runs"),
        (json!({"schedule": "30m", "max_runs": 0}), "max_runs"),
        (json!({"schedule": "30m", "start_at": "soon"}), "start_at"),
        (json!({"schedule": "30m", "start_at": time, "end_at": "2026-11-01T00:00:00Z"}), "end_at"),
        (json!({"schedule": "R5/PT30M", "max_runs": 6}), "max_runs"),
        (json!({"schedule": format!("R5/{time}/PT30M"), "end_at": time}), "end_at"),
        (json!({"schedule": "P1D", "exact": true}), "exact"),
        (json!({"scheduling_period": "24h", "exact": false}), "exact"),
        (json!({"schedule": "R/2026-12-01T00:00:00Z/PT30M", "exact": true}), "exact"),
        (json!({"schedule": "0 9 * * *", "exact": "no"}), "exact"),
        (json!({"schedule": "0 9 * * *", "dst_gap": "first"}), "dst_gap"),
        (json!({"schedule": "0 9 * * *", "dst_overlap": "shift"}), "dst_overlap"),
        (json!({"schedule": "P1D", "dst_overlap": "both"}), "dst_overlap"),
    ] {
        assert_eq!(faulty_fields(&noop(document.clone())), [field], "{document}");
    }
}

#[test]
fn clock_change_policies_are_read() {
    let spec = read(&noop(json!({
        "schedule": "0 9 * * *", "dst_gap": "skip", "dst_overlap": "both", "exact": false,
    })))
    .unwrap();
    assert_eq!(spec.definition.dst, Dst { gap: Gap::Skip, overlap: Overlap::Both });
    assert_eq!(spec.exact, Some(false));
    assert_eq!(read(&noop(json!({"schedule": "0 9 * * *"}))).unwrap().exact, None);
    assert_eq!(read(&noop(json!({"schedule": "1h", "exact": true}))).unwrap().exact, Some(true));
}

#[test]
fn deadline_jobs_have_the_deadline_retries() {
    let retry = |more| read(&noop(more)).unwrap().definition.retry;
    for document in [
        json!({"scheduling_period": "24h"}),
        json!({"schedule": {"kind": "periodic", "period": "24h"}}),
        json!({"cron_schedule": "0 0 * * *", "cron_max_schedule_duration": "6h"}),
    ] {
        assert_eq!(retry(document.clone()), RetryPolicy::deadline(), "{document}");
    }
    assert_eq!(retry(json!({"schedule": "0 0 * * *"})), RetryPolicy::standard());
    let named =
        json!({"retry_backoff": "stages", "max_retries": 1000, "retry_backoff_seconds": 300});
    assert_eq!(retry(named), RetryPolicy::deadline());
    let stated = retry(json!({"scheduling_period": "24h", "max_retries": 1}));
    assert_eq!(stated, RetryPolicy { max_retries: 1, ..RetryPolicy::standard() });
}

#[test]
fn preferred_hours_need_chosen_times() {
    let night = json!({"start": "22:00", "end": "06:00:00"});
    let window = |more: Value| {
        let mut document = noop(json!({"schedule": "24h", "prefer_window": night}));
        document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(&document).map(|spec| spec.definition.prefer_window)
    };
    let read = window(json!({})).unwrap().unwrap();
    assert_eq!((read.start.hour(), read.end.hour()), (22, 6));
    for more in [
        json!({"schedule": "0 9 * * *"}),
        json!({"schedule": "P1D"}),
        json!({"schedule": "R/2026-12-01T00:00:00Z/PT24H"}),
        json!({"start_at": "2026-12-01T00:00:00Z"}),
        json!({"prefer_window": {"start": "22:00", "end": "22:00"}}),
        json!({"prefer_window": {"start": "22:00"}}),
        json!({"prefer_window": {"from": "22:00", "end": "23:00"}}),
        json!({"prefer_window": "22:00-06:00"}),
        json!({"blackout_periods": [{"start": "21:00", "end": "07:00"}]}),
    ] {
        let faults = window(more.clone()).unwrap_err();
        assert_eq!(faults[0].field, "prefer_window", "{more}: {}", faults[0]);
    }
    // Preferred hours that are only partly in a blackout are accepted.
    assert!(window(json!({"blackout_periods": [{"start": "21:00", "end": "05:00"}]})).is_ok());
}

#[test]
fn cost_is_a_length_of_time() {
    let cost = |cost: Value| read(&noop(json!({"schedule": "0 9 * * *", "cost": cost})));
    assert_eq!(cost(json!("90s")).unwrap().definition.cost, Some(Span::from_secs(90)));
    assert_eq!(cost(json!("1ms")).unwrap().definition.cost, Some(Span::from_millis(1)));
    for wrong in [json!(90), json!("0s"), json!("400d"), json!("much")] {
        assert_eq!(cost(wrong).unwrap_err()[0].field, "cost");
    }
}

#[test]
fn retry_presets_are_changed_field_by_field() {
    let retry = |more| read(&noop(more)).unwrap().definition.retry;
    for (name, number, preset) in [
        ("standard", None, RetryPolicy::standard()),
        ("interval", Some("001"), RetryPolicy::interval()),
        ("queue", Some("002"), RetryPolicy::queue()),
        ("deadline", Some("003"), RetryPolicy::deadline()),
        ("cron_service", Some("004"), RetryPolicy::cron_service()),
    ] {
        for name in [Some(name), number].into_iter().flatten() {
            assert_eq!(retry(json!({"retry_policy": name})), preset, "{name}");
        }
    }
    let queue = RetryPolicy::queue();
    let changed = retry(json!({"retry_policy": "queue", "max_retries": 1000}));
    assert_eq!(changed, RetryPolicy { max_retries: 1000, ..queue.clone() });
    let changed = retry(json!({"retry_policy": "queue", "retry_backoff_seconds": 5}));
    let cap = Span::from_secs(86_400);
    let backoff = Backoff::Exponential { base: Span::from_secs(5), cap };
    assert_eq!(changed, RetryPolicy { backoff, ..queue });
    let cron = RetryPolicy::cron_service();
    let changed = retry(json!({"retry_policy": "004", "retry_jitter_percent": 50}));
    assert_eq!(changed, RetryPolicy { jitter: Jitter::Additive { percent: 50 }, ..cron.clone() });
    let changed = retry(json!({"retry_policy": "004", "retry_jitter": "none"}));
    assert_eq!(changed, RetryPolicy { jitter: Jitter::None, ..cron });
    let stages = retry(json!({"retry_stages": ["90s", "1h"]}));
    let delays = vec![Span::from_secs(90), Span::from_secs(3600)];
    assert_eq!(stages.backoff, Backoff::Stages { delays });
}

#[test]
fn contradictory_retries_are_refused() {
    for (more, field) in [
        (json!({"retry_policy": "005"}), "retry_policy"),
        (json!({"max_retries": 1001}), "max_retries"),
        (json!({"retry_backoff_seconds": 3601}), "retry_backoff_seconds"),
        (
            json!({"retry_backoff": "fixed", "retry_backoff_cap_seconds": 9}),
            "retry_backoff_cap_seconds",
        ),
        (json!({"retry_backoff": "fixed", "retry_stages": ["1m"]}), "retry_stages"),
        (json!({"retry_stages": []}), "retry_stages"),
        (json!({"retry_stages": ["1m", 60]}), "retry_stages"),
        (json!({"retry_stages": ["1m"], "retry_backoff_seconds": 61}), "retry_backoff_seconds"),
        (json!({"retry_jitter": "none", "retry_jitter_percent": 5}), "retry_jitter_percent"),
        (json!({"on_failure": "pause"}), "on_failure"),
        (json!({"on_failure": {}}), "on_failure.action"),
        (json!({"on_failure": {"action": "pause", "after": 0}}), "on_failure.after"),
        (json!({"on_failure": {"action": "pause", "after": 1001}}), "on_failure.after"),
        (json!({"on_failure": {"action": "dead_letter", "after": 2}}), "on_failure.after"),
        (json!({"on_failure": {"action": "none", "note": "x"}}), "on_failure.note"),
        (json!({"on_failure": {"action": "pause", "note": "a\u{1b}[31mb"}}), "on_failure.note"),
        (json!({"on_failure": {"action": "pause", "notes": "x"}}), "on_failure.notes"),
    ] {
        let faults = read(&noop(more.clone())).unwrap_err();
        assert_eq!(faults[0].field, field, "{more}: {}", faults[0]);
    }
}

#[test]
fn on_failure_is_read() {
    let on_failure =
        |value| read(&noop(json!({"on_failure": value}))).unwrap().definition.on_failure;
    assert_eq!(on_failure(json!(null)), OnFailure::None);
    assert_eq!(on_failure(json!({"action": "none"})), OnFailure::None);
    assert_eq!(on_failure(json!({"action": "dead_letter"})), OnFailure::DeadLetter);
    assert_eq!(on_failure(json!({"action": "pause"})), OnFailure::Pause { after: 3, note: None });
    assert_eq!(
        on_failure(json!({"action": "pause", "after": 1, "note": " ask Ann "})),
        OnFailure::Pause { after: 1, note: Some("ask Ann".into()) }
    );
}
