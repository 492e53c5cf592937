//! Tests of import plans for rows of the predecessor's table.

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
fn regular_cron_becomes_an_interval_and_is_kept() {
    let planned = plan(json!({"schedule_time": "0 */6 * * *", "schedule_enabled": true,
                              "max_retries": 5, "metadata": {"category": "news"}}));
    assert_eq!((planned.disposition, planned.code), (Disposition::Interval, "converted"));
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
fn irregular_cron_stays_cron() {
    for (expression, code) in [
        ("0 9 * * 1-5", "not_even"),
        ("0 9,12 * * *", "not_even"),
        ("0 0 1 * *", "not_even"),
        ("CRON_TZ=America/Toronto 0 9 * * *", "zone"),
    ] {
        let planned = plan(json!({"schedule_time": expression}));
        assert_eq!((planned.disposition, planned.code), (Disposition::Cron, code), "{expression}");
        let document = planned.document.unwrap();
        assert_eq!(document["schedule"]["kind"], "cron");
        let zoned = expression.contains("TZ=");
        assert_eq!(document["timezone"] == "America/Toronto", zoned, "{document}");
        // An expression with a time zone is kept in the metadata of the job.
        assert_eq!(document["metadata"]["legacy_schedule_time"] == expression, zoned);
    }
}

#[test]
fn interval_of_a_row_wins_over_its_cron() {
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
fn unreadable_former_cron_is_kept_in_the_metadata() {
    let document = plan(json!({"interval_minutes": 30, "schedule_time": "nightly"})).document;
    assert_eq!(document.unwrap()["metadata"]["legacy_schedule_time"], "nightly");
}

#[test]
fn unreadable_rows_need_review() {
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
            (planned.disposition, planned.code),
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
fn recurring_rows_are_planned_by_status() {
    let recurring = |status: &str| {
        plan(json!({"schedule_time": "@hourly", "schedule_enabled": true, "status": status}))
    };
    for status in ["pending", "scheduled", "completed", "running"] {
        let planned = recurring(status);
        assert_eq!(
            (planned.disposition, planned.paused),
            (Disposition::Interval, false),
            "{status}"
        );
        assert_eq!(planned.notes.is_empty(), status != "running");
    }
    for status in ["paused", "failed"] {
        let planned = recurring(status);
        assert_eq!(
            (planned.disposition, planned.paused),
            (Disposition::Interval, true),
            "{status}"
        );
        assert!(planned.notes[0].contains("resume"), "{:?}", planned.notes);
    }
    assert_eq!(recurring("cancelled").code, "cancelled");
    let planned =
        plan(json!({"schedule_time": "@hourly", "is_paused": true, "status": "scheduled"}));
    assert!(planned.paused);
}

#[test]
fn rows_that_run_once_are_planned_by_status() {
    for (status, disposition, code) in [
        ("pending", Disposition::Once, "run_once"),
        ("scheduled", Disposition::Once, "run_once"),
        ("completed", Disposition::LeftOut, "already_done"),
        ("cancelled", Disposition::LeftOut, "cancelled"),
        ("running", Disposition::Person, "running_once"),
        ("failed", Disposition::Person, "failed_once"),
        ("paused", Disposition::Person, "paused_once"),
    ] {
        let planned = plan(json!({"status": status, "schedule_enabled": false}));
        assert_eq!((planned.disposition, planned.code), (disposition, code), "{status}");
    }
    let later = plan(json!({"status": "scheduled", "next_run_at": "2026-11-16T00:00:00Z"}));
    assert_eq!(later.document.unwrap()["schedule"]["at"], "2026-11-16T00:00:00.000000Z");
}

#[test]
fn disabled_schedules_stay_disabled() {
    let off = json!({"schedule_time": "@hourly", "schedule_enabled": false, "status": "completed"});
    assert_eq!(plan(off.clone()).code, "schedule_off");
    let included = plan_with(LegacyOptions { include_disabled: true, ..options() }, off);
    assert!(included.paused && included.document.is_some());
    // A row with the status `scheduled` and an interval runs, even if `schedule_enabled` is false.
    let newer = json!({"interval_minutes": 5, "schedule_enabled": false, "status": "scheduled"});
    assert_eq!(plan(newer).disposition, Disposition::Interval);
}

#[test]
fn second_row_with_the_same_name_needs_review() {
    let mut import = LegacyImport::new(options());
    let (first, second) = (row(json!({})), row(json!({"id": "77"})));
    assert_eq!(
        import.plan(1, Ok(first.as_object().unwrap()), now()).disposition,
        Disposition::Once
    );
    let planned = import.plan(2, Ok(second.as_object().unwrap()), now());
    assert_eq!((planned.disposition, planned.code), (Disposition::Person, "duplicate_name"));

    let mut import = LegacyImport::new(LegacyOptions { rename_duplicates: true, ..options() });
    import.plan(1, Ok(first.as_object().unwrap()), now());
    let planned = import.plan(2, Ok(second.as_object().unwrap()), now());
    assert_eq!(planned.document.unwrap()["configuration"], "77");
}

#[test]
fn rows_without_a_job_do_not_take_a_name() {
    let mut import = LegacyImport::new(options());
    let cancelled = row(json!({"status": "cancelled"}));
    import.plan(1, Ok(cancelled.as_object().unwrap()), now());
    let planned = import.plan(2, Ok(row(json!({})).as_object().unwrap()), now());
    assert_eq!(planned.disposition, Disposition::Once);
}

#[test]
fn retry_delays_are_limited_as_in_the_predecessor() {
    let planned = plan(json!({"retry_backoff_seconds": 7200}));
    assert_eq!(planned.document.unwrap()["retry_backoff_seconds"], 3600);
    assert_eq!(planned.notes.len(), 1);
}
