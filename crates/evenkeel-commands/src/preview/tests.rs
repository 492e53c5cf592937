//! Tests of schedule previews.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const NOON: &str = "2026-06-01T12:00:00Z";

fn previewed(document: Value) -> Preview {
    preview(&document, NOON.parse().unwrap(), 1000).unwrap()
}

fn utc(document: Value) -> Vec<String> {
    previewed(document).times.iter().map(|time| time.utc.to_string()[..19].to_owned()).collect()
}

fn moved(document: Value) -> Vec<(String, Option<&'static str>)> {
    let times = previewed(document).times;
    times.iter().map(|time| (time.local[..16].to_owned(), time.moved_by)).collect()
}

fn faults_of(document: Value) -> Vec<Fault> {
    preview(&document, NOON.parse().unwrap(), 1000).unwrap_err()
}

#[test]
fn every_form_has_its_times() {
    for (schedule, first, second) in [
        (json!("0 9 * * *"), "2026-06-02T09:00:00", "2026-06-03T09:00:00"),
        (json!("30 0 9 * * *"), "2026-06-02T09:00:30", "2026-06-03T09:00:30"),
        (json!("@daily"), "2026-06-02T00:00:00", "2026-06-03T00:00:00"),
        (json!("@every 1.5h"), "2026-06-01T13:30:00", "2026-06-01T15:00:00"),
        (json!("30m"), "2026-06-01T12:30:00", "2026-06-01T13:00:00"),
        (json!("PT30M"), "2026-06-01T12:30:00", "2026-06-01T13:00:00"),
        (json!("P1M"), "2026-07-01T12:00:00", "2026-08-01T12:00:00"),
        (json!("R/2026-05-31T00:10:00Z/PT30M"), "2026-06-01T12:10:00", "2026-06-01T12:40:00"),
        (
            json!("R/2026-05-31T00:00Z/2026-05-31T00:45Z"),
            "2026-06-01T12:45:00",
            "2026-06-01T13:30:00",
        ),
        (
            json!({"kind": "periodic", "period": "24h"}),
            "2026-06-01T12:00:00",
            "2026-06-02T12:00:00",
        ),
    ] {
        let times = utc(json!({"schedule": schedule, "count": 2}));
        assert_eq!(times, [first, second], "{schedule}");
    }
    assert_eq!(utc(json!({"schedule": {"kind": "once"}})), ["2026-06-01T12:00:00"]);
    let past = json!({"schedule": {"kind": "once", "at": "2020-01-01T00:00:00Z"}});
    assert_eq!(utc(past), ["2026-06-01T12:00:00"]);
}

#[test]
fn counted_repetition_ends() {
    let five = utc(json!({"schedule": "R5/2026-07-01T00:00:00Z/PT30M", "count": 100}));
    assert_eq!((five.len(), five[4].as_str()), (5, "2026-07-01T02:00:00"));
    let months = utc(json!({"schedule": "R3/2026-07-31T00:00:00Z/P1M", "count": 100}));
    assert_eq!(months, ["2026-07-31T00:00:00", "2026-08-31T00:00:00", "2026-09-30T00:00:00"]);
    assert_eq!(utc(json!({"schedule": "R5/PT30M", "count": 100})).len(), 5);
    assert_eq!(utc(json!({"schedule": "R2/2020-07-01T00:00:00Z/PT30M"})).len(), 0);
    assert_eq!(utc(json!({"schedule": "30m", "max_runs": 3, "count": 100})).len(), 3);
}

#[test]
fn times_moved_by_clock_changes_are_flagged() {
    let document = json!({"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "count": 3,
                          "from": "2026-03-27T12:00:00Z"});
    assert_eq!(
        moved(document),
        [
            ("2026-03-28T02:30".into(), None),
            ("2026-03-29T03:00".into(), Some("daylight_saving")),
            ("2026-03-30T02:30".into(), None),
        ]
    );
}

#[test]
fn times_in_a_blackout_become_one_at_its_end() {
    let document = json!({"schedule": "@every 30m", "count": 3,
                          "blackout_periods": [{"start": "12:10", "end": "14:10"}]});
    assert_eq!(
        moved(document),
        [
            ("2026-06-01T14:10".into(), Some("blackout")),
            ("2026-06-01T14:30".into(), None),
            ("2026-06-01T15:00".into(), None),
        ]
    );
    let second = json!({"schedule": "* * * * * *", "count": 1000,
                        "blackout_periods": [{"start": "00:00:10", "end": "00:00:00"}]});
    assert_eq!(utc(second)[999], "2026-09-09T00:00:09");
}

#[test]
fn times_that_differ_per_job_are_not_exact() {
    assert!(previewed(json!({"schedule": "0 9 * MAR THU"})).exact_times);
    assert!(!previewed(json!({"schedule": "H 9 * * *"})).exact_times);
    assert!(!previewed(json!({"schedule": "0 9 * * *", "exact": false})).exact_times);
    assert!(!previewed(json!({"scheduling_period": "24h"})).exact_times);
    assert!(!previewed(json!({"schedule": "30m"})).exact_times);
    assert!(!previewed(json!({"schedule": "30m", "exact": true})).exact_times);
    assert!(previewed(json!({"schedule": "30m", "start_at": "2026-07-01T00:00:00Z"})).exact_times);
    assert!(previewed(json!({"schedule": "R/2026-05-31T00:10:00Z/PT30M"})).exact_times);
    assert!(previewed(json!({"schedule": "P1D"})).exact_times);
}

#[test]
fn slots_of_a_day_are_listed_once() {
    let slots = |schedule| previewed(json!({"schedule": schedule})).slots.len();
    assert_eq!(slots("* * * * * *"), 24);
    assert_eq!(slots("0 * * * *"), 24);
    assert_eq!(slots("0 9 * * *"), 1);
    // The previewed period of 24 hours begins with the first start time, however far in the future
    // that is.
    assert_eq!(slots("0 9 1 1 *"), 1);
    assert_eq!(slots("0,20 9-10 1 1 *"), 4);
    let past = json!({"schedule": "30m", "end_at": "2020-01-01T00:00:00Z"});
    assert_eq!(previewed(past).slots.len(), 0);
    assert_eq!(previewed(json!({"scheduling_period": "5s"})).slots.len(), 24);
}

#[test]
fn wrong_documents_are_refused() {
    for (document, field) in [
        (json!([]), ""),
        (json!({"schedule": "0 9 * *"}), "schedule"),
        (json!({"schedule": "30m", "count": 0}), "count"),
        (json!({"schedule": "30m", "count": 1001}), "count"),
        (json!({"schedule": "30m", "from": "yesterday"}), "from"),
        (json!({"schedule": "30m", "executor_type": "noop"}), "executor_type"),
    ] {
        assert_eq!(faults_of(document.clone())[0].field, field, "{document}");
    }
}

proptest! {
    #[test]
    fn times_are_in_the_future_and_in_order(
        schedule in prop::sample::select(vec!["* * * * *", "*/7 3 * * *", "0 0 1 * *", "90s", "P1D",
            "PT1H", "R/2026-01-01T00:00:00Z/P1W", "15 2 * * SUN"]),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Toronto",
            "Australia/Lord_Howe"]),
        from in 1_700_000_000_i64..2_000_000_000,
        blackout in prop::option::of((0_u32..24, 1_u32..20)),
    ) {
        let from = Timestamp::from_micros(from * 1_000_000);
        let periods: Vec<_> = blackout.into_iter().map(|(start, hours)| {
            json!({"start": format!("{start:02}:00"), "end": format!("{:02}:00", (start + hours) % 24)})
        }).collect();
        let document = json!({"schedule": schedule, "timezone": zone, "count": 50,
                              "blackout_periods": periods});
        let previewed = preview(&document, from, 1000).unwrap();
        prop_assert_eq!(previewed.times.len(), 50);
        prop_assert!(previewed.times[0].utc > from);
        prop_assert!(previewed.times.is_sorted_by(|a, b| a.utc < b.utc));
        prop_assert!(previewed.slots.is_sorted_by(|a, b| a < b));
    }
}
