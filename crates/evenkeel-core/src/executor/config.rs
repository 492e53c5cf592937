//! Reads fields of `executor_config`; errors name the faulty field.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::ConfigField;

/// An error in `executor_config`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ConfigFault {
    /// The path of the field, such as `executor_config.url`.
    pub field: String,
    pub message: String,
}

impl ConfigFault {
    /// Creates an error for the field `name`, or for the whole configuration if `name` is empty.
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        let dot = if name.is_empty() { "" } else { "." };
        Self { field: format!("executor_config{dot}{name}"), message: message.into() }
    }
}

/// The fields of a configuration, or of an object inside it.
pub struct Fields<'a> {
    fields: Option<&'a Map<String, Value>>,
    /// The path of the object inside the configuration, such as `fields.price.`; empty for the
    /// configuration itself.
    path: String,
}

impl<'a> Fields<'a> {
    /// Reads the object `config` and returns an error if it has undeclared fields. Null counts as
    /// an empty object.
    pub fn read(config: &'a Value, declared: &[ConfigField]) -> Result<Self, ConfigFault> {
        let known: Vec<&str> = declared.iter().map(|field| field.name).collect();
        match config {
            Value::Null => Ok(Self { fields: None, path: String::new() }),
            Value::Object(fields) => Self::nested("", fields, &known),
            _ => Err(ConfigFault::new("", "must be an object")),
        }
    }

    /// Reads the object at `path` and returns an error if it has unknown fields.
    pub fn nested(
        path: &str,
        fields: &'a Map<String, Value>,
        known: &[&str],
    ) -> Result<Self, ConfigFault> {
        let path = if path.is_empty() { String::new() } else { format!("{path}.") };
        match fields.keys().find(|key| !known.contains(&key.as_str())) {
            // Unknown fields are errors. If misspelt fields were ignored, users might notice the
            // mistake only in production.
            Some(key) => {
                let message = format!("is not one of {}", known.join(", "));
                Err(ConfigFault::new(&format!("{path}{key}"), message))
            }
            None => Ok(Self { fields: Some(fields), path }),
        }
    }

    pub fn fault(&self, name: &str, message: impl Into<String>) -> ConfigFault {
        ConfigFault::new(&format!("{}{name}", self.path), message)
    }

    /// Returns the value of a field, or `None` if the field is absent or null.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.and_then(|fields| fields.get(name)).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, ConfigFault> {
        self.get(name)
            .map(|value| value.as_str().ok_or_else(|| self.fault(name, "must be a string")))
            .transpose()
    }

    /// Reads an object whose values are strings; an absent field counts as an empty object.
    pub fn texts(&self, name: &str) -> Result<Vec<(&'a str, &'a str)>, ConfigFault> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let map =
            value.as_object().ok_or_else(|| self.fault(name, "must be an object of strings"))?;
        map.iter()
            .map(|(key, value)| match value.as_str() {
                Some(text) => Ok((key.as_str(), text)),
                None => Err(self.fault(&format!("{name}.{key}"), "must be a string")),
            })
            .collect()
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, ConfigFault> {
        self.get(name)
            .map(|value| value.as_bool().ok_or_else(|| self.fault(name, "must be true or false")))
            .transpose()
    }

    pub fn number(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ConfigFault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64().filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let (min, max) = range.into_inner();
                let message = format!("must be a whole number from {min} to {max}, not {value}");
                Err(self.fault(name, message))
            }
        }
    }
}
