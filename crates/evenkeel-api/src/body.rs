//! Bodies of requests.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use futures::StreamExt as _;
use serde_json::Value;

use crate::memory::Intake;
use crate::problem::{Problem, ProblemType};
use crate::weight::{DOCUMENT_WEIGHT_MAX, Weight};

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

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !says_json(request.headers()) {
            let detail = "send the header Content-Type: application/json";
            return Err(Problem::new(ProblemType::UnsupportedMediaType, detail));
        }
        let intake = Intake::of(&request)?;
        let bytes = receive(request.into_body(), &intake, BODY_BYTES_MAX).await?;
        parse(&bytes, &intake).map(Self)
    }
}

/// JSON, or nothing at all.
pub(crate) struct MaybeJson(pub(crate) Option<Value>);

impl<S: Send + Sync> FromRequest<S> for MaybeJson {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let says_json = says_json(request.headers());
        let intake = Intake::of(&request)?;
        let bytes = receive(request.into_body(), &intake, BODY_BYTES_MAX).await?;
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
        parse(&bytes, &intake).map(|value| Self(Some(value)))
    }
}

/// No body, or an empty object, which some clients can't help sending.
pub(crate) struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let intake = Intake::of(&request)?;
        let bytes = receive(request.into_body(), &intake, BODY_BYTES_MAX).await?;
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

/// Receives a body of at most `limit` bytes, in time, and reserves memory for it as it comes.
pub(crate) async fn receive(body: Body, intake: &Intake, limit: usize) -> Result<Bytes, Problem> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(too_large(limit));
    }
    // All that is announced, at once: of several large bodies some come in, instead of all getting
    // stuck half-way.
    if !intake.is_received {
        intake.reserve(announced)?;
    }
    let receiving = collect(body, intake, announced, limit);
    match tokio::time::timeout(intake.total, receiving).await {
        Ok(received) => received,
        Err(_) => Err(too_slow(intake.total, "was not there")),
    }
}

/// Receives a body for `announced` bytes of which memory is reserved.
async fn collect(
    body: Body,
    intake: &Intake,
    announced: usize,
    limit: usize,
) -> Result<Bytes, Problem> {
    let mut pieces = body.into_data_stream();
    let mut whole = Bytes::new();
    let mut joined = Vec::new();
    loop {
        let piece = tokio::time::timeout(intake.idle, pieces.next()).await;
        let piece = match piece.map_err(|_| too_slow(intake.idle, "did not go on"))? {
            Some(Ok(piece)) => piece,
            Some(Err(_)) => {
                let detail = "the body could not be read to its end";
                return Err(Problem::new(ProblemType::MalformedJson, detail));
            }
            None if joined.is_empty() => return Ok(whole),
            None => return Ok(joined.into()),
        };
        let received = whole.len().max(joined.len()) + piece.len();
        if received > limit {
            return Err(too_large(limit));
        }
        if !intake.is_received && received > announced {
            intake.reserve(piece.len())?;
        }
        // Most bodies come in one piece, which need not be copied.
        if whole.is_empty() && joined.is_empty() {
            whole = piece;
            continue;
        }
        joined.extend_from_slice(&std::mem::take(&mut whole));
        joined.extend_from_slice(&piece);
    }
}

fn too_slow(limit: Duration, what: &str) -> Problem {
    let detail = format!("the body {what} after {} s; nothing was done", limit.as_secs_f64());
    Problem::new(ProblemType::RequestTimeout, detail)
}

/// Parses a body, with memory reserved for what it becomes.
fn parse(bytes: &[u8], intake: &Intake) -> Result<Value, Problem> {
    let weight = Weight::of(bytes);
    check_weight(weight)?;
    intake.reserve(weight.bytes)?;
    serde_json::from_slice(bytes).map_err(|error| {
        // serde_json says the line and the column.
        Problem::new(ProblemType::MalformedJson, error.to_string())
    })
}

/// Refuses a document that takes too much memory, before it is parsed.
pub(crate) fn check_weight(weight: Weight) -> Result<(), Problem> {
    const MIB: usize = 1024 * 1024;
    if weight.bytes <= DOCUMENT_WEIGHT_MAX {
        return Ok(());
    }
    let detail = format!(
        "it holds so many values that they take about {} MiB of memory; at most {} MiB are taken \
         for one document: send fewer or larger values",
        weight.bytes.div_ceil(MIB),
        DOCUMENT_WEIGHT_MAX / MIB
    );
    Err(Problem::new(ProblemType::BodyTooLarge, detail))
}
