//! Reading an executor's configuration, with the blame on the right field.

use evenkeel_core::executor::ExecutorDeclaration;
use serde_json::{Map, Value};

/// A configuration an executor does not accept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ConfigFault {
    /// The field to blame, like `executor_config.url`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl ConfigFault {
    /// A fault of the field `name` of the configuration; of the whole of it, if that is empty.
    pub(crate) fn new(name: &str, message: impl Into<String>) -> Self {
        let dot = if name.is_empty() { "" } else { "." };
        Self { field: format!("executor_config{dot}{name}"), message: message.into() }
    }
}

/// The fields of a configuration.
pub(crate) struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    /// Reads an object that has only declared fields. Null counts as an empty object.
    pub(crate) fn read(
        config: &'a Value,
        declaration: &ExecutorDeclaration,
    ) -> Result<Self, ConfigFault> {
        let known = declaration.field_names();
        let fields = match config {
            Value::Null => None,
            Value::Object(fields) => Some(fields),
            _ => return Err(ConfigFault::new("", "must be an object")),
        };
        let stranger = fields.and_then(|f| f.keys().find(|key| !known.contains(&key.as_str())));
        match stranger {
            // A misspelt field that is silently ignored is found out in production.
            Some(key) => Err(ConfigFault::new(key, format!("is not one of {}", known.join(", ")))),
            None => Ok(Self(fields)),
        }
    }

    /// A field, if it is there and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.and_then(|fields| fields.get(name)).filter(|value| !value.is_null())
    }

    /// A text, if it is there.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, ConfigFault> {
        self.get(name)
            .map(|value| value.as_str().ok_or_else(|| ConfigFault::new(name, "must be a string")))
            .transpose()
    }

    /// A map of names to texts; empty if it is not there.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<(&'a str, &'a str)>, ConfigFault> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let map = value
            .as_object()
            .ok_or_else(|| ConfigFault::new(name, "must be an object of strings"))?;
        map.iter()
            .map(|(key, value)| match value.as_str() {
                Some(text) => Ok((key.as_str(), text)),
                None => Err(ConfigFault::new(&format!("{name}.{key}"), "must be a string")),
            })
            .collect()
    }
}
