//! What people call a job and know about it.

use evenkeel_core::{About, redact};
use serde_json::Value;

use super::fields::Fields;
use super::limits::{
    DESCRIPTION_CHARS_MAX, METADATA_BYTES_MAX, NAME_CHARS_MAX, NUMBER_MAX, URL_CHARS_MAX,
};
use crate::fault::shown;

pub(super) fn read(fields: &mut Fields<'_>) -> About {
    About {
        name: label(fields, "name"),
        configuration: label(fields, "configuration"),
        description: description(fields),
        source_id: label(fields, "source_id"),
        source_name: label(fields, "source_name"),
        url: url(fields),
        target: target(fields),
        // Known only once the schedule has been read.
        schedule_time: None,
        metadata: object(fields, "metadata", METADATA_BYTES_MAX),
        // Known only once it is known what the job is about.
        dedup: None,
        // Known only once the executor has been read.
        follows_target: false,
    }
}

/// The number of what it is about.
fn target(fields: &mut Fields<'_>) -> Option<i64> {
    fields.number("target", 1..=NUMBER_MAX).map(u64::cast_signed)
}

/// A short text on one line.
pub(crate) fn label(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    let text = fields.text(name)?;
    if text.trim().is_empty() {
        fields.fault(name, format!("{text:?} is blank; leave it out or write something"));
        None
    } else {
        bounded(fields, name, text, NAME_CHARS_MAX, char::is_control)
    }
}

/// A longer text, which may have lines.
fn description(fields: &mut Fields<'_>) -> Option<String> {
    let text = fields.text("description")?;
    let forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    bounded(fields, "description", text, DESCRIPTION_CHARS_MAX, forbidden)
}

pub(crate) fn url(fields: &mut Fields<'_>) -> Option<String> {
    let text = fields.text("url")?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let is_address = host.is_some_and(|host| !host.is_empty() && !host.contains('@'));
    if !is_address || text.contains(char::is_whitespace) {
        let message = format!(
            "{} is not an address; write it like https://example.com/, without a password in it",
            shown(&text.into()),
        );
        fields.fault("url", message);
        return None;
    }
    if redact::is_hidden_url(text) {
        let message =
            format!("{} holds *** where a value was hidden; write it whole", shown(&text.into()));
        fields.fault("url", message);
        return None;
    }
    bounded(fields, "url", text, URL_CHARS_MAX, char::is_control)
}

fn bounded(
    fields: &mut Fields<'_>,
    name: &'static str,
    text: &str,
    chars_max: usize,
    forbidden: impl Fn(char) -> bool,
) -> Option<String> {
    let chars = text.chars().count();
    if chars > chars_max {
        fields.fault(name, format!("has {chars} characters; at most {chars_max} are kept"));
        None
    } else if text.contains(forbidden) {
        let message = format!("{} holds control characters; take them out", shown(&text.into()));
        fields.fault(name, message);
        None
    } else {
        Some(text.into())
    }
}

/// An object of bounded size. An empty one is the same as none.
pub(super) fn object(fields: &mut Fields<'_>, name: &'static str, bytes_max: usize) -> Value {
    let Some(value) = fields.value(name) else { return Value::Null };
    match value.as_object() {
        None => fields.fault(name, format!("{} is not an object", shown(value))),
        Some(object) if object.is_empty() => {}
        Some(_) => {
            if fits(fields, name, value, bytes_max) {
                return value.clone();
            }
        }
    }
    Value::Null
}

/// Is the value small enough?
pub(super) fn fits(
    fields: &mut Fields<'_>,
    name: &'static str,
    value: &Value,
    bytes_max: usize,
) -> bool {
    let bytes = value.to_string().len();
    if bytes > bytes_max {
        fields.fault(name, format!("has {bytes} bytes; at most {bytes_max} are kept"));
    }
    bytes <= bytes_max
}
