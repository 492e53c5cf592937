//! Finds the fields in a client's document that differ from the job that the client saw.

use serde_json::Value;

use super::EditMode;
use crate::read::is_set_by_the_server;
use crate::{Fault, Object};

/// Returns the fields of `sent` that differ from those of `seen`, with their new values; the value
/// null removes a field.
pub(super) fn difference(
    sent: &Object,
    seen: &Object,
    mode: EditMode,
) -> Result<Object, Vec<Fault>> {
    let mut changed = Object::new();
    let mut faults = Vec::new();
    for (field, value) in sent {
        let before = seen.get(field);
        let value = match (mode, before) {
            // A schedule of another kind replaces the old schedule completely, and an `on_failure`
            // with another `action` replaces the old `on_failure`.
            (EditMode::Patch, Some(before))
                if !(field == "schedule" && has_other(before, value, "kind")
                    || field == "on_failure" && has_other(before, value, "action")) =>
            {
                patched(before, value)
            }
            _ => value.clone(),
        };
        if before.is_some_and(|before| same(before, &value)) {
            continue;
        }
        match (is_set_by_the_server(field), mode) {
            (false, _) => drop(changed.insert(field.clone(), value)),
            (true, EditMode::Put) => {}
            (true, EditMode::Patch) => {
                let message = "is set by the server and can't be changed; leave it out";
                faults.push(Fault::new(field, message));
            }
        }
    }
    // `interval_type` is the unit of `interval_minutes`, so an unchanged unit next to a changed
    // number counts as changed.
    if changed.contains_key("interval_minutes")
        && let Some(unit) = sent.get("interval_type").filter(|unit| !unit.is_null())
    {
        changed.insert("interval_type".into(), unit.clone());
    }
    if faults.is_empty() { Ok(changed) } else { Err(faults) }
}

fn has_other(before: &Value, change: &Value, name: &str) -> bool {
    let new = change.get(name);
    change.is_null() || new.is_some() && new != before.get(name)
}

/// Applies a JSON merge patch (RFC 7396) to a value.
fn patched(before: &Value, change: &Value) -> Value {
    match (before, change) {
        (Value::Object(before), Value::Object(change)) => {
            let mut merged = before.clone();
            for (name, value) in change {
                let value = match merged.get(name) {
                    Some(old) => patched(old, value),
                    None => value.clone(),
                };
                if value.is_null() {
                    merged.remove(name);
                } else {
                    merged.insert(name.clone(), value);
                }
            }
            Value::Object(merged)
        }
        _ => change.clone(),
    }
}

/// Compares JSON values; the numbers 5 and 5.0 are equal.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            // Integers are compared exactly, because different large integers can be equal as
            // floating-point numbers.
            a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_kind_replaces_only_the_schedule_of_the_job() {
        let schedule = json!({"kind": "interval", "every": "30m"});
        let seen = json!({"schedule": schedule, "payload": {"schedule": schedule}});
        let other = json!({"kind": "cron"});
        let sent = json!({"schedule": other, "payload": {"schedule": other}});
        let (Value::Object(sent), Value::Object(seen)) = (sent, seen) else { unreachable!() };
        let changed = difference(&sent, &seen, EditMode::Patch).unwrap();
        assert_eq!(changed["schedule"], json!({"kind": "cron"}));
        let merged = json!({"schedule": {"kind": "cron", "every": "30m"}});
        assert_eq!(changed["payload"], merged);
    }

    #[test]
    fn equal_numbers_of_different_notation_are_the_same() {
        assert!(same(&json!(5), &json!(5.0)));
        assert!(!same(
            &json!(1_234_567_890_123_456_789_u64),
            &json!(1_234_567_890_123_456_788_u64)
        ));
        assert!(!same(&json!({"id": [1]}), &json!({"id": [2]})));
    }
}
