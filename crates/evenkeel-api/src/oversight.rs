//! Watches all requests: limits repeated authentication failures and writes the audit log.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use evenkeel_access::{TooManyFailures, Verdict};
use evenkeel_store::AuditEntry;
use tracing::Instrument as _;

use crate::auth::Caller;
use crate::problem::{Problem, ProblemType, Refused};
use crate::roles::{Rule, Rules};
use crate::state::App;

/// Header with the request id, in requests and responses.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// IP address of the client, set by the code that accepts connections.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClientAddress(pub IpAddr);

/// The object that the audit log shows for a request. A handler adds a `Target` to its response if
/// neither the path nor the header `Location` names the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target(pub String);

/// A summary of the change for the audit log, which a handler adds to its response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AuditSummary(pub(crate) String);

/// The id of the object that the path gives by name. The audit log shows the id of a job instead of
/// its name, because the name could later belong to another job.
#[derive(Clone, Default, Debug)]
pub(crate) struct ResolvedId(Arc<OnceLock<String>>);

impl ResolvedId {
    pub(crate) fn set(&self, id: String) {
        // A request path names only one object, so an id that is already set is the same id.
        let _ = self.0.set(id);
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct RequestId(String);

/// State of the layers that authenticate requests and write the audit log.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) app: App,
    pub(crate) rules: Arc<Rules>,
}

/// Gives every request an id and returns it in the response; a valid id from the client is kept.
pub(crate) async fn name_request(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let own = request.headers().get(&REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_valid = |id: &&str| {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=64).contains(&id.len()) && id.bytes().all(legal)
    };
    let id = own.filter(is_valid).map(String::from);
    let id = id.unwrap_or_else(|| app.access.request_id((app.clock)()));
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Writes the audit log entry of a request, if it needs one.
pub(crate) async fn oversee(
    State(guarded): State<Guarded>,
    path: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Response {
    // If the path cannot be parsed, the handler answers with the error.
    let target = path.ok().and_then(|path| path.iter().map(|(_, id)| id.to_owned()).next());
    let audited = AuditedRequest::new(&guarded, target, &request);
    request.extensions_mut().insert(audited.resolved.clone());
    if !audited.changes {
        let response = next.run(request).await;
        return audited.judge(&guarded.app, response).await;
    }
    // The request runs as its own task, so that a change is audited even if the client disconnects.
    let task = async move {
        let response = next.run(request).await;
        audited.judge(&guarded.app, response).await
    };
    match tokio::spawn(task.in_current_span()).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => {
                Problem::new(ProblemType::Internal, "the request was cancelled").into_response()
            }
        },
    }
}

/// The data of a request that its audit log entry needs.
struct AuditedRequest {
    rule: Rule,
    changes: bool,
    target: Option<String>,
    resolved: ResolvedId,
    from: Option<IpAddr>,
    request_id: String,
    showed_credential: bool,
}

impl AuditedRequest {
    fn new(guarded: &Guarded, target: Option<String>, request: &Request) -> Self {
        let rule = guarded.rules.find(request.method(), request.extensions());
        let method: &Method = request.method();
        Self {
            changes: rule.changes(method),
            rule,
            target,
            resolved: ResolvedId::default(),
            from: request.extensions().get::<ClientAddress>().map(|from| from.0),
            request_id: request
                .extensions()
                .get::<RequestId>()
                .map(|id| id.0.clone())
                .unwrap_or_default(),
            showed_credential: request.headers().contains_key(header::AUTHORIZATION),
        }
    }

    async fn judge(self, app: &App, response: Response) -> Response {
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED && self.showed_credential {
            return self.count_failure(app, response);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            if status == StatusCode::FORBIDDEN || self.is_worth_an_entry(app) {
                app.access.audit.record_refusal(self.entry(app, &response, true));
            }
            return response;
        }
        // A request that failed with a server error may have changed data, unless its problem type
        // excludes that.
        let kind = response.extensions().get::<ProblemType>();
        let changed_nothing = kind.is_some_and(|kind| kind.changed_nothing());
        let may_have = status.is_success() || status.is_server_error() && !changed_nothing;
        let has_changed = self.changes && may_have;
        if !has_changed || app.access.audit.record(self.entry(app, &response, false)).await {
            return response;
        }
        let detail = "it may have taken effect, but could not be written into the audit log; look \
                      before repeating it";
        Problem::new(ProblemType::StoreUnavailable, detail).into_response()
    }

    /// Limits the audit log entries for requests without a credential, so that such requests cannot
    /// fill the audit log.
    fn is_worth_an_entry(&self, app: &App) -> bool {
        let now = (app.clock)();
        let verdict = self.from.map(|from| app.access.anonymous.failed(from, now));
        !matches!(verdict, Some(Verdict::Blocked(_)))
    }

    /// Counts a request with an invalid credential; answers 429 after too many of them.
    fn count_failure(self, app: &App, response: Response) -> Response {
        match app.access.count_refusal(self.from, self.entry(app, &response, true)) {
            Some(limited) => too_many(limited),
            None => response,
        }
    }

    fn target(&self, response: &Response) -> Option<String> {
        let in_path = || self.resolved.0.get().or(self.target.as_ref()).cloned();
        in_path().or_else(|| target_of(response))
    }

    fn entry(&self, app: &App, response: &Response, denied: bool) -> AuditEntry {
        let caller = response.extensions().get::<Caller>();
        let refused = response.extensions().get::<Refused>().map(|refused| refused.0.clone());
        let summary =
            || response.extensions().get::<AuditSummary>().map(|summary| summary.0.clone());
        AuditEntry {
            at: (app.clock)(),
            tenant: caller.map(|caller| caller.scope.tenant),
            subject: caller.map_or_else(|| "unknown".into(), |caller| caller.subject.clone()),
            role: caller.map(|caller| caller.scope.role),
            action: self.rule.operation.to_string(),
            target: self.target(response),
            status: response.status().as_u16(),
            denied,
            detail: refused.or_else(summary),
            remote: self.from.map(|from| from.to_canonical().to_string()),
            request_id: self.request_id.clone(),
        }
    }
}

/// Returns the object that the response names for the audit log.
fn target_of(response: &Response) -> Option<String> {
    let named = response.extensions().get::<Target>().map(|target| target.0.clone());
    named.or_else(|| location(response.headers()))
}

fn location(headers: &HeaderMap) -> Option<String> {
    let place = headers.get(header::LOCATION)?.to_str().ok()?;
    place.rsplit('/').next().map(String::from)
}

fn too_many(limited: TooManyFailures) -> Response {
    let problem = Problem::new(ProblemType::TooManyFailures, limited.detail);
    let mut response = problem.into_response();
    let wait = HeaderValue::from(limited.retry_after_secs);
    response.headers_mut().insert(header::RETRY_AFTER, wait);
    response
}
