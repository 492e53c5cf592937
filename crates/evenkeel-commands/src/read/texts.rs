//! Readers of texts and JSON values with limited length.

use std::collections::HashSet;

use evenkeel_core::redact;
use serde_json::Value;

use super::fields::Fields;
use super::limits::{NAME_CHARS_MAX, POOL_CHARS_MAX, URL_CHARS_MAX};
use crate::fault::shown;

impl Fields<'_> {
    /// Reads a short text without line breaks.
    pub(crate) fn label(&mut self, name: &'static str) -> Option<String> {
        let text = self.text(name)?;
        if text.trim().is_empty() {
            self.refuse(name, format!("{text:?} is blank; leave it out or write something"))
        } else {
            self.bounded(name, text, NAME_CHARS_MAX, char::is_control)
        }
    }

    /// Reads a text that may have several lines.
    pub(super) fn multiline(&mut self, name: &'static str, chars_max: usize) -> Option<String> {
        let text = self.text(name)?;
        let is_forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        self.bounded(name, text, chars_max, is_forbidden)
    }

    /// Reads an http or https URL without credentials.
    pub(crate) fn url(&mut self, name: &'static str) -> Option<String> {
        let text = self.text(name)?;
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
        let is_address = host.is_some_and(|host| !host.is_empty() && !host.contains('@'));
        if !is_address || text.contains(char::is_whitespace) {
            let message = format!(
                "{} is not an address; write it like https://example.com/, without a password in it",
                shown(&text.into()),
            );
            return self.refuse(name, message);
        }
        if redact::is_hidden_url(text) {
            let message = format!(
                "{} holds *** in place of a redacted value; write the whole address",
                shown(&text.into())
            );
            return self.refuse(name, message);
        }
        self.bounded(name, text, URL_CHARS_MAX, char::is_control)
    }

    pub(super) fn pool(&mut self, name: &'static str) -> Option<String> {
        let text = self.text(name)?;
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if (1..=POOL_CHARS_MAX).contains(&text.len()) && text.chars().all(is_legal) {
            return Some(text.into());
        }
        let message = format!(
            "{} is not the name of a pool: 1 to {POOL_CHARS_MAX} letters, digits, dots, dashes and \
             underscores",
            shown(&text.into()),
        );
        self.refuse(name, message)
    }

    /// Reads a list of names and drops repeated names.
    pub(super) fn names(&mut self, name: &'static str, items_max: usize) -> Option<Vec<String>> {
        let mut names = self.each(name, items_max, |item| {
            let wrong = match item.as_str() {
                None => "is not a text; put it in quotes",
                Some(text) if text.trim().is_empty() => "is blank",
                Some(text) if text.chars().count() > NAME_CHARS_MAX => {
                    "is longer than any node's name"
                }
                Some(text) if text.contains(char::is_control) => "holds control characters",
                Some(text) => return Ok(text.to_owned()),
            };
            Err(format!("{} {wrong}", shown(item)))
        });
        let mut known = HashSet::new();
        names.retain(|name| known.insert(name.clone()));
        Some(names)
    }

    /// Reads a JSON object. An empty JSON object counts as an absent field.
    pub(super) fn object(&mut self, name: &'static str, bytes_max: usize) -> Option<Value> {
        let object = self.convert(name, "is not an object", Value::as_object)?;
        if object.is_empty() { None } else { self.json(name, bytes_max) }
    }

    pub(super) fn json(&mut self, name: &'static str, bytes_max: usize) -> Option<Value> {
        let value = self.value(name)?;
        let bytes = value.to_string().len();
        if bytes > bytes_max {
            return self
                .refuse(name, format!("has {bytes} bytes; at most {bytes_max} are allowed"));
        }
        Some(value.clone())
    }

    fn bounded(
        &mut self,
        name: &'static str,
        text: &str,
        chars_max: usize,
        is_forbidden: impl Fn(char) -> bool,
    ) -> Option<String> {
        let chars = text.chars().count();
        if chars > chars_max {
            self.refuse(name, format!("has {chars} characters; at most {chars_max} are allowed"))
        } else if text.contains(is_forbidden) {
            let text = shown(&text.into());
            self.refuse(name, format!("{text} holds control characters; remove them"))
        } else {
            Some(text.into())
        }
    }
}
