//! Watches over all requests: who asks too often in vain, what was changed, what was refused.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use evenkeel_access::Verdict;
use evenkeel_core::Span;
use evenkeel_store::AuditEntry;
use tracing::Instrument as _;

use crate::auth::Caller;
use crate::problem::{Problem, ProblemType, Refused};
use crate::roles::{Rule, Rules};
use crate::state::App;

/// The id of a request, in both directions.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Tries that were turned away because too many before had failed.
const LIMITED: &str = "evenkeel_login_limited_total";

/// Where a request comes from: whoever accepts connections says so.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClientAddress(pub IpAddr);

/// What an answer is about, where neither its path nor its `Location` says so: handlers add it to
/// the answer for the audit log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target(pub String);

/// What was done, in a few words, where the answer's status does not say it: handlers add it to the
/// answer for the audit log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Deed(pub(crate) String);

/// The id of what a path names in another way. An extractor that looks it up notes it here, so that
/// the audit log has the id and not a name that can become another job's.
#[derive(Clone, Default, Debug)]
pub(crate) struct Meant(Arc<OnceLock<String>>);

impl Meant {
    /// Notes the id.
    pub(crate) fn set(&self, id: String) {
        // A path names one thing, so a second one is the same.
        let _ = self.0.set(id);
    }
}

/// The id of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RequestId(String);

/// What guards need.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) app: App,
    pub(crate) rules: Arc<Rules>,
}

/// Gives every request an id, its own if it brings a decent one, and repeats it in the answer.
pub(crate) async fn name_request(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let own = request.headers().get(&REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_decent = |id: &&str| {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=64).contains(&id.len()) && id.bytes().all(legal)
    };
    let id = own.filter(is_decent).map(String::from);
    let id = id.unwrap_or_else(|| app.access.request_id((app.clock)()));
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Watches over a request to a route.
pub(crate) async fn oversee(
    State(guarded): State<Guarded>,
    path: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Response {
    // The handler has its own word for a path that is not readable.
    let target = path.ok().and_then(|path| path.iter().map(|(_, id)| id.to_owned()).next());
    let asked = Asked::new(&guarded, target, &request);
    request.extensions_mut().insert(asked.meant.clone());
    if !asked.changes {
        let response = next.run(request).await;
        return asked.judge(&guarded.app, response).await;
    }
    // In a task of its own: if whoever asked goes away in the middle, what is done is done, and is
    // written down all the same.
    let task = async move {
        let response = next.run(request).await;
        asked.judge(&guarded.app, response).await
    };
    match tokio::spawn(task.in_current_span()).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Problem::new(ProblemType::Internal, "it was given up").into_response(),
        },
    }
}

/// What is to be remembered of a request.
struct Asked {
    rule: Rule,
    changes: bool,
    target: Option<String>,
    meant: Meant,
    from: Option<IpAddr>,
    request_id: String,
    showed_credential: bool,
}

impl Asked {
    fn new(guarded: &Guarded, target: Option<String>, request: &Request) -> Self {
        let rule = guarded.rules.find(request.method(), request.extensions());
        let method: &Method = request.method();
        Self {
            changes: rule.changes(method),
            rule,
            target,
            meant: Meant::default(),
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
        // A server error may come after the deed, unless it says that it did not.
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

    /// Whoever has no credential and asks without end must not fill the log.
    fn is_worth_an_entry(&self, app: &App) -> bool {
        let now = (app.clock)();
        let verdict = self.from.map(|from| app.access.strangers.failed(from, now));
        !matches!(verdict, Some(Verdict::Shut(_)))
    }

    /// A credential was refused.
    fn count_failure(self, app: &App, response: Response) -> Response {
        let now = (app.clock)();
        let verdict =
            self.from.map_or(Verdict::Counted, |from| app.access.limiter.failed(from, now));
        let (wait, is_first) = match verdict {
            Verdict::Counted => {
                app.access.audit.record_refusal(self.entry(app, &response, true));
                return response;
            }
            Verdict::ShutNow(wait) => (wait, true),
            Verdict::Shut(wait) => (wait, false),
        };
        metrics::counter!(LIMITED).increment(1);
        let limited = too_many(wait);
        // One entry says that others were turned away: whoever fails without end must not fill the log.
        if is_first {
            app.access.audit.record_refusal(self.entry(app, &limited, true));
        }
        limited
    }

    fn target(&self, response: &Response) -> Option<String> {
        let in_path = || self.meant.0.get().or(self.target.as_ref()).cloned();
        in_path().or_else(|| target_of(response))
    }

    fn entry(&self, app: &App, response: &Response, denied: bool) -> AuditEntry {
        let caller = response.extensions().get::<Caller>();
        let refused = response.extensions().get::<Refused>().map(|refused| refused.0.clone());
        let deed = || response.extensions().get::<Deed>().map(|deed| deed.0.clone());
        AuditEntry {
            at: (app.clock)(),
            tenant: caller.map(|caller| caller.scope.tenant),
            subject: caller.map_or_else(|| "unknown".into(), |caller| caller.subject.clone()),
            role: caller.map(|caller| caller.scope.role),
            action: self.rule.operation.to_string(),
            target: self.target(response),
            status: response.status().as_u16(),
            denied,
            detail: refused.or_else(deed),
            remote: self.from.map(|from| from.to_canonical().to_string()),
            request_id: self.request_id.clone(),
        }
    }
}

/// What an answer is about, as it says itself.
fn target_of(response: &Response) -> Option<String> {
    let said = response.extensions().get::<Target>().map(|target| target.0.clone());
    said.or_else(|| location(response.headers()))
}

fn location(headers: &HeaderMap) -> Option<String> {
    let place = headers.get(header::LOCATION)?.to_str().ok()?;
    place.rsplit('/').next().map(String::from)
}

fn too_many(wait: Span) -> Response {
    let secs = wait.as_micros().div_ceil(1_000_000).max(1);
    let detail = format!(
        "too many credentials from this address were refused; those that are good still pass, others \
         are not looked at for {secs} s"
    );
    let mut response = Problem::new(ProblemType::TooManyFailures, detail).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(secs));
    response
}
