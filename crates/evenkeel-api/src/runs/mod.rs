//! `/api/v1/runs/{id}/…`: callbacks of services that answered the HTTP call of an attempt with 202.
//! A service authenticates with the token that the HTTP call contained. Callback routes are
//! therefore outside the layer for user tokens, and their handlers check the attempt's token.

pub(crate) mod complete;
pub(crate) mod fail;
pub(crate) mod heartbeat;
pub(crate) mod progress;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use evenkeel_core::AttemptId;
use serde_json::{Map, Value};

use crate::auth::bearer;
use crate::body::MaybeJson;
use crate::params::{PathId, read_id};
use crate::problem::Problem;

/// The attempt that a callback is about, and the token to check.
pub(crate) struct AttemptCaller {
    id: AttemptId,
    token: String,
}

impl<S: Send + Sync> FromRequestParts<S> for AttemptCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let token = bearer(&parts.headers)?.to_owned();
        let PathId(id) = PathId::from_request_parts(parts, state).await?;
        Ok(Self { id: read_id(&id, "attempt")?, token })
    }
}

/// The fields of the optional JSON body of a callback. All callback fields are optional, and
/// unknown fields are refused.
struct CallbackFields(Map<String, Value>);

impl CallbackFields {
    fn new(MaybeJson(body): MaybeJson) -> Result<Self, Problem> {
        match body {
            None | Some(Value::Null) => Ok(Self(Map::new())),
            Some(Value::Object(fields)) => Ok(Self(fields)),
            Some(_) => Err(Problem::parameter("", "the body must be an object, or absent")),
        }
    }

    fn value(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Reads a field with `read`; `rule` is the error message if `read` returns `None`.
    fn read<T>(
        &mut self,
        name: &str,
        rule: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.value(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| Problem::parameter(name, rule))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let text = self.read(name, "must be a string", |value| value.as_str().map(String::from))?;
        // PostgreSQL cannot store NUL in text.
        Ok(text.map(|text| text.replace('\0', "\u{fffd}")))
    }

    fn number(&mut self, name: &str) -> Result<Option<i64>, Problem> {
        let whole = |value: &Value| value.as_i64().filter(|number| *number >= 0);
        self.read(name, "must be a whole number, at least 0", whole)
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        self.read(name, "must be true or false", Value::as_bool)
    }

    fn finish(self, known: &[&str]) -> Result<(), Problem> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => {
                let message = format!("is not known here; the fields are {}", known.join(", "));
                Err(Problem::parameter(name, &message))
            }
        }
    }
}

/// Returns only the last 64 KiB of a long text.
fn tail(text: String) -> String {
    const BYTES_MAX: usize = 64 * 1024;
    if text.len() <= BYTES_MAX {
        return text;
    }
    let mut start = text.len() - BYTES_MAX;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    format!("… {start} bytes left out\n{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_its_end() {
        assert_eq!(tail("short".into()), "short");
        let long = tail("ü".repeat(64 * 1024));
        assert!(long.starts_with("… 65536 bytes left out\nü"));
    }
}
