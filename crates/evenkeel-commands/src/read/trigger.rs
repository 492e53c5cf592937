//! The document of a request to run now.

use evenkeel_core::order::Priority;
use serde_json::Value;

use super::fields::Fields;
use crate::Fault;
use crate::fault::{Faults, shown};

/// Reads what a run that is asked for is to be like: its priority, if it has one of its own.
pub fn read_trigger(document: Option<&Value>) -> Result<Option<Priority>, Vec<Fault>> {
    let Some(document) = document else { return Ok(None) };
    let Some(object) = document.as_object() else {
        let message = format!("what a run is to be like is an object, not {}", shown(document));
        return Err(vec![Fault::new("", message)]);
    };
    let mut fields = Fields::new(object, "", Faults::default());
    let priority = fields
        .number("priority", 0..=u64::from(Priority::MAX.get()))
        .and_then(|number| Priority::try_from(u8::try_from(number).ok()?).ok());
    fields.finish(|_| None).or(Some(priority))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_an_empty_object_and_null_ask_for_nothing_of_its_own() {
        assert_eq!(read_trigger(None), Ok(None));
        assert_eq!(read_trigger(Some(&json!({}))), Ok(None));
        assert_eq!(read_trigger(Some(&json!({"priority": null}))), Ok(None));
    }

    #[test]
    fn a_priority_is_read() {
        let read = read_trigger(Some(&json!({"priority": 90})));
        assert_eq!(read.map(|priority| priority.map(Priority::get)), Ok(Some(90)));
    }

    #[test]
    fn all_else_is_refused_by_its_name() {
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
