//! What is wrong with a document, all of it at once.

use serde::Serialize;
use serde_json::Value;

/// One thing that is wrong with a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    /// The field to blame, like `executor_config.url`.
    pub field: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
    /// The character of the field's text that it begins at, counted from 0, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

impl Fault {
    /// A fault of `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), position: None }
    }

    /// The same, which begins at this character of the field's text.
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

/// Collects faults, so that a user mends a document in one go.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// More than this many in one document help nobody.
    pub(crate) const MAX: usize = 50;

    /// Notes a fault.
    pub(crate) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.push(Fault::new(field, message));
    }

    /// Notes a fault that is one already.
    pub(crate) fn push(&mut self, fault: Fault) {
        if self.0.len() < Self::MAX {
            self.0.push(fault);
        }
    }

    /// `value` if nothing was wrong.
    pub(crate) fn or<T>(self, value: Option<T>) -> Result<T, Vec<Fault>> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self.0),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// A value as it is shown in a message: as it was written, but never a page of it.
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
    fn a_long_value_is_shown_in_part() {
        let text = shown(&Value::from("ä".repeat(500)));
        assert_eq!(text.chars().count(), 61);
        assert_eq!(shown(&Value::from(5)), "5");
    }

    #[test]
    fn a_hopeless_document_does_not_get_a_hopeless_answer() {
        let mut faults = Faults::default();
        for n in 0..1000 {
            faults.add(format!("field_{n}"), "is wrong");
        }
        assert_eq!(faults.count(), Faults::MAX);
    }
}
