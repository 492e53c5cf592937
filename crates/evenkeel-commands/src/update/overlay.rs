//! Applies changed fields to the JSON document of a job.

use evenkeel_core::Schedule;
use serde_json::Value;

use crate::{Fault, Object};

/// Fields that replace the schedule of a job, or change its maximum duration or its cooldown.
pub(super) const SCHEDULE_FIELDS: [&str; 10] = [
    "schedule", "interval_minutes", "interval_type", "schedule_enabled", "cron_expression",
    "cron_schedule", "schedule_time", "cron_max_schedule_duration", "scheduling_period",
    "cooldown_duration",
];

pub(super) const RETRY_FIELDS: [&str; 8] = [
    "retry_policy", "max_retries", "retry_backoff", "retry_backoff_seconds",
    "retry_backoff_cap_seconds", "retry_stages", "retry_jitter", "retry_jitter_percent",
];

/// Applies the changed fields to `base`, the document of the present job; `seen` is the job as the
/// client saw it.
pub(super) fn overlay(
    mut base: Object,
    changed: &Object,
    seen: &Object,
) -> Result<Object, Vec<Fault>> {
    let mut changed = changed.clone();
    // If the job has an interval, its former cron expression has no effect and may be removed.
    if is_cleared(&changed, "schedule_time") && base.remove("schedule_time").is_some() {
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
    if is_cleared(&changed, "concurrency_key") {
        base.remove("concurrency_limit");
    }
    drop_old_key(&mut base, &changed);
    // If the change contains no retry field, the retry policy stays, even if no document could
    // express it.
    if !RETRY_FIELDS.iter().any(|field| changed.contains_key(*field)) {
        remove(&mut base, &RETRY_FIELDS);
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

/// Removes the old retry fields that contradict the change. A named retry policy replaces all retry
/// fields, and another kind of backoff has other retry fields.
fn drop_old_retries(base: &mut Object, changed: &Object) {
    const BACKOFF: [&str; 3] =
        ["retry_backoff", "retry_backoff_seconds", "retry_backoff_cap_seconds"];
    let is_staged = base.get("retry_backoff").is_some_and(|growth| growth == "stages");
    if given(changed, "retry_policy").is_some() {
        remove(base, &RETRY_FIELDS);
    }
    // Removing `retry_stages` also removes the first delay and the kind of backoff.
    let growth = given(changed, "retry_backoff");
    let ends_stages = is_cleared(changed, "retry_stages") && growth.is_none() && is_staged;
    if given(changed, "retry_stages").is_some() || ends_stages {
        remove(base, &BACKOFF);
    }
    if let Some(growth) = growth {
        remove(base, &["retry_backoff_cap_seconds", "retry_stages"]);
        if growth == "stages" {
            remove(base, &["retry_backoff_seconds"]);
        }
    }
    if let Some(kind) = given(changed, "retry_jitter")
        && (kind == "none" || base.get("retry_jitter_percent") == Some(&Value::from(0)))
    {
        base.remove("retry_jitter_percent");
    }
}

/// Returns the new value of a field, or `None` if the field is unchanged or the change removes it.
fn given<'a>(changed: &'a Object, field: &str) -> Option<&'a Value> {
    changed.get(field).filter(|value| !value.is_null())
}

/// True if the change removes the field.
fn is_cleared(changed: &Object, field: &str) -> bool {
    changed.get(field).is_some_and(Value::is_null)
}

fn remove(base: &mut Object, fields: &[&str]) {
    fields.iter().for_each(|field| drop(base.remove(*field)));
}

/// Removes the old deduplication fields that contradict the change. A job without a deduplication
/// key has no deduplication scope, and only the scope `window` has a length.
fn drop_old_key(base: &mut Object, changed: &Object) {
    let is_removed = match changed.get("unique") {
        Some(unique) => *unique != Value::Bool(true),
        None => !base.contains_key("unique") && is_cleared(changed, "dedup_key"),
    };
    if is_removed {
        remove(base, &["unique", "dedup_key", "dedup_scope", "dedup_window_seconds"]);
    }
    if changed.get("dedup_scope").is_some_and(|scope| scope != "window") {
        base.remove("dedup_window_seconds");
    }
}

/// Removes the old schedule from the document, and copies the settings that the new schedule keeps.
fn reschedule(base: &mut Object, changed: &mut Object, seen: &Object) -> Result<(), Vec<Fault>> {
    let has_any = |fields: &[&str]| fields.iter().any(|field| given(changed, field).is_some());
    let is_new = has_any(&["schedule"]);
    let by_cron = has_any(&["cron_expression", "cron_schedule", "schedule_time"]);
    let by_interval = has_any(&["interval_minutes", "interval_type"]);
    let by_period = has_any(&["scheduling_period"]);
    let runs_once = changed.get("schedule_enabled") == Some(&Value::Bool(false));
    if !(is_new || by_cron || by_interval || by_period || runs_once) {
        return change_limit(base, changed);
    }
    let old = base.remove("schedule").unwrap_or_default();
    if !by_interval || is_new {
        // The former cron expression of a job is kept only together with an interval.
        base.remove("schedule_time");
    }
    if by_interval && !is_new {
        complete_interval(changed, seen)?;
    }
    if by_cron && !is_new && !changed.contains_key("cron_max_schedule_duration") {
        copy(old.get("max_duration"), changed, "cron_max_schedule_duration");
    }
    if by_period && !is_new && !changed.contains_key("cooldown_duration") {
        copy(old.get("cooldown"), changed, "cooldown_duration");
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
    if runs_once || new.is_some_and(|new| is_kind(new, "once")) {
        remove(base, &["start_at", "end_at", "max_runs"]);
    }
    if has_run_count(new) {
        remove(base, &["end_at", "max_runs"]);
    }
    Ok(())
}

/// Changes only the maximum duration or the cooldown of the present schedule.
fn change_limit(base: &mut Object, changed: &mut Object) -> Result<(), Vec<Fault>> {
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
        if is_cleared(changed, field) {
            let message = "can't be removed without a replacement: a job without a schedule would \
                           run once, now; give another one, or \"schedule_enabled\": false";
            faults.push(Fault::new(field, message));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Completes a change of an interval: a missing `interval_minutes` is taken from the job as the
/// client saw it.
fn complete_interval(changed: &mut Object, seen: &Object) -> Result<(), Vec<Fault>> {
    if !changed.contains_key("interval_minutes") {
        copy(given(seen, "interval_minutes"), changed, "interval_minutes");
        return Ok(());
    }
    match given(seen, "interval_type") {
        Some(unit) if unit != "minutes" && !changed.contains_key("interval_type") => {
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

fn copy(value: Option<&Value>, into: &mut Object, field: &str) {
    if let Some(value) = value {
        into.insert(field.into(), value.clone());
    }
}

fn is_kind(schedule: &Value, kind: &str) -> bool {
    schedule.get("kind").is_some_and(|it| it == kind)
}

fn is_cron(schedule: Option<&Value>) -> bool {
    match schedule {
        Some(fields @ Value::Object(_)) => is_kind(fields, "cron"),
        // The parser refuses an invalid schedule text later, so an invalid text is not an error
        // here.
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
