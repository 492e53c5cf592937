//! Tests of changes of jobs.

use evenkeel_core::on_failure::OnFailure;
use evenkeel_core::retry::{Backoff, Jitter};
use evenkeel_core::schedule::{CalendarInterval, CronSchedule, Interval};
use evenkeel_core::{JobId, Schedule, Span};
use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

struct Executors;

impl ExecutorCheck for Executors {
    fn check(
        &self,
        _: TenantNo,
        kind: &str,
        config: &Value,
        _: &Value,
    ) -> Result<(), (String, String)> {
        match (kind, config.get("url")) {
            ("http", None) => Err(("executor_config.url".into(), "is missing".into())),
            _ => Ok(()),
        }
    }

    fn kinds(&self) -> Vec<String> {
        ["crawl", "http", "noop"].map(String::from).to_vec()
    }

    fn catalog(&self) -> ExecutorCatalog {
        evenkeel_executors::CATALOG
    }
}

/// Returns the job that `document` describes, created at [`NOW`] and never run.
fn job(document: Value) -> Job {
    let spec = read_job(&document, TenantNo(1), &Executors).unwrap();
    let id = JobId::new(NOW, [7; 10]);
    let new =
        crate::jobs::prepare_job(spec, id, NOW, |job, after| job.timetable().first_after(after))
            .unwrap();
    crate::jobs::new_job(new, (evenkeel_core::JobNo(1), 1), TenantNo(1), NOW)
}

fn noop(more: Value) -> Job {
    let mut document = json!({"executor_type": "noop"});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    job(document)
}

/// Returns roughly the job that a client sees: its JSON document, the short forms of the schedule,
/// and some fields that only the server sets.
fn seen(job: &Job) -> Object {
    let mut seen = document_of(&job.about, &job.definition, Executors.catalog());
    let null = |fields: &[&str], seen: &mut Object| {
        fields.iter().for_each(|field| drop(seen.insert((*field).into(), Value::Null)));
    };
    null(&overlay::SCHEDULE_FIELDS[1..], &mut seen);
    null(&["start_at", "end_at", "max_runs", "exact", "description", "name"], &mut seen);
    seen.extend(document_of(&job.about, &job.definition, Executors.catalog()));
    seen.insert("tz".into(), job.definition.timezone.name().into());
    seen.insert("generation".into(), job.generation.into());
    seen.insert("status".into(), "scheduled".into());
    seen.insert("schedule_enabled".into(), true.into());
    match &job.definition.schedule {
        Schedule::Interval(every) => {
            let minutes = every.every().as_micros() / 60_000_000;
            let (number, unit) = if minutes.is_multiple_of(60) {
                (minutes / 60, "hours")
            } else {
                (minutes, "minutes")
            };
            seen.insert("interval_minutes".into(), number.into());
            seen.insert("interval_type".into(), unit.into());
        }
        Schedule::Cron(by) => {
            for field in ["cron_expression", "cron_schedule", "schedule_time"] {
                seen.insert(field.into(), by.cron.expression().into());
            }
            seen.insert("cron_max_schedule_duration".into(), json!(by.max_duration));
            seen.insert("exact".into(), by.cron.is_exact().into());
        }
        Schedule::Periodic(periodic) => {
            seen.insert("scheduling_period".into(), json!(periodic.period()));
            seen.insert("cooldown_duration".into(), json!(periodic.cooldown()));
        }
        _ => {}
    }
    seen
}

/// Returns a time ten minutes after [`NOW`], so that a new next run time differs from the old one.
fn later() -> Timestamp {
    NOW.saturating_add(Span::from_secs(600))
}

fn change(job: &Job, mode: EditMode, sent: Value) -> Result<Option<JobChange>, Vec<Fault>> {
    let read = read_change(job, &seen(job), &sent, mode, later(), &Executors)?;
    let Some(JobEdit { mut change, to_place, .. }) = read else { return Ok(None) };
    if let Some(new) = to_place {
        let choose = |after| new.timetable().first_after(after);
        change.next_at = Some(new_next_time(job, &new, later(), choose)?);
    }
    Ok(Some(change))
}

fn put(job: &Job, sent: Value) -> JobChange {
    change(job, EditMode::Put, sent).unwrap().expect("something changes")
}

fn patch(job: &Job, sent: Value) -> JobChange {
    change(job, EditMode::Patch, sent).unwrap().expect("something changes")
}

fn faulty_fields(job: &Job, mode: EditMode, sent: Value) -> Vec<String> {
    change(job, mode, sent).unwrap_err().into_iter().map(|fault| fault.field).collect()
}

fn every(secs: u64) -> Schedule {
    Schedule::Interval(Interval::new(Span::from_secs(secs), None).unwrap())
}

#[test]
fn sending_back_the_shown_job_is_no_change() {
    for document in [
        json!({"schedule": "@every 30m", "name": "a", "metadata": {"a": [1, 2.5]}}),
        json!({"cron_schedule": "H 9 * * *", "cron_max_schedule_duration": "6h"}),
        json!({"cron_expression": "0 9 * * *", "exact": false, "tz": "America/Toronto"}),
        json!({"interval_minutes": 360, "schedule_time": "0 */6 * * *"}),
        json!({"scheduling_period": "24h"}),
        json!({"schedule": {"kind": "periodic", "period": "24h", "cooldown": "1h"}}),
        json!({"schedule": "P1M"}),
        json!({"schedule": "R5/2027-03-01T00:00:00Z/PT30M"}),
        json!({"schedule": {"kind": "once", "at": "2027-03-01T00:00:00Z"}}),
        json!({}),
    ] {
        let job = noop(document.clone());
        let shown = Value::Object(seen(&job));
        for mode in [EditMode::Put, EditMode::Patch] {
            assert_eq!(change(&job, mode, shown.clone()), Ok(None), "{document}");
        }
    }
}

#[test]
fn former_cron_stays_while_there_is_an_interval() {
    let job = noop(json!({"schedule": {"kind": "interval", "every": "6h",
                          "anchor": "2027-03-01T00:00:00Z"}, "schedule_time": "0 */6 * * *"}));
    let former = |changed: JobChange| changed.about.unwrap_or_default().schedule_time;
    let described = patch(&job, json!({"description": "x"}));
    assert_eq!((described.next_at, &described.definition), (None, &None));
    assert_eq!(former(described).as_deref(), Some("0 */6 * * *"));
    let slower = patch(&job, json!({"interval_minutes": 12, "interval_type": "hours"}));
    assert_eq!(slower.definition.unwrap().schedule, every(12 * 3600));
    assert_eq!(slower.about, None, "nothing else is written");
    assert_eq!(former(patch(&job, json!({"cron_expression": "0 9 * * 1-5"}))), None);
    assert_eq!(former(patch(&job, json!({"schedule": "0 9 * * 1-5"}))), None);
    assert_eq!(former(patch(&job, json!({"schedule_time": null}))), None);
}

#[test]
fn changing_retries_keeps_the_next_time() {
    let job = noop(json!({"interval_minutes": 30, "name": "news"}));
    let changed = put(&job, json!({"max_retries": 5, "retry_backoff_seconds": 120}));
    assert_eq!((changed.next_at, changed.about), (None, None));
    let definition = changed.definition.unwrap();
    assert_eq!(definition.retry.max_retries, 5);
    assert_eq!(definition.schedule, job.definition.schedule);
    let expected = Backoff::Exponential { base: Span::from_secs(120), cap: Span::from_secs(3600) };
    assert_eq!(
        (definition.retry.backoff, definition.retry.jitter),
        (expected, job.definition.retry.jitter)
    );
}

#[test]
fn server_fields_are_ignored_by_put_and_refused_by_patch() {
    let job = noop(json!({"schedule": "30m"}));
    assert_eq!(change(&job, EditMode::Put, json!({"generation": 9, "status": "paused"})), Ok(None));
    let sent = json!({"generation": 9, "status": "scheduled", "lock_token": "x"});
    assert_eq!(faulty_fields(&job, EditMode::Patch, sent), ["generation", "lock_token"]);
}

#[test]
fn unknown_fields_are_refused_with_a_hint() {
    let job = noop(json!({"schedule": "30m"}));
    for mode in [EditMode::Put, EditMode::Patch] {
        let faults = change(&job, mode, json!({"priorty": 5})).unwrap_err();
        assert!(faults[0].message.contains("did you mean priority?"), "{faults:?}");
        assert_eq!(faulty_fields(&job, mode, json!({"priorty": null})), ["priorty"]);
    }
    assert_eq!(faulty_fields(&job, EditMode::Patch, json!([1])), [""]);
    assert_eq!(faulty_fields(&job, EditMode::Patch, json!({"priority": 101})), ["priority"]);
}

#[test]
fn short_forms_replace_the_schedule() {
    let hourly = noop(json!({"schedule": "1h"}));
    let interval = put(&hourly, json!({"interval_minutes": 30, "interval_type": "minutes"}));
    assert_eq!(interval.definition.unwrap().schedule, every(1800));
    assert_eq!(interval.next_at, Some(Some(later().saturating_add(Span::from_secs(1800)))));
    let cron = patch(&hourly, json!({"cron_expression": "0 9 * * *"}));
    assert!(matches!(cron.definition.unwrap().schedule, Schedule::Cron(_)));
    let periodic = patch(&hourly, json!({"scheduling_period": "24h", "cooldown_duration": "1h"}));
    assert!(matches!(periodic.definition.unwrap().schedule, Schedule::Periodic(_)));
    let daily = noop(json!({"cron_schedule": "0 9 * * *"}));
    let shown_and_edited = {
        let mut shown = seen(&daily);
        shown.insert("interval_minutes".into(), 45.into());
        shown.insert("interval_type".into(), "minutes".into());
        Value::Object(shown)
    };
    assert_eq!(put(&daily, shown_and_edited).definition.unwrap().schedule, every(2700));
}

#[test]
fn ambiguous_interval_unit_must_be_given() {
    let hourly = noop(json!({"schedule": "2h"}));
    assert_eq!(
        faulty_fields(&hourly, EditMode::Patch, json!({"interval_minutes": 90})),
        ["interval_type"]
    );
    let by_unit = patch(&hourly, json!({"interval_type": "days"}));
    assert_eq!(by_unit.definition.unwrap().schedule, every(2 * 86_400));
    let half = noop(json!({"schedule": "30m"}));
    let minutes = patch(&half, json!({"interval_minutes": 45}));
    assert_eq!(minutes.definition.unwrap().schedule, every(2700));
}

#[test]
fn limits_and_cooldowns_change_alone() {
    let daily = noop(json!({"cron_schedule": "0 9 * * *", "cron_max_schedule_duration": "6h"}));
    let limit = |job: &Job| match &job.definition.schedule {
        Schedule::Cron(CronSchedule { max_duration, .. }) => *max_duration,
        other => panic!("{other:?}"),
    };
    let of = |change: JobChange| Job { definition: change.definition.unwrap(), ..daily.clone() };
    let longer = patch(&daily, json!({"cron_max_schedule_duration": "7h"}));
    assert_eq!(longer.next_at, None);
    assert_eq!(limit(&of(longer)), Some(Span::from_secs(7 * 3600)));
    assert_eq!(limit(&of(patch(&daily, json!({"cron_max_schedule_duration": null})))), None);
    let moved = of(patch(&daily, json!({"cron_expression": "0 10 * * *"})));
    assert_eq!(limit(&moved), limit(&daily));
    assert_eq!(moved.definition.retry, daily.definition.retry);
    let stale = noop(json!({"scheduling_period": "24h", "cooldown_duration": "1h"}));
    let period = patch(&stale, json!({"scheduling_period": "48h"})).definition.unwrap().schedule;
    let Schedule::Periodic(period) = period else { panic!("{period:?}") };
    assert_eq!(period.cooldown(), Span::from_secs(3600));
}

#[test]
fn schedule_cannot_be_removed_without_a_replacement() {
    let daily = noop(json!({"cron_schedule": "0 9 * * *"}));
    for field in ["schedule", "cron_schedule"] {
        assert_eq!(faulty_fields(&daily, EditMode::Patch, json!({field: null})), [field]);
    }
    let now = put(&daily, json!({"schedule_enabled": false}));
    assert_eq!(now.next_at, Some(Some(later())));
}

#[test]
fn changes_that_keep_the_times_keep_the_next_time() {
    let job = noop(json!({"schedule": "30m"}));
    for sent in [
        json!({"schedule": {"tolerance": "5m"}}),
        json!({"timezone": "Europe/Berlin"}),
        json!({"end_at": "2028-01-01T00:00:00Z"}),
        json!({"blackout_periods": [{"start": "22:00", "end": "23:00"}]}),
        json!({"priority": 7}),
    ] {
        assert_eq!(patch(&job, sent.clone()).next_at, None, "{sent}");
    }
    let zoned = noop(json!({"schedule": "0 9 * * *"}));
    assert!(matches!(patch(&zoned, json!({"tz": "Europe/Berlin"})).next_at, Some(Some(_))));
    let over = patch(&job, json!({"end_at": "2027-01-15T08:05:00Z"}));
    assert_eq!(over.next_at, Some(None), "its end has passed");
}

#[test]
fn paused_job_gets_its_next_time_when_resumed() {
    let job = Job {
        state: evenkeel_store::JobState::Paused,
        next_at: None,
        ..noop(json!({"schedule": "30m"}))
    };
    assert_eq!(patch(&job, json!({"schedule": "1h"})).next_at, Some(None));
    assert_eq!(patch(&job, json!({"priority": 7})).next_at, None);
}

#[test]
fn patch_merges_objects_and_put_replaces_them() {
    let job = noop(json!({"metadata": {"a": 1, "b": {"c": 2, "d": 3}}}));
    let sent = json!({"metadata": {"b": {"c": null, "e": 5}}});
    let metadata = |change: JobChange| change.about.unwrap().metadata;
    assert_eq!(metadata(patch(&job, sent)), json!({"a": 1, "b": {"d": 3, "e": 5}}));
    assert_eq!(metadata(put(&job, json!({"metadata": {"z": 1}}))), json!({"z": 1}));
    assert_eq!(metadata(patch(&job, json!({"metadata": null}))), Value::Null);
    let interval = patch(&noop(json!({"schedule": "30m"})), json!({"schedule": {"every": "1h"}}));
    assert_eq!(interval.definition.unwrap().schedule, every(3600));
    let cron = json!({"schedule": {"kind": "cron", "expression": "@daily"}});
    assert!(patch(&noop(json!({"schedule": "30m"})), cron).definition.is_some());
}

#[test]
fn crawl_start_follows_the_url_of_the_job() {
    let crawl = job(json!({"url": "https://example.com/", "schedule": "1d"}));
    let moved = patch(&crawl, json!({"url": "https://example.org/"}));
    assert_eq!(moved.definition.unwrap().executor.config["url"], "https://example.org/");
    let pinned = job(json!({"url": "https://example.com/", "schedule": "1d",
        "executor_config": {"url": "https://example.com/news"}}));
    let moved = patch(&pinned, json!({"url": "https://example.org/"}));
    assert_eq!(moved.definition, None);
}

#[test]
fn job_with_a_disabled_executor_can_be_changed() {
    let mut job = noop(json!({"schedule": "30m"}));
    job.definition.executor.kind = "shell".into();
    assert!(patch(&job, json!({"description": "old"})).about.is_some());
    assert_eq!(
        faulty_fields(&noop(json!({})), EditMode::Patch, json!({"executor_type": "shell"})),
        ["executor_type"]
    );
}

#[test]
fn calendar_interval_is_anchored_at_its_change() {
    let monthly = noop(json!({"schedule": "P1M"}));
    let changed = patch(&monthly, json!({"schedule": "P2M"})).definition.unwrap().schedule;
    let Schedule::Calendar(CalendarInterval { anchor, .. }) = changed else {
        panic!("{changed:?}")
    };
    assert_eq!(anchor, Some(later()));
}

#[test]
fn placement_settings_are_dropped_with_a_fixed_schedule() {
    let night = json!({"start": "22:00", "end": "06:00"});
    let job = noop(json!({"schedule": "24h", "exact": true, "prefer_window": night, "cost": "5m"}));
    let slower = patch(&job, json!({"schedule": "48h"})).definition.unwrap();
    assert_eq!(slower.prefer_window, job.definition.prefer_window);
    assert!(matches!(slower.schedule, Schedule::Interval(every) if every.is_exact()));
    for sent in [
        json!({"schedule": "0 9 * * *"}),
        json!({"schedule": "P1D"}),
        json!({"scheduling_period": "24h"}),
        json!({"schedule": "R/2026-12-01T00:00:00Z/PT24H"}),
        json!({"schedule": {"kind": "interval", "anchor": "2026-12-01T00:00:00Z"}}),
        json!({"schedule_enabled": false}),
    ] {
        let other = patch(&job, sent.clone()).definition.unwrap();
        assert_eq!(other.prefer_window, None, "{sent}");
        assert_eq!(other.cost, job.definition.cost, "{sent}");
    }
    let spread = noop(json!({"schedule": "0 9 * * *", "exact": false}));
    let daily = patch(&spread, json!({"schedule": "24h"})).definition.unwrap();
    assert_eq!(daily.schedule, every(86_400));
    assert_eq!(faulty_fields(&job, EditMode::Patch, json!({"start_at": NOW})), ["prefer_window"]);
}

#[test]
fn preferred_hours_move_only_jobs_outside_of_them() {
    let job = noop(json!({"schedule": "24h"}));
    let next = job.next_at.unwrap();
    let zone = evenkeel_core::Zone::default();
    let hour: u32 = zone.local_text(next)[11..13].parse().unwrap();
    let window = |from: u32| {
        let edge = |hour: u32| format!("{:02}:00", hour % 24);
        json!({"prefer_window": {"start": edge(from), "end": edge(from + 1)}})
    };
    assert_eq!(patch(&job, window(hour)).next_at, None);
    assert!(patch(&job, window(hour + 3)).next_at.is_some());
    let exact = patch(&job, json!({"exact": true}));
    assert!(exact.next_at.is_some(), "it is not where its slot begins");
}

#[test]
fn preset_replaces_all_retry_fields() {
    let job = noop(json!({"interval_minutes": 30, "max_retries": 7, "retry_jitter": "additive"}));
    let retry = |change: Value| patch(&job, change).definition.unwrap().retry;
    assert_eq!(retry(json!({"retry_policy": "002"})), RetryPolicy::queue());
    let fewer = retry(json!({"retry_policy": "cron_service", "max_retries": 1}));
    assert_eq!(fewer, RetryPolicy { max_retries: 1, ..RetryPolicy::cron_service() });
    let old = &job.definition.retry;
    let fixed = retry(json!({"retry_backoff": "fixed"}));
    let backoff = Backoff::Fixed { delay: Span::from_secs(60) };
    assert_eq!(fixed, RetryPolicy { backoff, ..old.clone() });
    let stages = retry(json!({"retry_stages": ["1m", "1h"]}));
    let delays = vec![Span::from_secs(60), Span::from_secs(3600)];
    assert_eq!(stages, RetryPolicy { backoff: Backoff::Stages { delays }, ..old.clone() });
    let capped = retry(json!({"retry_backoff_cap_seconds": 600}));
    let backoff = Backoff::Exponential { base: Span::from_secs(60), cap: Span::from_secs(600) };
    assert_eq!(capped, RetryPolicy { backoff, ..old.clone() });
    assert_eq!(retry(json!({"retry_jitter": "none"})).jitter, Jitter::None);
    let even = noop(json!({"interval_minutes": 30, "retry_policy": "interval"}));
    let jitter = patch(&even, json!({"retry_jitter": "additive"})).definition.unwrap().retry.jitter;
    assert_eq!(jitter, Jitter::Additive { percent: 20 });
}

#[test]
fn removing_stages_removes_all_their_settings() {
    let staged = json!({"interval_minutes": 30, "retry_stages": ["90s", "1h"], "max_retries": 4});
    let job = noop(staged);
    let retry = |change: Value| patch(&job, change).definition.unwrap().retry;
    let standard = RetryPolicy::standard().backoff;
    let cleared = retry(json!({"retry_stages": null}));
    assert_eq!((cleared.backoff, cleared.max_retries), (standard, 4));
    let fixed = retry(json!({"retry_stages": null, "retry_backoff": "fixed"}));
    assert_eq!(fixed.backoff, Backoff::Fixed { delay: Span::from_secs(90) });
    let slower = retry(json!({"retry_stages": null, "retry_backoff_seconds": 120}));
    assert!(
        matches!(slower.backoff, Backoff::Exponential { base, .. } if base == Span::from_secs(120)),
        "{slower:?}"
    );
    let plain = noop(json!({"interval_minutes": 30, "retry_backoff_seconds": 7}));
    let seven = patch(&plain, json!({"retry_stages": null, "max_retries": 1}));
    let Backoff::Exponential { base, .. } = seven.definition.unwrap().retry.backoff else {
        panic!("it has no stages")
    };
    assert_eq!(base, Span::from_secs(7), "there was nothing to take away");
}

#[test]
fn another_failure_action_drops_the_old_settings() {
    let pause = json!({"action": "pause", "after": 5, "note": "x"});
    let job = noop(json!({"interval_minutes": 30, "on_failure": pause}));
    let changed = |change: Value| patch(&job, change).definition.unwrap().on_failure;
    let dead = json!({"on_failure": {"action": "dead_letter"}});
    assert_eq!(changed(dead), OnFailure::DeadLetter);
    let sooner = changed(json!({"on_failure": {"after": 2}}));
    assert_eq!(sooner, OnFailure::Pause { after: 2, note: Some("x".into()) });
    assert_eq!(changed(json!({"on_failure": null})), OnFailure::None);
}

#[test]
fn stored_values_without_effect_do_not_block_a_change() {
    let mut old = noop(json!({"interval_minutes": 30}));
    old.definition.dst.gap = evenkeel_core::schedule::Gap::Skip;
    old.definition.avoid_blackout = true;
    let changed = patch(&old, json!({"priority": 7})).definition.unwrap();
    assert_eq!((changed.priority.get(), changed.avoid_blackout), (7, false));
    let refused = change(&old, EditMode::Patch, json!({"dst_overlap": "both"})).unwrap_err();
    assert_eq!(refused[0].field, "dst_overlap");
}
