//! Changes laid over the document of a job.

use evenkeel_core::Schedule;
use serde_json::{Map, Value};

use crate::Fault;

/// Fields that say when a job runs; each of them takes the place of what was said before.
pub(super) const SCHEDULE_FIELDS: [&str; 10] = [
    "schedule",
    "interval_minutes",
    "interval_type",
    "schedule_enabled",
    "cron_expression",
    "cron_schedule",
    "schedule_time",
    "cron_max_schedule_duration",
    "scheduling_period",
    "cooldown_duration",
];

/// The three names of a cron expression.
const CRON_FIELDS: [&str; 3] = ["cron_expression", "cron_schedule", "schedule_time"];

/// How a job is tried again.
pub(super) const RETRY_FIELDS: [&str; 8] = [
    "retry_policy",
    "max_retries",
    "retry_backoff",
    "retry_backoff_seconds",
    "retry_backoff_cap_seconds",
    "retry_stages",
    "retry_jitter",
    "retry_jitter_percent",
];

/// The document `base` with the changes; `seen` is what the job was shown as.
pub(super) fn overlay(
    mut base: Map<String, Value>,
    changed: &Map<String, Value>,
    seen: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<Fault>> {
    let mut changed = changed.clone();
    // Beside an interval it is only remembered, and may be forgotten.
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
    make_room_for_retries(&mut base, &changed);
    // Without its key a limit would be of nothing.
    if changed.get("concurrency_key").is_some_and(Value::is_null) {
        base.remove("concurrency_limit");
    }
    make_room_for_keys(&mut base, &changed);
    // What is not spoken of stays, whatever a document could say of it.
    if !RETRY_FIELDS.iter().any(|field| changed.contains_key(*field)) {
        RETRY_FIELDS.iter().for_each(|field| drop(base.remove(*field)));
    }
    for (field, value) in changed {
        if value.is_null() && seen.contains_key(&field) {
            base.remove(&field);
        } else {
            // What is not known stays in, so that whoever reads it says so.
            base.insert(field, value);
        }
    }
    Ok(base)
}

/// Takes away what would contradict what is said about retries: a preset is meant with all its
/// fields, and waits that grow otherwise have other fields.
fn make_room_for_retries(base: &mut Map<String, Value>, changed: &Map<String, Value>) {
    let said = |field: &str| changed.get(field).filter(|value| !value.is_null());
    let is_staged = base.get("retry_backoff").is_some_and(|growth| growth == "stages");
    let mut remove = |fields: &[&str]| fields.iter().for_each(|field| drop(base.remove(*field)));
    if said("retry_policy").is_some() {
        remove(&RETRY_FIELDS);
    }
    if said("retry_stages").is_some() {
        remove(&["retry_backoff", "retry_backoff_seconds", "retry_backoff_cap_seconds"]);
    }
    // Who takes the stages away takes away their first wait as well, and that they are stages.
    let is_cleared = changed.get("retry_stages").is_some_and(Value::is_null);
    if is_cleared && said("retry_backoff").is_none() && is_staged {
        remove(&["retry_backoff", "retry_backoff_seconds", "retry_backoff_cap_seconds"]);
    }
    if let Some(growth) = said("retry_backoff") {
        remove(&["retry_backoff_cap_seconds", "retry_stages"]);
        if growth == "stages" {
            remove(&["retry_backoff_seconds"]);
        }
    }
    if let Some(kind) = said("retry_jitter")
        && (kind == "none" || base.get("retry_jitter_percent") == Some(&Value::from(0)))
    {
        base.remove("retry_jitter_percent");
    }
}

/// Takes away what would contradict what is said about the key: whoever wants none wants none of its
/// fields, and a scope that is no window has no length.
fn make_room_for_keys(base: &mut Map<String, Value>, changed: &Map<String, Value>) {
    let unique = changed.get("unique");
    let is_chosen = !base.contains_key("unique") && unique.is_none();
    let is_taken_away = match unique {
        Some(unique) => *unique != Value::Bool(true),
        None => is_chosen && changed.get("dedup_key").is_some_and(Value::is_null),
    };
    if is_taken_away {
        for field in ["unique", "dedup_key", "dedup_scope", "dedup_window_seconds"] {
            base.remove(field);
        }
    }
    if changed.get("dedup_scope").is_some_and(|scope| scope != "window") {
        base.remove("dedup_window_seconds");
    }
}

/// Makes room for what is said about the schedule, and adds what it takes from the one before.
fn reschedule(
    base: &mut Map<String, Value>,
    changed: &mut Map<String, Value>,
    seen: &Map<String, Value>,
) -> Result<(), Vec<Fault>> {
    let said = |changed: &Map<String, Value>, field: &str| {
        changed.get(field).is_some_and(|value| !value.is_null())
    };
    let is_new = said(changed, "schedule");
    let by_cron = CRON_FIELDS.iter().any(|field| said(changed, field));
    let by_interval = said(changed, "interval_minutes") || said(changed, "interval_type");
    let by_period = said(changed, "scheduling_period");
    let runs_once = changed.get("schedule_enabled") == Some(&Value::Bool(false));
    if !(is_new || by_cron || by_interval || by_period || runs_once) {
        return amend(base, changed);
    }
    let old = base.remove("schedule").unwrap_or_default();
    if !by_interval || is_new {
        // The expression before an interval is kept only as long as there is one.
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
    // What went with the one before and does not go with this one was not asked for.
    let new = changed.get("schedule");
    let is_chosen = !runs_once && (by_interval && !is_new || is_chosen(new));
    let stays_cron = !runs_once && was(&old, "cron") && (by_cron || is_cron(new));
    if !(stays_cron || is_chosen && was(&old, "interval")) {
        base.remove("exact");
    }
    if !is_chosen {
        base.remove("prefer_window");
    }
    let once =
        changed.get("schedule").and_then(|new| new.get("kind")).is_some_and(|it| it == "once");
    if once || runs_once {
        ["start_at", "end_at", "max_runs"].iter().for_each(|field| drop(base.remove(*field)));
    }
    if counts_its_runs(changed.get("schedule")) {
        ["end_at", "max_runs"].iter().for_each(|field| drop(base.remove(*field)));
    }
    Ok(())
}

/// Changes what belongs to the schedule that there is: its limit or its pause.
fn amend(
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
            let message = "can't be taken away and leave nothing: a job without a schedule would \
                           run once, now; give another one, or \"schedule_enabled\": false";
            faults.push(Fault::new(field, message));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// A number and its unit belong together: what is not said is what is shown.
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
                "say the unit as well: the job's interval is shown in {}, and interval_minutes \
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

fn was(old: &Value, kind: &str) -> bool {
    old.get("kind").is_some_and(|it| it == kind)
}

fn is_cron(schedule: Option<&Value>) -> bool {
    match schedule {
        Some(fields @ Value::Object(_)) => was(fields, "cron"),
        // What it is, its reader will know; `exact` is dropped if it can't be cron.
        Some(Value::String(text)) => matches!(read(text), Some(Schedule::Cron(_))),
        _ => false,
    }
}

/// Is it an interval whose times are chosen by load?
fn is_chosen(schedule: Option<&Value>) -> bool {
    let text = match schedule {
        Some(fields @ Value::Object(_)) if was(fields, "interval") => {
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
    crate::read_schedule(text).ok().map(|said| said.schedule)
}

/// `R5/…` says itself where it ends.
fn counts_its_runs(schedule: Option<&Value>) -> bool {
    let text = schedule.and_then(Value::as_str);
    text.and_then(|text| crate::read_schedule(text).ok()).is_some_and(|said| said.times.is_some())
}
