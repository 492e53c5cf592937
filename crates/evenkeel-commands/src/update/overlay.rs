//! Applies changed fields to the document of a job.

use evenkeel_core::Schedule;
use serde_json::{Map, Value};

use crate::Fault;

/// Fields that define the schedule. Each of these fields replaces the former schedule.
pub(super) const SCHEDULE_FIELDS: [&str; 10] = [
    "schedule", "interval_minutes", "interval_type", "schedule_enabled", "cron_expression",
    "cron_schedule", "schedule_time", "cron_max_schedule_duration", "scheduling_period",
    "cooldown_duration",
];

const CRON_FIELDS: [&str; 3] = ["cron_expression", "cron_schedule", "schedule_time"];

pub(super) const RETRY_FIELDS: [&str; 8] = [
    "retry_policy", "max_retries", "retry_backoff", "retry_backoff_seconds",
    "retry_backoff_cap_seconds", "retry_stages", "retry_jitter", "retry_jitter_percent",
];

/// Applies the changed fields to `base`; `seen` is the job as the client saw it.
pub(super) fn overlay(
    mut base: Map<String, Value>,
    changed: &Map<String, Value>,
    seen: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<Fault>> {
    let mut changed = changed.clone();
    // If the job has an interval, its former cron expression has no effect and may be removed.
    if changed.get("schedule_time").is_some_and(Value::is_null)
        && base.remove("schedule_time").is_some()
    {
        changed.remove("schedule_time");
    }
    if SCHEDULE_FIELDS.iter().any(|field| changed.contains_key(*field)) {
        reschedule(&mut base, &mut changed, seen)?;
    }
    if changed.contains_key("tz") {
        base.remove("timezone");
    }
    drop_old_retries(&mut base, &changed);
    // A concurrency limit without its key has no effect, so it is removed with the key.
    if changed.get("concurrency_key").is_some_and(Value::is_null) {
        base.remove("concurrency_limit");
    }
    drop_old_key(&mut base, &changed);
    // A retry policy that the change does not mention stays, even if no document could express it.
    if !RETRY_FIELDS.iter().any(|field| changed.contains_key(*field)) {
        RETRY_FIELDS.iter().for_each(|field| drop(base.remove(*field)));
    }
    for (field, value) in changed {
        if value.is_null() && seen.contains_key(&field) {
            base.remove(&field);
        } else {
            // An unknown field stays in the document, so that the parser refuses it.
            base.insert(field, value);
        }
    }
    Ok(base)
}

/// Removes the old retry fields that contradict the change. A named policy replaces all retry
/// fields, and another kind of backoff has other fields.
fn drop_old_retries(base: &mut Map<String, Value>, changed: &Map<String, Value>) {
    let given = |field: &str| changed.get(field).filter(|value| !value.is_null());
    let is_staged = base.get("retry_backoff").is_some_and(|growth| growth == "stages");
    let mut remove = |fields: &[&str]| fields.iter().for_each(|field| drop(base.remove(*field)));
    if given("retry_policy").is_some() {
        remove(&RETRY_FIELDS);
    }
    if given("retry_stages").is_some() {
        remove(&["retry_backoff", "retry_backoff_seconds", "retry_backoff_cap_seconds"]);
    }
    // Removing `retry_stages` also removes the first delay and the kind of backoff.
    let is_cleared = changed.get("retry_stages").is_some_and(Value::is_null);
    if is_cleared && given("retry_backoff").is_none() && is_staged {
        remove(&["retry_backoff", "retry_backoff_seconds", "retry_backoff_cap_seconds"]);
    }
    if let Some(growth) = given("retry_backoff") {
        remove(&["retry_backoff_cap_seconds", "retry_stages"]);
        if growth == "stages" {
            remove(&["retry_backoff_seconds"]);
        }
    }
    if let Some(kind) = given("retry_jitter")
        && (kind == "none" || base.get("retry_jitter_percent") == Some(&Value::from(0)))
    {
        base.remove("retry_jitter_percent");
    }
}

/// Removes the old deduplication fields that contradict the change. A job without a key has no
/// scope, and only the scope `window` has a length.
fn drop_old_key(base: &mut Map<String, Value>, changed: &Map<String, Value>) {
    let unique = changed.get("unique");
    let has_chosen_times = !base.contains_key("unique") && unique.is_none();
    let is_removed = match unique {
        Some(unique) => *unique != Value::Bool(true),
        None => has_chosen_times && changed.get("dedup_key").is_some_and(Value::is_null),
    };
    if is_removed {
        for field in ["unique", "dedup_key", "dedup_scope", "dedup_window_seconds"] {
            base.remove(field);
        }
    }
    if changed.get("dedup_scope").is_some_and(|scope| scope != "window") {
        base.remove("dedup_window_seconds");
    }
}

/// Removes the old schedule, and copies the settings that the new schedule keeps.
fn reschedule(
    base: &mut Map<String, Value>,
    changed: &mut Map<String, Value>,
    seen: &Map<String, Value>,
) -> Result<(), Vec<Fault>> {
    let given = |changed: &Map<String, Value>, field: &str| {
        changed.get(field).is_some_and(|value| !value.is_null())
    };
    let is_new = given(changed, "schedule");
    let by_cron = CRON_FIELDS.iter().any(|field| given(changed, field));
    let by_interval = given(changed, "interval_minutes") || given(changed, "interval_type");
    let by_period = given(changed, "scheduling_period");
    let runs_once = changed.get("schedule_enabled") == Some(&Value::Bool(false));
    if !(is_new || by_cron || by_interval || by_period || runs_once) {
        return change_limit(base, changed);
    }
    let old = base.remove("schedule").unwrap_or_default();
    if !by_interval || is_new {
        // The former cron expression is kept only together with an interval.
        base.remove("schedule_time");
    }
    if by_interval && !is_new {
        complete_interval(changed, seen)?;
    }
    if by_cron && !is_new && !changed.contains_key("cron_max_schedule_duration") {
        copy(&old, "max_duration", changed, "cron_max_schedule_duration");
    }
    if by_period && !is_new && !changed.contains_key("cooldown_duration") {
        copy(&old, "cooldown", changed, "cooldown_duration");
    }
    // Settings of the old schedule that the new schedule cannot have are removed without an error.
    let new = changed.get("schedule");
    let has_chosen_times = !runs_once && (by_interval && !is_new || has_chosen_times(new));
    let stays_cron = !runs_once && is_kind(&old, "cron") && (by_cron || is_cron(new));
    if !(stays_cron || has_chosen_times && is_kind(&old, "interval")) {
        base.remove("exact");
    }
    if !has_chosen_times {
        base.remove("prefer_window");
    }
    let once =
        changed.get("schedule").and_then(|new| new.get("kind")).is_some_and(|it| it == "once");
    if once || runs_once {
        ["start_at", "end_at", "max_runs"].iter().for_each(|field| drop(base.remove(*field)));
    }
    if has_run_count(changed.get("schedule")) {
        ["end_at", "max_runs"].iter().for_each(|field| drop(base.remove(*field)));
    }
    Ok(())
}

/// Changes the maximum duration or the cooldown of the present schedule.
fn change_limit(
    base: &mut Map<String, Value>,
    changed: &mut Map<String, Value>,
) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    let schedule = base.get_mut("schedule").and_then(Value::as_object_mut);
    let kind = schedule.as_ref().and_then(|it| it.get("kind")).and_then(Value::as_str);
    let inner = match kind {
        Some("cron") => Some(("cron_max_schedule_duration", "max_duration")),
        Some("periodic") => Some(("cooldown_duration", "cooldown")),
        _ => None,
    };
    if let (Some((field, name)), Some(schedule)) = (inner, schedule)
        && let Some(value) = changed.remove(field)
    {
        if value.is_null() {
            schedule.remove(name);
        } else {
            schedule.insert(name.into(), value);
        }
    }
    for field in SCHEDULE_FIELDS {
        if changed.get(field).is_some_and(Value::is_null) {
            let message = "can't be removed without a replacement: a job without a schedule would \
                           run once, now; give another one, or \"schedule_enabled\": false";
            faults.push(Fault::new(field, message));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Completes a change of an interval: a missing number is taken from the job as it was shown.
fn complete_interval(
    changed: &mut Map<String, Value>,
    seen: &Map<String, Value>,
) -> Result<(), Vec<Fault>> {
    let shown = |field: &str| seen.get(field).filter(|value| !value.is_null()).cloned();
    if !changed.contains_key("interval_minutes") {
        if let Some(number) = shown("interval_minutes") {
            changed.insert("interval_minutes".into(), number);
        }
        return Ok(());
    }
    if changed.contains_key("interval_type") {
        return Ok(());
    }
    match shown("interval_type") {
        Some(unit) if unit != "minutes" => {
            let message = format!(
                "is needed as well: the job's interval is shown in {}, but interval_minutes \
                 alone means minutes in a new job",
                unit.as_str().unwrap_or_default(),
            );
            Err(vec![Fault::new("interval_type", message)])
        }
        _ => Ok(()),
    }
}

fn copy(from: &Value, name: &str, into: &mut Map<String, Value>, field: &str) {
    if let Some(value) = from.get(name) {
        into.insert(field.into(), value.clone());
    }
}

fn is_kind(old: &Value, kind: &str) -> bool {
    old.get("kind").is_some_and(|it| it == kind)
}

fn is_cron(schedule: Option<&Value>) -> bool {
    match schedule {
        Some(fields @ Value::Object(_)) => is_kind(fields, "cron"),
        // An invalid text is refused later; here it only removes `exact`.
        Some(Value::String(text)) => matches!(read(text), Some(Schedule::Cron(_))),
        _ => false,
    }
}

/// True for an interval whose start times the server chooses.
fn has_chosen_times(schedule: Option<&Value>) -> bool {
    let text = match schedule {
        Some(fields @ Value::Object(_)) if is_kind(fields, "interval") => {
            let has_anchor = fields.get("anchor").is_some_and(|anchor| !anchor.is_null());
            fields.get("every").and_then(Value::as_str).filter(|_| !has_anchor)
        }
        Some(Value::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let read = text.and_then(read);
    matches!(read, Some(Schedule::Interval(every)) if every.anchor().is_none())
}

fn read(text: &str) -> Option<Schedule> {
    crate::read_schedule(text).ok().map(|given| given.schedule)
}

/// True for a schedule such as `R5/…`, which contains its own number of runs.
fn has_run_count(schedule: Option<&Value>) -> bool {
    let text = schedule.and_then(Value::as_str);
    text.and_then(|text| crate::read_schedule(text).ok()).is_some_and(|given| given.times.is_some())
}
