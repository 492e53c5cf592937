//! Tests that parse job documents.

use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::order::Lane;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::schedule::{Interval, Once};
use evenkeel_core::{Schedule, Span, TenantNo};
use serde_json::json;

use super::*;

mod bounds;
mod dedup;
mod faults;
mod properties;
pub(super) mod samples;
mod schedules;

struct Executors;

impl ExecutorCheck for Executors {
    fn check(
        &self,
        _tenant: TenantNo,
        kind: &str,
        config: &Value,
        _payload: &Value,
    ) -> Result<(), (String, String)> {
        if kind == "http" && config.get("url").is_none() {
            return Err(("executor_config.url".into(), "is missing".into()));
        }
        Ok(())
    }

    fn kinds(&self) -> Vec<String> {
        vec!["http".into(), "noop".into()]
    }

    fn catalog(&self) -> ExecutorCatalog {
        evenkeel_executors::CATALOG
    }
}

fn read(document: &Value) -> Result<JobSpec, Vec<Fault>> {
    read_job(document, TenantNo(1), &Executors)
}

/// Returns a job document with the executor `noop` and additional fields.
fn noop(more: Value) -> Value {
    let mut document = json!({"executor_type": "noop"});
    let (Value::Object(fields), Value::Object(more)) = (&mut document, more) else { panic!() };
    fields.extend(more);
    document
}

fn schedule(more: Value) -> Schedule {
    read(&noop(more)).unwrap().definition.schedule
}

fn faulty_fields(document: &Value) -> Vec<String> {
    read(document).unwrap_err().into_iter().map(|fault| fault.field).collect()
}

fn message(document: &Value) -> String {
    let faults = read(document).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].message.clone()
}

fn every(secs: u64) -> Schedule {
    Schedule::Interval(Interval::new(Span::from_secs(secs), None).unwrap())
}

fn once() -> Schedule {
    Schedule::Once(Once::NOW)
}

#[test]
fn executor_must_be_named_known_and_valid() {
    assert_eq!(faulty_fields(&json!({"url": "https://example.com/"})), ["executor_type"]);
    assert!(message(&json!({})).contains("http, noop"));
    assert_eq!(faulty_fields(&json!({"executor_type": "carrier-pigeon"})), ["executor_type"]);
    assert!(message(&json!({"executor_type": "shell"})).contains("off unless"));
    assert_eq!(faulty_fields(&json!({"executor_type": 7})), ["executor_type"]);
    assert_eq!(faulty_fields(&json!({"executor_type": "http"})), ["executor_config.url"]);
    assert_eq!(faulty_fields(&noop(json!({"executor_config": "x"}))), ["executor_config"]);
    let callback = json!({"executor_type": "http_callback", "executor_config": {"url": "x"}});
    assert_eq!(read(&callback).unwrap().definition.executor.kind, "http");
}

#[test]
fn policies_are_read() {
    let definition = read(&noop(json!({
        "max_retries": 5, "retry_backoff": "fixed", "retry_backoff_seconds": 7200,
        "retry_jitter_percent": 0, "timeout_sec": 10, "max_allowed_duration": "1h",
        "priority": 100, "lane": "batch", "pool": "eu.west-1", "misfire": "all",
        "misfire_after": "5m", "overlap": "replace", "max_crashes": 0, "interval_minutes": 30,
        "on_exhausted": "stop", "payload": [1, {"a": null}], "max_expected_duration": "10m",
        "average_duration_override": "7m", "avoid_blackout": true,
        "blackout_periods": [{"start": "22:00", "end": "06:00:30"}],
        "dont_run_on_nodes": ["crawler-3", "crawler-4", "crawler-3"],
    })))
    .unwrap()
    .definition;
    assert_eq!(definition.retry.max_retries, 5);
    assert_eq!(definition.retry.backoff, Backoff::Fixed { delay: Span::from_secs(7200) });
    assert_eq!(definition.retry.jitter, Jitter::None);
    assert_eq!(definition.timeout, Span::from_secs(10));
    assert_eq!(definition.max_allowed_duration, Some(Span::from_secs(3600)));
    assert_eq!((definition.priority.get(), definition.lane), (100, Lane::Batch));
    assert_eq!(definition.pool, "eu.west-1");
    assert_eq!(definition.misfire, MisfirePolicy::All);
    assert_eq!(definition.misfire_after, Span::from_secs(300));
    assert_eq!(definition.max_crashes, 0);
    assert_eq!(definition.overlap, OverlapPolicy::Replace);
    assert_eq!(definition.max_expected_duration, Some(Span::from_secs(600)));
    assert_eq!(definition.average_override, Some(Span::from_secs(420)));
    assert_eq!(definition.dont_run_on_nodes, ["crawler-3", "crawler-4"]);
    assert_eq!(definition.blackout_periods[0].end, jiff::civil::time(6, 0, 30, 0));
    assert!(definition.avoid_blackout);
    assert_eq!(definition.payload, json!([1, {"a": null}]));
}

#[test]
fn simple_fields_are_written_as_they_were_read() {
    for (name, value) in job_fields::samples() {
        // The job has a blackout, so that every simple job field has an effect.
        let blackouts = json!([{"start": "22:00", "end": "06:00"}]);
        let more = json!({"schedule": "0 9 * * *", "blackout_periods": blackouts, name: value});
        let spec = read(&noop(more)).unwrap();
        let document = crate::document_of(&spec.about, &spec.definition, Executors.catalog());
        assert_eq!(document.get(name), Some(&value), "{name}");
    }
}

#[test]
fn simple_fields_refuse_values_of_another_type() {
    for (name, _) in job_fields::samples() {
        let faulty = faulty_fields(&noop(json!({name: [[]]})));
        assert!(faulty.iter().all(|field| field.starts_with(name)), "{name}: {faulty:?}");
    }
}

#[test]
fn absent_fields_have_defaults() {
    let spec = read(&noop(json!({"interval_minutes": 30}))).unwrap();
    assert_eq!(spec.definition, Definition::noop(every(1800)));
    assert_eq!(spec.about, About::default());
    let empty = noop(json!({"interval_minutes": 30, "metadata": {}, "executor_config": {}}));
    assert_eq!(read(&empty).unwrap(), spec);
}

#[test]
fn every_bound_is_enforced() {
    for (document, field) in [
        (json!({"name": ""}), "name"),
        (json!({"name": "  "}), "name"),
        (json!({"name": "a\nb"}), "name"),
        (json!({"name": "x".repeat(256)}), "name"),
        (json!({"name": 5}), "name"),
        (json!({"source_id": "\u{7}"}), "source_id"),
        (json!({"description": "x".repeat(4097)}), "description"),
        (json!({"url": "example.com"}), "url"),
        (json!({"url": "ftp://example.com"}), "url"),
        (json!({"url": "https://"}), "url"),
        (json!({"url": "https://user:secret@example.com"}), "url"),
        (json!({"url": "https://exa mple.com"}), "url"),
        (json!({"metadata": []}), "metadata"),
        (json!({"metadata": {"x": "y".repeat(65 * 1024)}}), "metadata"),
        (json!({"payload": "y".repeat(256 * 1024)}), "payload"),
        (json!({"executor_config": {"x": "y".repeat(65 * 1024)}}), "executor_config"),
        (json!({"max_retries": 1001}), "max_retries"),
        (json!({"max_retries": -1}), "max_retries"),
        (json!({"retry_backoff": "linear"}), "retry_backoff"),
        (json!({"retry_backoff": "stages", "retry_backoff_seconds": 60}), "retry_backoff_seconds"),
        (json!({"retry_backoff_seconds": 3601}), "retry_backoff_seconds"),
        (json!({"retry_jitter_percent": 101}), "retry_jitter_percent"),
        (json!({"timeout_sec": 0}), "timeout_sec"),
        (json!({"max_allowed_duration": "1ms"}), "max_allowed_duration"),
        (json!({"max_allowed_duration": 60}), "max_allowed_duration"),
        (json!({"priority": 101}), "priority"),
        (json!({"lane": "fast"}), "lane"),
        (json!({"pool": "a b"}), "pool"),
        (json!({"pool": ""}), "pool"),
        (json!({"pool": "~a"}), "pool"),
        (json!({"concurrency_key": ""}), "concurrency_key"),
        (json!({"concurrency_key": "k".repeat(256)}), "concurrency_key"),
        (json!({"concurrency_key": 7}), "concurrency_key"),
        (json!({"concurrency_key": "a", "concurrency_limit": 0}), "concurrency_limit"),
        (json!({"concurrency_key": "a", "concurrency_limit": 10_001}), "concurrency_limit"),
        (json!({"concurrency_limit": 3}), "concurrency_limit"),
        (json!({"misfire": "never"}), "misfire"),
        (json!({"misfire_after": "0s"}), "misfire_after"),
        (json!({"overlap": true}), "overlap"),
        (json!({"on_lost_worker": "cry"}), "on_lost_worker"),
        (json!({"max_crashes": 1001}), "max_crashes"),
        (json!({"on_exhausted": "panic"}), "on_exhausted"),
        (json!({"max_expected_duration": "1ms"}), "max_expected_duration"),
        (json!({"average_duration_override": "P1D"}), "average_duration_override"),
        (json!({"dont_run_on_nodes": "crawler-3"}), "dont_run_on_nodes"),
        (json!({"dont_run_on_nodes": vec!["x"; 101]}), "dont_run_on_nodes"),
        (json!({"dont_run_on_nodes": ["a", " "]}), "dont_run_on_nodes[1]"),
        (json!({"dont_run_on_nodes": ["a\nb"]}), "dont_run_on_nodes[0]"),
        (json!({"dont_run_on_nodes": [7]}), "dont_run_on_nodes[0]"),
        (json!({"avoid_blackout": "yes"}), "avoid_blackout"),
        (json!({"blackout_periods": {}}), "blackout_periods"),
        (json!({"blackout_periods": [{"start": "22:00"}]}), "blackout_periods[0]"),
        (json!({"blackout_periods": [{"start": "22:00", "end": "25:00"}]}), "blackout_periods[0]"),
        (json!({"blackout_periods": [{"start": "9:00", "end": "10:00"}]}), "blackout_periods[0]"),
        (
            json!({"blackout_periods": [{"start": "09:00", "end": "10:00", "x": 1}]}),
            "blackout_periods[0]",
        ),
        (json!({"blackout_periods": [{"start": "09:00", "end": "09:00"}]}), "blackout_periods"),
        (
            json!({"blackout_periods": [{"start": "00:00", "end": "12:00"},
                                     {"start": "12:00", "end": "24:00"}]}),
            "blackout_periods",
        ),
    ] {
        assert_eq!(faulty_fields(&noop(document.clone())), [field], "{document}");
    }
}

#[test]
fn unknown_fields_are_refused() {
    let fault = |field: &str| message(&noop(json!({field: "x"})));
    assert_eq!(fault("nmae"), "is not known here; did you mean name?");
    assert!(fault("colour").contains("the fields are average_duration_override"));
    assert_eq!(faulty_fields(&noop(json!({"enabled": "no"}))), ["enabled"]);
    assert!(fault("condition").contains("set by the server"));
    assert!(fault("next_run_at").contains("set by the server"));
    assert_eq!(
        faulty_fields(&noop(json!({"schedule": {"kind": "once", "every": "1h"}}))),
        ["schedule.every"]
    );
}

#[test]
fn nul_characters_are_refused_at_any_depth() {
    for document in [
        json!({"payload": {"deep": ["a\0"]}}),
        json!({"payload": {"a\0": 1}}),
        json!({"metadata": {"a": {"b": "\0"}}}),
        json!({"description": "\0"}),
    ] {
        let faults = read(&noop(document.clone())).unwrap_err();
        assert!(faults.iter().any(|fault| fault.message.contains("NUL")), "{document}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert!(read(&noop(json!({"payload": deep(limits::DEPTH_MAX - 1)}))).is_ok());
    assert_eq!(faulty_fields(&noop(json!({"payload": deep(limits::DEPTH_MAX)}))), ["payload"]);
}

#[test]
fn all_faults_are_reported_at_once() {
    let document = json!({
        "name": "", "schedule": "never", "executor_type": "pigeon", "priority": 500, "typo": 1,
    });
    assert_eq!(faulty_fields(&document), ["name", "schedule", "executor_type", "priority", "typo"]);
}

#[test]
fn documents_that_are_no_objects_are_refused() {
    for document in [json!(null), json!([]), json!("job"), json!(1)] {
        assert_eq!(faulty_fields(&document), [""]);
    }
}
