//! Bodies of requests.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use crate::problem::{Problem, ProblemType};

/// Bodies longer than this are not read.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Bodies with many jobs may be this long.
pub const BULK_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The route that takes many jobs.
pub(crate) const BULK_PATH: &str = "/api/v1/jobs/bulk";

/// How long the body of a request to a route may be.
pub(crate) fn body_limit(path: Option<&str>) -> usize {
    if path == Some(BULK_PATH) { BULK_BYTES_MAX } else { BODY_BYTES_MAX }
}

/// Any JSON, from a body that says it is JSON.
pub(crate) struct JsonBody(pub(crate) Value);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !says_json(request.headers()) {
            let detail = "send the header Content-Type: application/json";
            return Err(Problem::new(ProblemType::UnsupportedMediaType, detail));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            // serde_json says the line and the column.
            Problem::new(ProblemType::MalformedJson, error.to_string())
        })
    }
}

/// JSON, or nothing at all.
pub(crate) struct MaybeJson(pub(crate) Option<Value>);

impl<S: Send + Sync> FromRequest<S> for MaybeJson {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let says_json = says_json(request.headers());
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        match bytes.trim_ascii() {
            b"" => return Ok(Self(None)),
            // Some clients can't help sending an empty object, whatever they call it.
            b"{}" if !says_json => return Ok(Self(None)),
            _ => {}
        }
        if !says_json {
            let detail = "send the header Content-Type: application/json";
            return Err(Problem::new(ProblemType::UnsupportedMediaType, detail));
        }
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| Problem::new(ProblemType::MalformedJson, error.to_string()))?;
        Ok(Self(Some(value)))
    }
}

/// No body, or an empty object, which some clients can't help sending.
pub(crate) struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        match bytes.trim_ascii() {
            b"" | b"{}" => Ok(Self),
            // What is sent and not heeded would be found out much later.
            _ => Err(Problem::parameter("", "this takes no body; send none")),
        }
    }
}

pub(crate) fn says_json(headers: &HeaderMap) -> bool {
    essence(headers).is_some_and(|essence| {
        essence == "application/json"
            || (essence.starts_with("application/") && essence.ends_with("+json"))
    })
}

/// What a body is said to be, without parameters.
fn essence(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(|text| text.trim().to_ascii_lowercase())
}

/// A body that is one JSON document after the other, each on a line.
pub(crate) fn says_ndjson(headers: &HeaderMap) -> bool {
    essence(headers).is_some_and(|essence| {
        ["application/x-ndjson", "application/ndjson", "application/jsonl"]
            .contains(&essence.as_str())
    })
}

pub(crate) fn too_large(limit: usize) -> Problem {
    Problem::new(ProblemType::BodyTooLarge, format!("at most {limit} bytes are read"))
}

pub(crate) fn unread(rejection: BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        too_large(BODY_BYTES_MAX)
    } else {
        Problem::new(ProblemType::MalformedJson, "the body could not be read to its end")
    }
}
