//! From a stored job back to the document that makes one like it.

use evenkeel_core::blackout::LocalHours;
use evenkeel_core::job::{DEFAULT_POOL, OnLostWorker};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::Periodic;
use evenkeel_core::{About, Definition, Schedule, Span};
use serde_json::{Map, Value, json};

use crate::dedup_words::DedupWords;
use crate::read::CRAWL;
use crate::retry_words::RetryWords;

/// The document of a job: read by [`read_job`](crate::read_job), it is this job again. What is as
/// by default, or follows from something else, is left out, so that it goes on to follow: what a job
/// has from its target as well.
pub fn document_of(about: &About, definition: &Definition) -> Map<String, Value> {
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            document.insert(name.into(), value);
        }
    };
    put("name", json!(about.name));
    put("configuration", json!(about.configuration));
    put("description", json!(about.description));
    put("source_id", json!(about.source_id));
    put("source_name", json!(about.source_name));
    let own = |value: Value| if about.is_follower() { Value::Null } else { value };
    put("url", own(json!(about.url)));
    put("target", json!(about.target));
    put("metadata", about.metadata.clone());
    for (field, value) in DedupWords::fields(about.dedup.as_ref()) {
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
    // What has no effect would be refused, but older versions took it.
    if matches!(definition.schedule, Schedule::Cron(_) | Schedule::Calendar(_)) {
        put("dst_gap", json!(definition.dst.gap));
        put("dst_overlap", json!(definition.dst.overlap));
    }
    put("start_at", json!(definition.bounds.start_at));
    put("end_at", json!(definition.bounds.end_at));
    put("max_runs", json!(definition.bounds.max_runs));
    let hours = |hours: &LocalHours| json!({"start": hours.start.to_string(), "end": hours.end.to_string()});
    let blackouts = definition.blackout_periods.iter().map(hours);
    put("blackout_periods", blackouts.collect::<Vec<_>>().into());
    if !definition.blackout_periods.is_empty() {
        put("avoid_blackout", definition.avoid_blackout.into());
    }
    put("average_duration_override", json!(definition.average_override));
    put("prefer_window", definition.prefer_window.as_ref().map_or(Value::Null, hours));
    put("cost", json!(definition.cost));
    put("dont_run_on_nodes", json!(definition.dont_run_on_nodes));
    put("executor_type", own(definition.executor.kind.clone().into()));
    put("executor_config", executor_config(about, definition));
    put("payload", definition.payload.clone());
    for (field, value) in RetryWords::of(&definition.retry).fields() {
        put(field, value);
    }
    if !definition.on_failure.is_none() {
        put("on_failure", json!(definition.on_failure));
    }
    put("timeout_sec", seconds(definition.timeout).into());
    put("max_expected_duration", json!(definition.max_expected_duration));
    put("max_allowed_duration", json!(definition.max_allowed_duration));
    put("priority", definition.priority.get().into());
    put("lane", json!(definition.lane));
    if definition.pool != DEFAULT_POOL {
        put("pool", definition.pool.clone().into());
    }
    if let (Some(key), Some(limit)) = (&definition.concurrency_key, definition.key_limit()) {
        put("concurrency_key", key.clone().into());
        put("concurrency_limit", limit.most.into());
    }
    let is_periodic = definition.schedule.follows_its_end();
    let is_once = matches!(definition.schedule, Schedule::Once(_));
    if !(is_periodic || is_once && definition.misfire == MisfirePolicy::All) {
        put("misfire", json!(definition.misfire));
    }
    if !is_periodic {
        put("misfire_after", json!(definition.misfire_after));
    }
    if !is_periodic || definition.overlap == OverlapPolicy::Allow {
        put("overlap", json!(definition.overlap));
    }
    put("on_lost_worker", json!(definition.on_lost_worker));
    if definition.on_lost_worker == OnLostWorker::Retry {
        put("max_crashes", definition.max_crashes.into());
    }
    put("on_exhausted", json!(definition.on_exhausted));
    document
}

/// A schedule in its canonical form.
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
            // Whoever left it open has it follow the period.
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

/// A crawl that starts at what the job is about goes on to do so.
pub(crate) fn executor_config(about: &About, definition: &Definition) -> Value {
    let config = definition.executor.config.clone();
    match &definition.executor.kind[..] {
        CRAWL => without_start(config, about.url.as_deref()),
        _ => without_start(config, None),
    }
}

/// The configuration of a crawl, without the start that it has from `url`; `Null` if nothing is left.
pub(crate) fn without_start(mut config: Value, url: Option<&str>) -> Value {
    if let Some(fields) = config.as_object_mut() {
        let start = fields.get("url").and_then(Value::as_str);
        if start.is_some() && start == url && !fields.contains_key("start_urls") {
            fields.remove("url");
        }
    }
    match config.as_object() {
        Some(fields) if fields.is_empty() => Value::Null,
        _ => config,
    }
}

fn seconds(span: Span) -> u64 {
    span.as_micros() / 1_000_000
}
