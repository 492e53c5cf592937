//! Converts a stored job to a JSON document.

use evenkeel_core::blackout::LocalHours;
use evenkeel_core::executor::{ExecutorCatalog, StartFields};
use evenkeel_core::schedule::Periodic;
use evenkeel_core::{About, Definition, Schedule};
use serde_json::{Value, json};

use crate::Object;
use crate::dedup_fields::DedupFields;
use crate::read::job_fields;
use crate::retry_fields::RetryFields;

/// Builds a JSON document from which [`read_job`](crate::read_job) reads the same job again.
/// Derived values, such as a URL that comes from the target, are left out, so that they are derived
/// again when the document is read.
pub fn document_of(about: &About, definition: &Definition, catalog: ExecutorCatalog) -> Object {
    let mut document = Object::new();
    job_fields::write(job_fields::ABOUT, about, &mut document);
    job_fields::write(job_fields::TIMES, definition, &mut document);
    job_fields::write(job_fields::POLICIES, definition, &mut document);
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            document.insert(name.into(), value);
        }
    };
    for (field, value) in DedupFields::document_fields(about.dedup.as_ref()) {
        put(field, value);
    }
    put("schedule_time", json!(about.schedule_time));
    put("schedule", schedule_document(&definition.schedule));
    match &definition.schedule {
        Schedule::Cron(by) if !by.cron.is_exact() => put("exact", false.into()),
        Schedule::Interval(every) if every.is_exact() => put("exact", true.into()),
        _ => {}
    }
    put("timezone", definition.timezone.name().into());
    let hours = |hours: &LocalHours| json!({"start": hours.start.to_string(), "end": hours.end.to_string()});
    let blackouts = definition.blackout_periods.iter().map(hours);
    put("blackout_periods", blackouts.collect::<Vec<_>>().into());
    put("prefer_window", definition.prefer_window.as_ref().map_or(Value::Null, hours));
    if !about.is_follower() {
        put("executor_type", definition.executor.kind.clone().into());
    }
    put("executor_config", executor_config(about, definition, catalog));
    put("payload", definition.payload.clone());
    for (field, value) in RetryFields::of(&definition.retry).document_fields() {
        put(field, value);
    }
    if !definition.on_failure.is_none() {
        put("on_failure", json!(definition.on_failure));
    }
    if let (Some(key), Some(limit)) = (&definition.concurrency_key, definition.key_limit()) {
        put("concurrency_key", key.clone().into());
        put("concurrency_limit", limit.most.into());
    }
    document
}

/// Converts a schedule to its canonical JSON form.
fn schedule_document(schedule: &Schedule) -> Value {
    let mut fields = match schedule {
        Schedule::Once(once) => {
            json!({"kind": "once", "at": once.at, "tolerance": once.tolerance})
        }
        Schedule::Interval(every) => json!({
            "kind": "interval",
            "every": every.every().to_string(),
            "anchor": every.anchor(),
            "tolerance": every.stated_tolerance(),
        }),
        Schedule::Calendar(every) => json!({
            "kind": "interval",
            "every": every.every.to_string(),
            "anchor": every.anchor,
            "tolerance": every.tolerance,
        }),
        Schedule::Cron(by) => json!({
            "kind": "cron",
            "expression": by.cron.expression(),
            "max_duration": by.max_duration,
        }),
        Schedule::Periodic(periodic) => {
            // A default cooldown is left out, so that it changes with the period of the schedule.
            let open = Periodic::new(periodic.period(), None);
            let is_open = open.is_ok_and(|open| open.cooldown() == periodic.cooldown());
            let cooldown = (!is_open).then(|| periodic.cooldown());
            json!({"kind": "periodic", "period": periodic.period(), "cooldown": cooldown})
        }
    };
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

/// Returns the job's executor configuration without the start URL that comes from the job's `url`.
pub(crate) fn executor_config(
    about: &About,
    definition: &Definition,
    catalog: ExecutorCatalog,
) -> Value {
    let config = definition.executor.config.clone();
    let start = catalog.get(&definition.executor.kind).and_then(|executor| executor.start);
    without_start(config, start, about.url.as_deref())
}

/// Removes the start URL from `config` if it equals `url`. Returns null if the configuration is
/// empty without the start URL.
pub(crate) fn without_start(
    mut config: Value,
    start: Option<StartFields>,
    url: Option<&str>,
) -> Value {
    if let Some(start) = start {
        start.remove(&mut config, url);
    }
    match config.as_object() {
        Some(fields) if fields.is_empty() => Value::Null,
        _ => config,
    }
}
