//! The request body.

use bytes::Bytes;
use evenkeel_core::executor::{ConfigFault, Fields};
use evenkeel_outbound::reqwest::header::HeaderValue;
use serde_json::Value;

use crate::template::{Escape, FILLED_BYTES_MAX, Template, Values};

/// Where the body of an HTTP request comes from.
#[derive(Debug)]
pub(super) enum Body<'a> {
    /// The payload as JSON, or no request body if the payload is null.
    Payload,
    /// JSON whose strings are templates.
    Json(&'a Value),
    Text(Template),
}

/// A request body with its default `Content-Type`.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) bytes: Bytes,
    pub(super) kind: HeaderValue,
}

impl<'a> Body<'a> {
    pub(super) fn parse(fields: &Fields<'a>) -> Result<Self, ConfigFault> {
        match (fields.get("body"), fields.text("body_text")?) {
            (Some(_), Some(_)) => {
                Err(ConfigFault::new("body_text", "can't be combined with body; leave one out"))
            }
            (Some(json), None) => Ok(Self::Json(json)),
            (None, Some(text)) => {
                let template = Template::parse(text);
                Ok(Self::Text(template.map_err(|message| ConfigFault::new("body_text", message))?))
            }
            (None, None) => Ok(Self::Payload),
        }
    }

    pub(super) fn fill(&self, values: &Values<'_>) -> Result<Option<Content>, ConfigFault> {
        let content = |bytes: Vec<u8>, kind| {
            Some(Content { bytes: bytes.into(), kind: HeaderValue::from_static(kind) })
        };
        match self {
            Self::Payload if values.payload.is_null() => Ok(None),
            Self::Payload => Ok(content(values.payload.to_string().into(), "application/json")),
            Self::Json(json) => {
                let mut bytes = Vec::new();
                write(json, values, &mut bytes).map_err(|fault| {
                    ConfigFault::new(&format!("body{}", fault.path), fault.message)
                })?;
                Ok(content(bytes, "application/json"))
            }
            Self::Text(template) => {
                let text = template
                    .fill(values, Escape::None)
                    .map_err(|message| ConfigFault::new("body_text", message))?;
                Ok(content(text.into(), "text/plain; charset=utf-8")
                    .filter(|c| !c.bytes.is_empty()))
            }
        }
    }
}

/// An error, and the path of the JSON value that caused the error.
struct Fault {
    path: String,
    message: String,
}

impl Fault {
    fn below(mut self, step: impl std::fmt::Display) -> Self {
        self.path.insert_str(0, &format!(".{step}"));
        self
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self { path: String::new(), message }
    }
}

/// Writes `value` as JSON with its templates filled in. A value that a template inserts stays one
/// JSON value, whatever characters the value holds.
fn write(value: &Value, values: &Values<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    match value {
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                out.push(if n == 0 { b'[' } else { b',' });
                write(item, values, out).map_err(|fault| fault.below(n))?;
            }
            out.extend(if items.is_empty() { &b"[]"[..] } else { b"]" });
        }
        Value::Object(fields) => {
            for (n, (name, field)) in fields.iter().enumerate() {
                out.push(if n == 0 { b'{' } else { b',' });
                put(name, out)?;
                out.push(b':');
                write(field, values, out).map_err(|fault| fault.below(name))?;
            }
            out.extend(if fields.is_empty() { &b"{}"[..] } else { b"}" });
        }
        Value::String(text) if text.contains("{{") => {
            let template = Template::parse(text)?;
            match template.whole(values) {
                Some(whole) => put(whole?, out)?,
                None => put(&template.fill(values, Escape::None)?, out)?,
            }
        }
        plain => put(plain, out)?,
    }
    if out.len() > FILLED_BYTES_MAX {
        return Err(format!("is longer than {FILLED_BYTES_MAX} bytes once filled in").into());
    }
    Ok(())
}

fn put(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) -> Result<(), Fault> {
    serde_json::to_writer(out, value).map_err(|error| error.to_string().into())
}

#[cfg(test)]
mod tests {
    use evenkeel_core::lease::Fence;
    use serde_json::json;

    use super::*;

    fn fill(body: Value, payload: &Value) -> Result<Value, ConfigFault> {
        let values = Values { fence: Fence(3), ..Values::example(payload) };
        let content = Body::Json(&body).fill(&values)?.unwrap();
        Ok(serde_json::from_slice(&content.bytes).unwrap())
    }

    #[test]
    fn filled_in_body_stays_valid_json() {
        let payload = json!({"q": "\"},{\"admin\": true, \\", "n": [1, {"a": null}]});
        let body = json!({
            "text": "say {{payload.q}}", "whole": "{{payload.q}}", "number": "{{payload.n.0}}",
            "object": "{{ payload.n.1 }}", "inside": "{{payload.n}}!", "fence": "{{fence}}",
            "plain": [1, null, [], {}, true, "x"], "{{key}}": 1,
        });
        let filled = fill(body, &payload).unwrap();
        assert_eq!(
            filled,
            json!({
                "text": "say \"},{\"admin\": true, \\", "whole": "\"},{\"admin\": true, \\",
                "number": 1, "object": {"a": null}, "inside": "[1,{\"a\":null}]!", "fence": "3",
                "plain": [1, null, [], {}, true, "x"], "{{key}}": 1,
            })
        );
    }

    #[test]
    fn fault_in_a_body_names_its_path() {
        let fault = fill(json!({"a": [1, {"b": "{{payload.x}}"}]}), &json!({})).unwrap_err();
        assert_eq!(fault.field, "executor_config.body.a.1.b");
        let fault = fill(json!("{{nonsense}}"), &json!({})).unwrap_err();
        assert_eq!(fault.field, "executor_config.body");
    }

    #[test]
    fn filled_in_body_has_a_size_limit() {
        let payload = json!("x".repeat(1024 * 1024));
        let fault = fill(json!(vec!["{{payload}}"; 9]), &payload).unwrap_err();
        assert!(fault.message.contains("longer than"), "{fault}");
    }
}
