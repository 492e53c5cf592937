//! Readers of `executor_config` whose errors name the field.

use evenkeel_core::executor::ExecutorDeclaration;
use serde_json::{Map, Value};

/// An error in `executor_config`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ConfigFault {
    /// The path of the field, such as `executor_config.url`.
    pub field: String,
    pub message: String,
}

impl ConfigFault {
    /// Makes a fault of the field `name`, or of the whole configuration if `name` is empty.
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
        let unknown = fields.and_then(|f| f.keys().find(|key| !known.contains(&key.as_str())));
        match unknown {
            // Ignoring a misspelt field would hide the mistake until production.
            Some(key) => Err(ConfigFault::new(key, format!("is not one of {}", known.join(", ")))),
            None => Ok(Self(fields)),
        }
    }

    /// Returns a field that is set and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.and_then(|fields| fields.get(name)).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, ConfigFault> {
        self.get(name)
            .map(|value| value.as_str().ok_or_else(|| ConfigFault::new(name, "must be a string")))
            .transpose()
    }

    /// Reads an object of strings; an absent field counts as empty.
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
