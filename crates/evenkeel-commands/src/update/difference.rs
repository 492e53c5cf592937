//! What of a document differs from what is shown.

use serde_json::{Map, Value};

use super::Manner;
use crate::Fault;
use crate::read::is_set_by_the_server;

/// The fields of `sent` that are no longer what was `seen`, with what they are to be; null takes
/// away.
pub(super) fn difference(
    sent: &Map<String, Value>,
    seen: &Map<String, Value>,
    manner: Manner,
) -> Result<Map<String, Value>, Vec<Fault>> {
    let mut changed = Map::new();
    let mut faults = Vec::new();
    for (field, value) in sent {
        let before = seen.get(field);
        let value = match (manner, before) {
            // A schedule of another kind is another one.
            (Manner::Patch, Some(before))
                if field == "schedule" && is_other(before, value, "kind") =>
            {
                value.clone()
            }
            // What is done otherwise has nothing of what was done before.
            (Manner::Patch, Some(before))
                if field == "on_failure" && is_other(before, value, "action") =>
            {
                value.clone()
            }
            (Manner::Patch, Some(before)) => patched(before, value),
            _ => value.clone(),
        };
        if before.is_some_and(|before| same(before, &value)) {
            continue;
        }
        match (is_set_by_the_server(field), manner) {
            (false, _) => drop(changed.insert(field.clone(), value)),
            (true, Manner::Put) => {}
            (true, Manner::Patch) => {
                let message = "is set by the server and can't be changed; leave it out";
                faults.push(Fault::new(field, message));
            }
        }
    }
    // A number and its unit belong together: said beside a new number, the same unit counts.
    if changed.contains_key("interval_minutes")
        && let Some(unit) = sent.get("interval_type").filter(|unit| !unit.is_null())
    {
        changed.insert("interval_type".into(), unit.clone());
    }
    if faults.is_empty() { Ok(changed) } else { Err(faults) }
}

fn is_other(before: &Value, change: &Value, name: &str) -> bool {
    let said = change.get(name);
    change.is_null() || said.is_some() && said != before.get(name)
}

/// An object with the changes of another laid over it.
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

/// The same JSON, however its numbers are written.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            // Two whole numbers are compared as such: as fractions, large ones would be alike.
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
    fn only_the_jobs_own_schedule_is_another_one_if_its_kind_is() {
        let schedule = json!({"kind": "interval", "every": "30m"});
        let seen = json!({"schedule": schedule, "payload": {"schedule": schedule}});
        let other = json!({"kind": "cron"});
        let sent = json!({"schedule": other, "payload": {"schedule": other}});
        let (Value::Object(sent), Value::Object(seen)) = (sent, seen) else { unreachable!() };
        let changed = difference(&sent, &seen, Manner::Patch).unwrap();
        assert_eq!(changed["schedule"], json!({"kind": "cron"}));
        let merged = json!({"schedule": {"kind": "cron", "every": "30m"}});
        assert_eq!(changed["payload"], merged);
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written_and_no_others() {
        assert!(same(&json!(5), &json!(5.0)));
        assert!(!same(
            &json!(1_234_567_890_123_456_789_u64),
            &json!(1_234_567_890_123_456_788_u64)
        ));
        assert!(!same(&json!({"id": [1]}), &json!({"id": [2]})));
    }
}
