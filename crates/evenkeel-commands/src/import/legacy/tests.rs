//! Rows of the predecessor and what becomes of them.

use super::*;

fn now() -> Timestamp {
    "2026-11-15T13:37:42Z".parse().unwrap()
}

fn options() -> LegacyOptions {
    LegacyOptions {
        zone: Zone::utc(),
        keep_phase: false,
        include_disabled: false,
        rename_duplicates: false,
        executors: evenkeel_executors::CATALOG,
    }
}

/// A row with a name, an address and more columns.
fn row(more: Value) -> Value {
    let mut row =
        json!({"id": "5f0c", "source_name": "example.com", "url": "https://example.com/"});
    let (Value::Object(columns), Value::Object(more)) = (&mut row, more) else { panic!() };
    columns.extend(more);
    row
}

fn plan_with(options: LegacyOptions, more: Value) -> Planned {
    LegacyImport::new(options).plan(1, Ok(row(more).as_object().unwrap()), now())
}

fn plan(more: Value) -> Planned {
    plan_with(options(), more)
}

#[test]
fn a_simple_cron_becomes_an_interval_and_is_kept_beside_it() {
    let planned = plan(json!({"schedule_time": "0 */6 * * *", "schedule_enabled": true,
                              "max_retries": 5, "metadata": {"category": "news"}}));
    assert_eq!((planned.fate, planned.code), (Disposition::Interval, "converted"));
    assert_eq!(
        planned.document.unwrap(),
        json!({
            "name": "example.com", "source_name": "example.com", "url": "https://example.com/",
            "schedule": {"kind": "interval", "every": "6h", "anchor": "2026-11-15T18:00:00.000000Z"},
            "schedule_time": "0 */6 * * *", "max_retries": 5,
            "metadata": {"category": "news", "legacy_id": "5f0c"},
        })
    );
}

#[test]
fn what_an_interval_cannot_say_keeps_its_cron() {
    for (expression, code) in [
        ("0 9 * * 1-5", "not_even"),
        ("0 9,12 * * *", "not_even"),
        ("0 0 1 * *", "not_even"),
        ("CRON_TZ=America/Toronto 0 9 * * *", "zone"),
    ] {
        let planned = plan(json!({"schedule_time": expression}));
        assert_eq!((planned.fate, planned.code), (Disposition::Cron, code), "{expression}");
        let document = planned.document.unwrap();
        assert_eq!(document["schedule"]["kind"], "cron");
        let zoned = expression.contains("TZ=");
        assert_eq!(document["timezone"] == "America/Toronto", zoned, "{document}");
        // As it was written, it is found in one place or the other.
        assert_eq!(document["metadata"]["legacy_schedule_time"] == expression, zoned);
    }
}

#[test]
fn an_interval_of_the_row_wins_over_its_cron() {
    let columns = json!({"interval_minutes": 30, "interval_type": "minutes", "status": "scheduled",
                         "schedule_time": "0 9 * * 1-5", "next_run_at": "2026-11-15T14:05:00Z"});
    let document = plan(columns.clone()).document.unwrap();
    assert_eq!(document["interval_minutes"], 30);
    assert_eq!(document["schedule_time"], "0 9 * * 1-5");
    assert_eq!(document.get("schedule"), None, "it may be placed anew");
    let kept = plan_with(LegacyOptions { keep_phase: true, ..options() }, columns);
    let document = kept.document.unwrap();
    assert_eq!(document["schedule"]["anchor"], "2026-11-15T14:05:00.000000Z");
}

#[test]
fn a_former_cron_that_no_server_reads_is_kept_in_the_metadata() {
    let document = plan(json!({"interval_minutes": 30, "schedule_time": "nightly"})).document;
    assert_eq!(document.unwrap()["metadata"]["legacy_schedule_time"], "nightly");
}

#[test]
fn what_cannot_be_read_needs_a_person() {
    for (more, code) in [
        (json!({"schedule_time": "0 9 * *"}), "unreadable_schedule"),
        (json!({"schedule_time": "0 0 30 2 *"}), "unreadable_schedule"),
        (json!({"schedule_time": "09:30"}), "unreadable_schedule"),
        (json!({"url": null, "schedule_time": "@daily"}), "no_url"),
        (json!({"url": "example.com", "schedule_time": "@daily"}), "refused"),
        (json!({"interval_minutes": 0}), "refused"),
        (json!({"interval_minutes": 5, "interval_type": "fortnights"}), "refused"),
        (json!({"max_retries": "many"}), "unreadable_row"),
        (json!({"status": "sleeping"}), "unknown_status"),
    ] {
        let planned = plan(more.clone());
        assert_eq!(
            (planned.fate, planned.code),
            (Disposition::Person, code),
            "{more}: {}",
            planned.why
        );
        assert_eq!(planned.document, None);
        assert!(!planned.why.is_empty());
    }
    let planned = LegacyImport::new(options()).plan(7, Err("is not JSON"), now());
    assert_eq!((planned.line, planned.name.as_str()), (7, "row 7"));
}

#[test]
fn each_status_of_a_recurring_job_has_its_fate() {
    let recurring = |status: &str| {
        plan(json!({"schedule_time": "@hourly", "schedule_enabled": true, "status": status}))
    };
    for status in ["pending", "scheduled", "completed", "running"] {
        let planned = recurring(status);
        assert_eq!((planned.fate, planned.paused), (Disposition::Interval, false), "{status}");
        assert_eq!(planned.notes.is_empty(), status != "running");
    }
    for status in ["paused", "failed"] {
        let planned = recurring(status);
        assert_eq!((planned.fate, planned.paused), (Disposition::Interval, true), "{status}");
        assert!(planned.notes[0].contains("resume"), "{:?}", planned.notes);
    }
    assert_eq!(recurring("cancelled").code, "cancelled");
    let planned =
        plan(json!({"schedule_time": "@hourly", "is_paused": true, "status": "scheduled"}));
    assert!(planned.paused);
}

#[test]
fn each_status_of_a_job_that_runs_once_has_its_fate() {
    for (status, fate, code) in [
        ("pending", Disposition::Once, "run_once"),
        ("scheduled", Disposition::Once, "run_once"),
        ("completed", Disposition::LeftOut, "already_done"),
        ("cancelled", Disposition::LeftOut, "cancelled"),
        ("running", Disposition::Person, "running_once"),
        ("failed", Disposition::Person, "failed_once"),
        ("paused", Disposition::Person, "paused_once"),
    ] {
        let planned = plan(json!({"status": status, "schedule_enabled": false}));
        assert_eq!((planned.fate, planned.code), (fate, code), "{status}");
    }
    let later = plan(json!({"status": "scheduled", "next_run_at": "2026-11-16T00:00:00Z"}));
    assert_eq!(later.document.unwrap()["schedule"]["at"], "2026-11-16T00:00:00.000000Z");
}

#[test]
fn a_schedule_that_is_switched_off_stays_off() {
    let off = json!({"schedule_time": "@hourly", "schedule_enabled": false, "status": "completed"});
    assert_eq!(plan(off.clone()).code, "schedule_off");
    let included = plan_with(LegacyOptions { include_disabled: true, ..options() }, off);
    assert!(included.paused && included.document.is_some());
    // The newer table never asks: a scheduled row with an interval runs.
    let newer = json!({"interval_minutes": 5, "schedule_enabled": false, "status": "scheduled"});
    assert_eq!(plan(newer).fate, Disposition::Interval);
}

#[test]
fn of_two_rows_with_one_name_the_second_needs_a_person() {
    let mut import = LegacyImport::new(options());
    let (first, second) = (row(json!({})), row(json!({"id": "77"})));
    assert_eq!(import.plan(1, Ok(first.as_object().unwrap()), now()).fate, Disposition::Once);
    let planned = import.plan(2, Ok(second.as_object().unwrap()), now());
    assert_eq!((planned.fate, planned.code), (Disposition::Person, "duplicate_name"));

    let mut import = LegacyImport::new(LegacyOptions { rename_duplicates: true, ..options() });
    import.plan(1, Ok(first.as_object().unwrap()), now());
    let planned = import.plan(2, Ok(second.as_object().unwrap()), now());
    assert_eq!(planned.document.unwrap()["configuration"], "77");
}

#[test]
fn a_name_is_not_taken_by_a_row_that_no_job_is_made_of() {
    let mut import = LegacyImport::new(options());
    let gone = row(json!({"status": "cancelled"}));
    import.plan(1, Ok(gone.as_object().unwrap()), now());
    let planned = import.plan(2, Ok(row(json!({})).as_object().unwrap()), now());
    assert_eq!(planned.fate, Disposition::Once);
}

#[test]
fn a_wait_before_retries_is_as_long_as_it_really_was() {
    let planned = plan(json!({"retry_backoff_seconds": 7200}));
    assert_eq!(planned.document.unwrap()["retry_backoff_seconds"], 3600);
    assert_eq!(planned.notes.len(), 1);
}
