//! How the fields of the job form become fields of a job.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::job_field_list::{Field, Kind, fields};
use crate::backend::FieldError;

/// The values of the form, by field.
pub(super) type Values = HashMap<String, String>;

/// The names in the API of the main value and the limit of a schedule.
fn schedule_parts(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "cron" => ("expression", "max_duration"),
        "periodic" => ("period", "cooldown"),
        "once" => ("at", "tolerance"),
        _ => ("every", "tolerance"),
    }
}

/// The fields of `executor_config` that the form has for an executor.
fn config_parts(executor: &str) -> &'static [&'static str] {
    match executor {
        "http" | "http_callback" => &["url", "method", "headers", "body_text"],
        "crawl" => &["url", "scope", "depth", "max_pages"],
        "shell" => &["argv", "cwd"],
        _ => &[],
    }
}

/// Returns how the form shows a field of a job.
pub(super) fn shown(job: &Value, name: &str) -> String {
    let kind = job["schedule"]["kind"].as_str().unwrap_or_default();
    let value = match name.split_once('.') {
        Some(("schedule", "value")) => &job["schedule"][schedule_parts(kind).0],
        Some(("schedule", "limit")) => &job["schedule"][schedule_parts(kind).1],
        Some((outer, inner)) => &job[outer][inner],
        None => &job[name],
    };
    let lines = |line: fn(&Value) -> String| {
        let items = value.as_array().map_or(&[][..], Vec::as_slice).iter();
        items.map(line).collect::<Vec<_>>().join("\n")
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (name, value) {
        (_, Value::Null) => String::new(),
        ("executor_config.argv", _) => lines(|it| it.as_str().unwrap_or_default().to_owned()),
        ("blackout_periods", _) => lines(|it| {
            let end = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
            format!("{}-{}", end("start"), end("end"))
        }),
        ("payload", _) => serde_json::to_string_pretty(value).unwrap_or_default(),
        _ => text(value),
    }
}

/// Returns the fields of the job that the form sets: all that are not empty, or for an edit all that
/// differ from `job`.
pub(super) fn document(values: &Values, job: Option<&Value>) -> Result<Value, Vec<FieldError>> {
    let nothing = Value::Null;
    let before = job.unwrap_or(&nothing);
    let (mut document, mut errors, mut is_touched) = (Map::new(), Vec::new(), [false; 2]);
    let mut parts = Map::new();
    for field in fields() {
        let old = shown(before, field.name);
        let new = values.get(field.name).map(|text| text.replace("\r\n", "\n"));
        // Only some fields of a text area keep their spaces, so both sides are compared without.
        let new = new.unwrap_or_else(|| old.clone());
        let is_changed = new.trim() != old.trim();
        let part = field.name.split_once('.');
        let value = match parse(field, new.trim()) {
            Ok(value) => value,
            Err(message) => {
                errors.push(FieldError { field: field.name.to_owned(), message });
                continue;
            }
        };
        match part {
            Some((outer, _)) => {
                is_touched[usize::from(outer == "executor_config")] |= is_changed;
                parts.insert(field.name.to_owned(), value);
            }
            None if is_changed => drop(document.insert(field.name.to_owned(), value)),
            None => {}
        }
    }
    let executor = values.get("executor_type").map(String::as_str);
    let executor = executor.or_else(|| before["executor_type"].as_str()).unwrap_or_default();
    if is_touched[0] {
        document.insert("schedule".into(), schedule(&parts, &before["schedule"]));
    }
    if is_touched[1] || document.contains_key("executor_type") {
        let old = (before["executor_type"] == executor).then(|| before["executor_config"].clone());
        let mut config = old.unwrap_or_else(|| json!({}));
        for part in config_parts(executor) {
            set(&mut config, part, &parts[&format!("executor_config.{part}")]);
        }
        if before["executor_config"] != config {
            document.insert("executor_config".into(), config);
        }
    }
    if errors.is_empty() { Ok(Value::Object(document)) } else { Err(errors) }
}

fn schedule(parts: &Map<String, Value>, before: &Value) -> Value {
    let kind = parts["schedule.kind"].as_str().unwrap_or("interval");
    let mut schedule = if before["kind"] == kind { before.clone() } else { json!({"kind": kind}) };
    let (main, limit) = schedule_parts(kind);
    set(&mut schedule, main, &parts["schedule.value"]);
    set(&mut schedule, limit, &parts["schedule.limit"]);
    schedule
}

fn set(object: &mut Value, name: &str, value: &Value) {
    let Some(object) = object.as_object_mut() else { return };
    match value {
        Value::Null => drop(object.remove(name)),
        value => drop(object.insert(name.to_owned(), value.clone())),
    }
}

/// Returns the value of a text that the user typed; nothing for an empty text.
fn parse(field: &Field, text: &str) -> Result<Value, String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    match field.name {
        "blackout_periods" => lines().map(blackout).collect(),
        _ if text.is_empty() => Ok(Value::Null),
        "executor_config.argv" => Ok(lines().collect()),
        "payload" | "executor_config.headers" => serde_json::from_str(text)
            .map_err(|error| format!("is not JSON: {error}. Write text in quotes: \"text\".")),
        _ if matches!(field.kind, Kind::Number) => match text.parse::<i64>() {
            Ok(number) => Ok(number.into()),
            Err(_) => Err(format!("{text:?} is not a whole number")),
        },
        _ => Ok(text.into()),
    }
}

fn blackout(line: &str) -> Result<Value, String> {
    let (start, end) = line
        .split_once(['-', '–'])
        .ok_or_else(|| format!("{line:?} is not a period; write it like 22:00-06:00"))?;
    Ok(json!({"start": start.trim(), "end": end.trim()}))
}

/// Returns the field of the form that shows an error in a field of the API.
pub(super) fn form_field(name: &str) -> Option<&'static str> {
    let name = match name.split_once('.') {
        Some(("schedule", "tolerance" | "max_duration" | "cooldown")) => "schedule.limit",
        Some(("schedule", "kind")) => "schedule.kind",
        Some(("schedule", _)) => "schedule.value",
        _ if name == "schedule" => "schedule.value",
        _ => name,
    };
    let is_part = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    fields().map(|field| field.name).find(|it| name.strip_prefix(it).is_some_and(is_part))
}
