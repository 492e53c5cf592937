//! Bodies of requests.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use crate::problem::{Problem, ProblemType};

/// Bodies longer than this are not read.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

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
        if bytes.trim_ascii().is_empty() {
            return Ok(Self(None));
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

fn says_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).map(|text| text.trim());
    essence.is_some_and(|essence| {
        let essence = essence.to_ascii_lowercase();
        essence == "application/json"
            || (essence.starts_with("application/") && essence.ends_with("+json"))
    })
}

fn unread(rejection: BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let detail = format!("at most {BODY_BYTES_MAX} bytes are read");
        Problem::new(ProblemType::BodyTooLarge, detail)
    } else {
        Problem::new(ProblemType::MalformedJson, "the body could not be read to its end")
    }
}
