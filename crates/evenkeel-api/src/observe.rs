//! Adds a span, two metrics and a log line to every request. The span, the metrics and the log line
//! contain no headers, queries or bodies, which may hold secrets.

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use evenkeel_core::Timestamp;
use tracing::Instrument as _;

use crate::state::App;

const REQUESTS: &str = "evenkeel_http_requests_total";
const SECONDS: &str = "evenkeel_http_request_duration_seconds";

pub(crate) async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let method = method_label(request.method());
    // The path template is the metric label, because paths with ids would create one time series
    // per id.
    let path = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "unmatched".to_owned(), |path| path.as_str().to_owned());
    let span = tracing::info_span!("http.request", http.method = method, http.route = path);
    let began: Timestamp = (app.clock)();
    let response = next.run(request).instrument(span.clone()).await;
    let took = (app.clock)().since(began);
    let status = response.status();
    metrics::counter!(
        REQUESTS, "method" => method, "path" => path.clone(), "status" => status.as_str().to_owned()
    )
    .increment(1);
    let seconds = took.as_micros() as f64 / 1_000_000.0;
    metrics::histogram!(SECONDS, "method" => method, "path" => path).record(seconds);
    span.in_scope(|| {
        tracing::debug!(
            http.status = status.as_u16(),
            http.duration_ms = took.as_millis(),
            "request answered",
        );
    });
    response
}

/// Clients can send any method name, so unknown methods share one label and create no new time
/// series.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
