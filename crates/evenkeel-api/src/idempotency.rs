//! `Idempotency-Key`: a POST request that is sent twice with the same key is executed only once.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::{Answered, Begun, KeyedRequest, Now, Scope, Store};
use sha2::{Digest as _, Sha256};
use tracing::Instrument as _;

use crate::auth::Caller;
use crate::body::{BULK_PATH, body_limit, is_ndjson, receive};
use crate::memory::Intake;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// The header with the key.
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Response header that marks a stored response of an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Maximum length of an idempotency key, in characters.
const KEY_CHARS_MAX: usize = 255;
/// Maximum length of a stored response, in bytes.
const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// A request that is in progress for longer than this duration counts as abandoned, because its
/// node has probably crashed.
const PATIENCE: Span = Span::from_secs(120);
/// A request with many items starts no new item after this time, so that the request finishes
/// within [`PATIENCE`].
pub(crate) const WORKING_TIME: Span = Span::from_secs(90);

/// Marks a response that contains a secret; such a response is shown once and never stored.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ShownOnce;

/// Marks a response that is not stored, because repeating the request may give another result.
#[derive(Copy, Clone, Debug)]
pub(crate) struct NotFinal;

/// Executes a request with an idempotency key once, and answers repetitions with the stored
/// response.
pub(crate) async fn once(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    // The handler of a stream of job lines claims one idempotency key per batch itself.
    let is_stream = path == Some(BULK_PATH) && is_ndjson(request.headers());
    if *request.method() != Method::POST || is_stream {
        return Ok(next.run(request).await);
    }
    let limit = body_limit(path);
    let Some(key) = read_key(request.headers())? else { return Ok(next.run(request).await) };
    // A request without a caller is refused, because its route lacks the authentication layer.
    let Some(scope) = request.extensions().get::<Caller>().map(|caller| caller.scope) else {
        return Err(Problem::new(ProblemType::Unauthorized, "no token was checked"));
    };
    let mut intake = Intake::of(&request)?;
    let (mut parts, body) = request.into_parts();
    let body = receive(body, &intake, limit).await?;
    intake.is_received = true;
    parts.extensions.insert(intake.clone());
    let claim = match begin(&app, scope, key, &parts.uri, &body).await? {
        Beginning::New(claim) => claim,
        Beginning::Repeated(answer) => return Ok(replay(answer)),
    };
    let request = Request::from_parts(parts, Body::from(body));
    // The request runs to completion even if the client disconnects, because the client may repeat
    // it to get the response.
    let work = async move {
        let response = next.run(request).await;
        drop(intake);
        claim.store_answer(response).await
    };
    tokio::spawn(work.instrument(tracing::Span::current())).await.map_err(|panic| {
        tracing::error!(
            error = &panic as &dyn std::error::Error,
            "a request handler panicked; answering 500"
        );
        Problem::internal()
    })
}

/// The state of a key.
pub(crate) enum Beginning {
    /// The idempotency key is new, so the request is executed.
    New(Claim),
    /// Stored response of an earlier request with the same idempotency key.
    Repeated(Answered),
}

/// A claimed idempotency key. `end` stores the response; dropping the claim without `end` frees the
/// idempotency key.
pub(crate) struct Claim {
    store: Arc<dyn Store>,
    scope: Scope,
    key: String,
    begun_at: Timestamp,
    is_ended: bool,
}

/// Claims an idempotency key, or returns the stored response of an earlier request with the same
/// key.
pub(crate) async fn begin(
    app: &App,
    scope: Scope,
    key: String,
    uri: &Uri,
    body: &[u8],
) -> Result<Beginning, Problem> {
    let mut hash = Sha256::new();
    let query = uri.query().unwrap_or_default();
    for part in [Method::POST.as_str().as_bytes(), uri.path().as_bytes(), query.as_bytes(), body] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let request = KeyedRequest { key, fingerprint: hash.finalize().into(), patience: PATIENCE };
    match app.store.begin_request(&scope, &request, Now::Database).await? {
        Begun::Fresh(begun_at) => {
            let KeyedRequest { key, .. } = request;
            let store = Arc::clone(&app.store);
            Ok(Beginning::New(Claim { store, scope, key, begun_at, is_ended: false }))
        }
        Begun::Ended(answer) => Ok(Beginning::Repeated(answer)),
        Begun::InProgress => Err(Problem::new(
            ProblemType::RequestUnderWay,
            "a request with this Idempotency-Key is in progress; try again in a moment",
        )),
        Begun::KeyReused => {
            let detail = "another request had this Idempotency-Key; a key belongs to one request: \
                          its method, path, query and body";
            Err(Problem::new(ProblemType::IdempotencyKeyReused, detail))
        }
    }
}

impl Claim {
    /// Stores a response under the claimed key and returns it.
    async fn store_answer(self, response: Response) -> Response {
        let (parts, body) = response.into_parts();
        let Ok(body) = to_bytes(body, usize::MAX).await else {
            self.end(None).await;
            return Problem::new(ProblemType::Internal, "the answer could not be read")
                .into_response();
        };
        let secret = parts.extensions.get::<ShownOnce>().is_some();
        let is_final = parts.extensions.get::<NotFinal>().is_none();
        let answer = stored_answer(parts.status, &parts.headers, &body, secret);
        self.end(answer.filter(|_| is_final)).await;
        Response::from_parts(parts, Body::from(body))
    }

    /// Stores the response that repetitions of the request get; `None` frees the idempotency key
    /// instead.
    pub(crate) async fn end(mut self, answer: Option<Answered>) {
        self.is_ended = true;
        let ended = self.store.end_request(&self.scope, &self.key, self.begun_at, answer).await;
        if let Err(error) = ended {
            // The request itself succeeded, so its response is sent; repetitions fail until the key
            // expires.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot store the response to a request with an idempotency key; repeated requests are refused until the key expires"
            );
        }
    }
}

impl Drop for Claim {
    /// Frees the idempotency key if `end` was not called, for example after a panic.
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        let (store, scope, begun_at) = (Arc::clone(&self.store), self.scope, self.begun_at);
        let key = std::mem::take(&mut self.key);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = store.end_request(&scope, &key, begun_at, None).await;
            });
        }
    }
}

/// Returns the part of a response that is stored under its idempotency key. A server error is not
/// stored, so that the client can repeat the request. Of a secret or very long response, only the
/// fact that the request was executed is stored.
pub(crate) fn stored_answer(
    status: StatusCode,
    headers: &HeaderMap,
    body: &Bytes,
    secret: bool,
) -> Option<Answered> {
    if status.is_server_error() {
        return None;
    }
    if secret || body.len() > KEPT_BYTES_MAX {
        let why = if secret { "is shown only once" } else { "was too long to be stored" };
        let detail = format!("this request was carried out with status {status}; its answer {why}");
        let problem = Problem::new(ProblemType::AnswerNotKept, detail);
        let headers = [("content-type", "application/problem+json")];
        return Some(Answered {
            status: problem.status,
            headers: serde_json::json!(BTreeMap::from(headers)).to_string(),
            body: serde_json::to_vec(&problem).unwrap_or_default(),
        });
    }
    let stored_headers = [header::CONTENT_TYPE, header::LOCATION, header::ETAG];
    let headers: BTreeMap<&str, &str> = stored_headers
        .iter()
        .filter_map(|name| Some((name.as_str(), headers.get(name)?.to_str().ok()?)))
        .collect();
    Some(Answered {
        status: status.as_u16(),
        headers: serde_json::json!(headers).to_string(),
        body: body.to_vec(),
    })
}

fn replay(answer: Answered) -> Response {
    let Answered { status, headers, body } = answer;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let kept: BTreeMap<String, String> = serde_json::from_str(&headers).unwrap_or_default();
    for (name, value) in kept {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Reads the idempotency key of a request, if the request has one.
pub(crate) fn read_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| {
        (1..=KEY_CHARS_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    });
    match (key, values.next()) {
        (Some(key), None) => Ok(Some(key.into())),
        _ => Err(Problem::parameter(
            "Idempotency-Key",
            "is not one key of 1 to 255 visible ASCII characters without spaces; use a random UUID",
        )),
    }
}
