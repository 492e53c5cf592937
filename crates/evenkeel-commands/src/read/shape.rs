//! Checks that apply to every value of a JSON document, at any nesting depth.

use serde_json::Value;

use super::limits::DEPTH_MAX;
use crate::Object;
use crate::fault::Faults;

/// Refuses values that a store cannot save or read back: NUL characters and deeply nested values.
pub(super) fn check(document: &Object, faults: &mut Faults) {
    for (field, value) in document {
        check_text(field, field, faults);
        check_value(field, value, 2, faults);
    }
}

fn check_value(field: &str, value: &Value, depth: usize, faults: &mut Faults) {
    if depth > DEPTH_MAX && (value.is_array() || value.is_object()) {
        faults.add(field, format!("is nested more than {DEPTH_MAX} levels deep; make it flatter"));
        return;
    }
    match value {
        Value::String(text) => check_text(field, text, faults),
        Value::Array(items) => {
            for item in items {
                check_value(field, item, depth + 1, faults);
            }
        }
        Value::Object(object) => {
            for (key, value) in object {
                check_text(field, key, faults);
                check_value(field, value, depth + 1, faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn check_text(field: &str, text: &str, faults: &mut Faults) {
    if text.contains('\0') {
        let field = field.replace('\0', "\u{fffd}");
        faults.add(field, "holds a NUL character (\\u0000), which can't be stored; remove it");
    }
}
