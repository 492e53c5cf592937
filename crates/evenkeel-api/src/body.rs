//! Receives and parses request bodies.

use std::time::Duration;

use axum::RequestExt as _;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use futures::StreamExt as _;
use serde_json::Value;

use crate::memory::Intake;
use crate::params::NoParams;
use crate::problem::{Problem, ProblemType};
use crate::state::App;
use crate::weight::{DOCUMENT_WEIGHT_MAX, Weight};

pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Maximum length of a request body that contains many jobs, in bytes.
pub const BULK_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(crate) const BULK_PATH: &str = "/api/v1/jobs/bulk";

/// Returns the maximum body length of a route, in bytes.
pub(crate) fn body_limit(path: Option<&str>) -> usize {
    if path == Some(BULK_PATH) { BULK_BYTES_MAX } else { BODY_BYTES_MAX }
}

/// Extractor for a JSON body with a JSON Content-Type; refuses query parameters.
pub(crate) struct JsonBody(pub(crate) Value);

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(mut request: Request, app: &App) -> Result<Self, Problem> {
        request.extract_parts_with_state::<NoParams, _>(app).await?;
        if !is_json(request.headers()) {
            return Err(not_json());
        }
        let (bytes, intake) = receive_small(request).await?;
        parse(&bytes, &intake).map(Self)
    }
}

/// Extractor for an optional JSON body; refuses query parameters.
pub(crate) struct MaybeJson(pub(crate) Option<Value>);

impl FromRequest<App> for MaybeJson {
    type Rejection = Problem;

    async fn from_request(mut request: Request, app: &App) -> Result<Self, Problem> {
        request.extract_parts_with_state::<NoParams, _>(app).await?;
        let is_json = is_json(request.headers());
        let (bytes, intake) = receive_small(request).await?;
        match bytes.trim_ascii() {
            b"" => Ok(Self(None)),
            // Some clients send an empty object with every request, under any Content-Type.
            b"{}" if !is_json => Ok(Self(None)),
            _ if is_json => parse(&bytes, &intake).map(|value| Self(Some(value))),
            _ => Err(not_json()),
        }
    }
}

/// Extractor for operations without a body; accepts no body, or the empty object that some clients
/// always send.
pub(crate) struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (bytes, _) = receive_small(request).await?;
        match bytes.trim_ascii() {
            b"" | b"{}" => Ok(Self),
            // Ignoring an unexpected body would hide a mistake of the client.
            _ => Err(Problem::parameter("", "this operation takes no body; send none")),
        }
    }
}

fn not_json() -> Problem {
    let detail = "send the header Content-Type: application/json";
    Problem::new(ProblemType::UnsupportedMediaType, detail)
}

/// Receives a body of at most [`BODY_BYTES_MAX`] bytes.
async fn receive_small(request: Request) -> Result<(Bytes, Intake), Problem> {
    let intake = Intake::of(&request)?;
    let bytes = receive(request.into_body(), &intake, BODY_BYTES_MAX).await?;
    Ok((bytes, intake))
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    essence(headers).is_some_and(|essence| {
        essence == "application/json"
            || (essence.starts_with("application/") && essence.ends_with("+json"))
    })
}

/// Returns the Content-Type without its parameters.
fn essence(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(|text| text.trim().to_ascii_lowercase())
}

/// True if the Content-Type is newline-delimited JSON.
pub(crate) fn is_ndjson(headers: &HeaderMap) -> bool {
    essence(headers).is_some_and(|essence| {
        ["application/x-ndjson", "application/ndjson", "application/jsonl"]
            .contains(&essence.as_str())
    })
}

pub(crate) fn too_large(limit: usize) -> Problem {
    Problem::new(ProblemType::BodyTooLarge, format!("the body may have at most {limit} bytes"))
}

/// Receives a request body of at most `limit` bytes within the time limits, and reserves memory for
/// it.
pub(crate) async fn receive(body: Body, intake: &Intake, limit: usize) -> Result<Bytes, Problem> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(too_large(limit));
    }
    // Memory for the whole announced length of a body is reserved before reading. If several large
    // bodies each got half of the memory that they need, none of them could be received completely.
    if !intake.is_received {
        intake.reserve(announced)?;
    }
    let receiving = collect(body, intake, announced, limit);
    match tokio::time::timeout(intake.total, receiving).await {
        Ok(received) => received,
        Err(_) => Err(too_slow(intake.total, "did not arrive")),
    }
}

/// Receives a request body; memory for its first `announced` bytes is already reserved.
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
        let piece = match piece.map_err(|_| too_slow(intake.idle, "stalled"))? {
            Some(Ok(piece)) => piece,
            Some(Err(_)) => {
                let detail = "the body ended early";
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
        // Most request bodies arrive in one chunk, which is used without copying.
        if whole.is_empty() && joined.is_empty() {
            whole = piece;
            continue;
        }
        joined.extend_from_slice(&std::mem::take(&mut whole));
        joined.extend_from_slice(&piece);
    }
}

fn too_slow(limit: Duration, what: &str) -> Problem {
    let detail = format!("the body {what} within {} s; nothing was changed", limit.as_secs_f64());
    Problem::new(ProblemType::RequestTimeout, detail)
}

/// Parses a body and reserves memory for the parsed value.
fn parse(bytes: &[u8], intake: &Intake) -> Result<Value, Problem> {
    let weight = Weight::of(bytes);
    check_weight(weight)?;
    intake.reserve(weight.bytes)?;
    serde_json::from_slice(bytes).map_err(|error| {
        // The error message of serde_json names the line and the column.
        Problem::new(ProblemType::MalformedJson, error.to_string())
    })
}

/// Refuses a JSON document whose parsed form would take too much memory, before parsing it.
pub(crate) fn check_weight(weight: Weight) -> Result<(), Problem> {
    const MIB: usize = 1024 * 1024;
    if weight.bytes <= DOCUMENT_WEIGHT_MAX {
        return Ok(());
    }
    let detail = format!(
        "the document has so many values that it takes about {} MiB of memory; the limit is {} MiB: \
         send fewer or larger values",
        weight.bytes.div_ceil(MIB),
        DOCUMENT_WEIGHT_MAX / MIB
    );
    Err(Problem::new(ProblemType::BodyTooLarge, detail))
}
