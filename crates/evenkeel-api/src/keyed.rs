//! `Idempotency-Key`: a POST that is sent twice is done once.

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
use crate::body::{BULK_PATH, body_limit, receive, says_ndjson};
use crate::memory::Intake;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// The header a client names a request with.
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Says that an answer is the one of an earlier sending.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Characters of a key at most.
const KEY_CHARS_MAX: usize = 255;
/// Longer answers are not kept.
const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// Nothing is under way for longer: whoever began it has crashed.
const PATIENCE: Span = Span::from_secs(120);
/// Whoever does many things in one request begins none of them later than this, so as to be done
/// before patience ends.
pub(crate) const WORKING_TIME: Span = Span::from_secs(90);

/// Marks an answer that holds a secret and must not be kept: it is shown once.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ShownOnce;

/// Marks an answer that may be another when it is asked for again, and so is not kept.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Unsettled;

/// Does what has a key once, and answers the same again.
pub(crate) async fn once(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    // A stream of jobs has a key for each batch; its handler sees to that.
    let is_stream = path == Some(BULK_PATH) && says_ndjson(request.headers());
    if *request.method() != Method::POST || is_stream {
        return Ok(next.run(request).await);
    }
    let limit = body_limit(path);
    let Some(key) = read_key(request.headers())? else { return Ok(next.run(request).await) };
    // Only a route outside the guard lacks it.
    let Some(scope) = request.extensions().get::<Caller>().map(|caller| caller.scope) else {
        return Err(Problem::new(ProblemType::Unauthorized, "no token was checked"));
    };
    let mut intake = Intake::of(&request)?;
    let (mut parts, body) = request.into_parts();
    let body = receive(body, &intake, limit).await?;
    intake.is_received = true;
    parts.extensions.insert(intake.clone());
    let claim = match begin(&app, scope, key, &parts.uri, &body).await? {
        Beginning::Ours(claim) => claim,
        Beginning::Theirs(answer) => return Ok(replay(answer)),
    };
    let request = Request::from_parts(parts, Body::from(body));
    // Whoever goes away in the middle comes back and asks how it ended: so it must end.
    let work = async move {
        let response = next.run(request).await;
        drop(intake);
        claim.keep(response).await
    };
    tokio::spawn(work.instrument(tracing::Span::current())).await.map_err(|panic| {
        tracing::error!(error = &panic as &dyn std::error::Error, "a handler panicked");
        Problem::new(ProblemType::Internal, "the log of the server says more")
    })
}

/// What has become of a request that somebody named.
pub(crate) enum Beginning {
    /// It is to be done now.
    Ours(Claim),
    /// It was done.
    Theirs(Answered),
}

/// The right and the duty to end a request.
pub(crate) struct Claim {
    store: Arc<dyn Store>,
    scope: Scope,
    key: String,
    begun_at: Timestamp,
    is_ended: bool,
}

/// Begins a request, or says how it was answered.
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
            Ok(Beginning::Ours(Claim { store, scope, key, begun_at, is_ended: false }))
        }
        Begun::Ended(answer) => Ok(Beginning::Theirs(answer)),
        Begun::UnderWay => Err(Problem::new(
            ProblemType::RequestUnderWay,
            "a request with this Idempotency-Key is under way; ask again in a moment",
        )),
        Begun::Other => {
            let detail = "another request had this Idempotency-Key; a key names one request, with \
                          its method, path, query and body";
            Err(Problem::new(ProblemType::IdempotencyKeyReused, detail))
        }
    }
}

impl Claim {
    /// Keeps an answer, and gives it back to be sent.
    async fn keep(self, response: Response) -> Response {
        let (parts, body) = response.into_parts();
        let Ok(body) = to_bytes(body, usize::MAX).await else {
            self.end(None).await;
            return Problem::new(ProblemType::Internal, "the answer broke off").into_response();
        };
        let secret = parts.extensions.get::<ShownOnce>().is_some();
        let is_settled = parts.extensions.get::<Unsettled>().is_none();
        let answer = kept(parts.status, &parts.headers, &body, secret);
        self.end(answer.filter(|_| is_settled)).await;
        Response::from_parts(parts, Body::from(body))
    }

    /// Ends the request with what later senders are to be told; nothing lets them begin anew.
    pub(crate) async fn end(mut self, answer: Option<Answered>) {
        self.is_ended = true;
        let ended = self.store.end_request(&self.scope, &self.key, self.begun_at, answer).await;
        if let Err(error) = ended {
            // It was done, and its sender is told so; only who asks again must wait.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the answer of a request with a key was not kept"
            );
        }
    }
}

impl Drop for Claim {
    /// A handler that panicked changed nothing that anybody knows of: its key is free again.
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

/// What is kept of an answer: nothing of a failure, which may be over next time; of what is too
/// long or secret, that it was done.
pub(crate) fn kept(
    status: StatusCode,
    headers: &HeaderMap,
    body: &Bytes,
    secret: bool,
) -> Option<Answered> {
    if status.is_server_error() {
        return None;
    }
    if secret || body.len() > KEPT_BYTES_MAX {
        let why = if secret { "is shown once" } else { "was too long to be kept" };
        let detail = format!("this request was done, with status {status}; its answer {why}");
        let problem = Problem::new(ProblemType::AnswerNotKept, detail);
        let headers = [("content-type", "application/problem+json")];
        return Some(Answered {
            status: problem.status,
            headers: serde_json::json!(BTreeMap::from(headers)).to_string(),
            body: serde_json::to_vec(&problem).unwrap_or_default(),
        });
    }
    let worth = [header::CONTENT_TYPE, header::LOCATION, header::ETAG];
    let headers: BTreeMap<&str, &str> = worth
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

/// The key of a request, if it has one.
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
            "is not one key of 1 to 255 visible characters without spaces; a random UUID is a good \
             one",
        )),
    }
}
