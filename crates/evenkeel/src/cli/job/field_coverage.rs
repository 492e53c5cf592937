//! Checks that the OpenAPI document, the flags and the documentation cover every job field.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args as _, Command};
use evenkeel_commands::{is_set_by_the_server, job_field_names};
use serde_json::Value;

use super::create::CreateArgs;

/// Job fields whose flag has a different name.
const OTHER_FLAGS: [(&str, &str); 15] = [
    ("average_duration_override", "average-duration"),
    ("blackout_periods", "blackout"),
    ("cooldown_duration", "cooldown"),
    ("cron_expression", "cron"),
    ("cron_max_schedule_duration", "tolerance"),
    ("dedup_window_seconds", "dedup-window"),
    ("dont_run_on_nodes", "dont-run-on"),
    ("executor_type", "http"),
    ("interval_minutes", "every"),
    ("retry_backoff", "retry-growth"),
    ("retry_backoff_cap_seconds", "retry-backoff-cap"),
    ("retry_backoff_seconds", "retry-backoff"),
    ("scheduling_period", "periodic"),
    ("timeout_sec", "timeout"),
    ("timezone", "tz"),
];

/// Job fields without a flag, which users set with `job create --file` and `job update --set`.
const WITHOUT_FLAG: [&str; 15] = [
    "configuration", "cron_schedule", "enabled", "executor_config", "interval_type", "max_crashes",
    "metadata", "misfire_after", "on_exhausted", "on_lost_worker", "schedule_enabled",
    "schedule_time", "source_id", "source_name", "url",
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the names of the properties of a schema in docs/openapi.json.
fn properties(schema: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(docs().join("openapi.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let properties = &document["components"]["schemas"][schema]["properties"];
    properties.as_object().unwrap().keys().cloned().collect()
}

fn field_names() -> BTreeSet<String> {
    job_field_names().into_iter().map(String::from).collect()
}

#[test]
fn create_schema_has_exactly_the_job_fields() {
    assert_eq!(properties("JobDocument"), field_names());
}

#[test]
fn view_schema_has_the_job_fields_and_those_that_the_server_sets() {
    let (shown, fields) = (properties("JobView"), field_names());
    let missing: Vec<_> = fields.difference(&shown).collect();
    assert!(missing.is_empty(), "JobView lacks {missing:?}");
    let unknown: Vec<_> =
        shown.difference(&fields).filter(|name| !is_set_by_the_server(name)).collect();
    assert!(unknown.is_empty(), "neither a job field nor set by the server: {unknown:?}");
}

#[test]
fn create_command_has_a_flag_for_every_job_field_or_the_field_is_listed_without_one() {
    let command = CreateArgs::augment_args(Command::new("create"));
    let flags: BTreeSet<_> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
    for field in job_field_names() {
        let other = OTHER_FLAGS.iter().find(|(name, _)| *name == field);
        let flag = other.map_or_else(|| field.replace('_', "-"), |(_, flag)| (*flag).to_owned());
        let has_flag = flags.contains(flag.as_str());
        assert_eq!(has_flag, !WITHOUT_FLAG.contains(&field), "{field}: --{flag}");
    }
}

#[test]
fn documentation_mentions_every_job_field() {
    let pages = std::fs::read_dir(docs()).unwrap().map(|page| page.unwrap().path());
    let pages = pages.filter(|page| page.extension().is_some_and(|ending| ending == "md"));
    let text: String = pages.map(|page| std::fs::read_to_string(page).unwrap()).collect();
    for field in job_field_names() {
        let is_mentioned = text.contains(&format!("`{field}`"))
            || text.contains(&format!("\"{field}\""))
            || text.contains(&format!("`{field}:"));
        assert!(is_mentioned, "docs/*.md do not mention {field}");
    }
}
