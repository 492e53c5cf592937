//! The call a job's configuration describes.

use evenkeel_outbound::reqwest;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;

use crate::config::{ConfigFault, Fields};

/// What to call, and which answers are good.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    AnySuccess,
    OneOf(Vec<u16>),
}

/// Headers a job may not set: ours, and those that say where a message ends.
const RESERVED: [&str; 8] = [
    "idempotency-key",
    "connection",
    "content-length",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Call {
    pub(super) fn parse(config: &Value) -> Result<Self, ConfigFault> {
        let known = ["url", "method", "headers", "expected_status"];
        let fields = Fields::read(config, &known)?;
        Ok(Self {
            url: parse_url(&fields)?,
            method: parse_method(&fields)?,
            headers: parse_headers(&fields)?,
            expected: parse_expected(&fields)?,
        })
    }

    pub(super) fn is_expected(&self, status: StatusCode) -> bool {
        match &self.expected {
            Expected::AnySuccess => status.is_success(),
            Expected::OneOf(statuses) => statuses.contains(&status.as_u16()),
        }
    }
}

fn parse_url(fields: &Fields<'_>) -> Result<Url, ConfigFault> {
    let text = fields.text("url")?.ok_or_else(|| ConfigFault::new("url", "is required"))?;
    let url: Url =
        text.parse().map_err(|error| ConfigFault::new("url", format!("is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ConfigFault::new("url", "must start with http:// or https://"));
    }
    Ok(url)
}

fn parse_method(fields: &Fields<'_>) -> Result<Method, ConfigFault> {
    let Some(text) = fields.text("method")? else { return Ok(Method::POST) };
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let upper = text.to_ascii_uppercase();
    if !known.contains(&upper.as_str()) {
        let message = format!("must be one of {}", known.join(", "));
        return Err(ConfigFault::new("method", message));
    }
    upper.parse().map_err(|_| ConfigFault::new("method", "is not an HTTP method"))
}

fn parse_headers(fields: &Fields<'_>) -> Result<HeaderMap, ConfigFault> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields.texts("headers")? {
        let fault = |message: &str| ConfigFault::new(&format!("headers.{name}"), message);
        let name: HeaderName = name.parse().map_err(|_| fault("is not a header name"))?;
        if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("x-evenkeel-") {
            return Err(fault("is set by Evenkeel"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| fault("is not a header value"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn parse_expected(fields: &Fields<'_>) -> Result<Expected, ConfigFault> {
    let Some(value) = fields.get("expected_status") else { return Ok(Expected::AnySuccess) };
    let status = |value: &Value| {
        let status = value.as_u64().filter(|n| (100..=599).contains(n));
        status.and_then(|n| u16::try_from(n).ok())
    };
    let statuses: Option<Vec<u16>> = match value {
        Value::Array(list) => list.iter().map(status).collect(),
        one => status(one).map(|n| vec![n]),
    };
    match statuses {
        Some(statuses) if !statuses.is_empty() => Ok(Expected::OneOf(statuses)),
        _ => {
            let message = "must be a status from 100 to 599, or a list of them";
            Err(ConfigFault::new("expected_status", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bad_configuration_names_the_field_to_blame() {
        let url = "https://example.com/";
        for (config, field) in [
            (json!({}), "executor_config.url"),
            (json!(null), "executor_config.url"),
            (json!([]), "executor_config"),
            (json!({"url": 1}), "executor_config.url"),
            (json!({"url": "example.com"}), "executor_config.url"),
            (json!({"url": "ftp://example.com/"}), "executor_config.url"),
            (json!({"url": "http://"}), "executor_config.url"),
            (json!({"url": url, "verb": "GET"}), "executor_config.verb"),
            (json!({"url": url, "method": "BREW"}), "executor_config.method"),
            (json!({"url": url, "method": "CONNECT"}), "executor_config.method"),
            (json!({"url": url, "headers": []}), "executor_config.headers"),
            (json!({"url": url, "headers": {"a b": "c"}}), "executor_config.headers.a b"),
            (json!({"url": url, "headers": {"a": 1}}), "executor_config.headers.a"),
            (json!({"url": url, "headers": {"a": "b\nc"}}), "executor_config.headers.a"),
            (
                json!({"url": url, "headers": {"Content-Length": "0"}}),
                "executor_config.headers.Content-Length",
            ),
            (
                json!({"url": url, "headers": {"X-Evenkeel-Fence": "9"}}),
                "executor_config.headers.X-Evenkeel-Fence",
            ),
            (json!({"url": url, "expected_status": 99}), "executor_config.expected_status"),
            (json!({"url": url, "expected_status": []}), "executor_config.expected_status"),
            (json!({"url": url, "expected_status": [200, "x"]}), "executor_config.expected_status"),
        ] {
            assert_eq!(Call::parse(&config).unwrap_err().field, field, "{config}");
        }
    }

    #[test]
    fn by_default_it_posts_and_takes_any_success() {
        let call = Call::parse(&json!({"url": "https://example.com/"})).unwrap();
        assert_eq!(call.method, Method::POST);
        assert!(call.is_expected(StatusCode::NO_CONTENT));
        assert!(!call.is_expected(StatusCode::FOUND));
    }

    #[test]
    fn only_the_expected_statuses_are_good() {
        let config =
            json!({"url": "https://e.com/", "method": "get", "expected_status": [404, 302]});
        let call = Call::parse(&config).unwrap();
        assert_eq!(call.method, Method::GET);
        assert!(call.is_expected(StatusCode::NOT_FOUND) && call.is_expected(StatusCode::FOUND));
        assert!(!call.is_expected(StatusCode::OK));
    }
}
