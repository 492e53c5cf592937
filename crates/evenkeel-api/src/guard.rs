//! Layers around every route: time limit, security headers, responses for panics and for unknown
//! paths.

use std::any::Any;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// Content-Security-Policy of all responses except HTML pages; it forbids browsers to load
/// anything.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// Answers 503 if a request takes longer than `request_timeout`.
pub(crate) async fn in_time(State(app): State<App>, request: Request, next: Next) -> Response {
    let limit = app.settings.request_timeout;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = format!(
                "the request was cancelled after {} s; whether it took effect is unknown",
                limit.as_secs(),
            );
            Problem::new(ProblemType::Timeout, detail).into_response()
        }
    }
}

/// Adds security headers to all responses. The headers keep caches from storing a response, and
/// browsers from guessing its content type or showing it inside another page.
pub fn with_safe_headers(router: Router) -> Router {
    router.layer(middleware::from_fn(safe_headers))
}

async fn safe_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // An HTML page sets its own Content-Security-Policy, which is kept.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    response
}

/// Answers 500 after a panic instead of closing the connection.
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(panic.message = message, "a request handler panicked; answering 500");
    Problem::internal().into_response()
}

pub(crate) async fn no_such_path(uri: Uri) -> Problem {
    Problem::new(ProblemType::NotFound, format!("no endpoint at {}", uri.path()))
}

pub(crate) async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not support the method {method}", uri.path());
    Problem::new(ProblemType::MethodNotAllowed, detail)
}
