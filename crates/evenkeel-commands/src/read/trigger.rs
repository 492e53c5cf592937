//! Parses the JSON document of a trigger request.

use evenkeel_core::order::Priority;
use serde_json::Value;

use super::fields::Fields;
use crate::Fault;

/// Reads the priority of a triggered run. If the trigger request contains no priority, the run has
/// the priority of its job.
pub fn read_trigger(document: Option<&Value>) -> Result<Option<Priority>, Vec<Fault>> {
    let Some(document) = document else { return Ok(None) };
    Fields::read_object(document, "a trigger is an object", |fields| {
        Some(fields.priority("priority"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn trigger_without_a_priority_has_none() {
        assert_eq!(read_trigger(None), Ok(None));
        assert_eq!(read_trigger(Some(&json!({}))), Ok(None));
        assert_eq!(read_trigger(Some(&json!({"priority": null}))), Ok(None));
    }

    #[test]
    fn trigger_has_the_given_priority() {
        let read = read_trigger(Some(&json!({"priority": 90})));
        assert_eq!(read.map(|priority| priority.map(Priority::get)), Ok(Some(90)));
    }

    #[test]
    fn trigger_with_a_wrong_field_is_refused() {
        for (document, field) in [
            (json!([1]), ""),
            (json!({"priority": 101}), "priority"),
            (json!({"priority": "high"}), "priority"),
            (json!({"prioritty": 5}), "prioritty"),
        ] {
            let faults = read_trigger(Some(&document)).unwrap_err();
            assert_eq!(faults[0].field, field, "{document}");
        }
    }
}
