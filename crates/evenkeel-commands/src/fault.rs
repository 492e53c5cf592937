//! The faults of a JSON document, collected so that all faults are reported together.

use serde::Serialize;
use serde_json::Value;

use crate::Object;

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    /// Name of the field, such as `executor_config.url`.
    pub field: String,
    /// What is wrong with the field, and how to correct it.
    pub message: String,
    /// Position of the first wrong character in the text of the field, counted from 0; `None` if
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

impl Fault {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), position: None }
    }

    #[must_use]
    pub fn at(self, position: usize) -> Self {
        Self { position: Some(position), ..self }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Maximum number of reported faults.
    pub(crate) const MAX: usize = 50;

    pub(crate) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.push(Fault::new(field, message));
    }

    pub(crate) fn push(&mut self, fault: Fault) {
        if self.0.len() < Self::MAX {
            self.0.push(fault);
        }
    }

    /// Returns `value` if no faults were collected, and otherwise all collected faults.
    pub(crate) fn or<T>(self, value: Option<T>) -> Result<T, Vec<Fault>> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self.0),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Returns the fields of a JSON object; `what` begins the error message for any other JSON value.
pub(crate) fn object_of<'a>(document: &'a Value, what: &str) -> Result<&'a Object, Vec<Fault>> {
    let message = || format!("{what}, not {}", shown(document));
    document.as_object().ok_or_else(|| vec![Fault::new("", message())])
}

/// Formats a JSON value for an error message, shortened to 60 characters.
pub(crate) fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shortened() {
        let text = shown(&Value::from("ä".repeat(500)));
        assert_eq!(text.chars().count(), 61);
        assert_eq!(shown(&Value::from(5)), "5");
    }

    #[test]
    fn faults_are_limited_in_number() {
        let mut faults = Faults::default();
        for n in 0..1000 {
            faults.add(format!("field_{n}"), "is wrong");
        }
        assert_eq!(faults.count(), Faults::MAX);
    }
}
