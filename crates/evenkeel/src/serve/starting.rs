//! Responses to requests while the server starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use evenkeel_api::{Check, Problem, ProblemType, ReadyView, with_safe_headers};

#[derive(Debug, Default)]
pub struct Progress {
    store_is_open: AtomicBool,
}

impl Progress {
    /// Marks that the store is open and its tables are up to date.
    pub fn store_is_open(&self) {
        self.store_is_open.store(true, Ordering::Relaxed);
    }

    fn checks(&self) -> Vec<Check> {
        let is_open = self.store_is_open.load(Ordering::Relaxed);
        let check = |name: &str, ok: bool, yes: &str, no: &str| Check {
            name: name.into(),
            ok,
            detail: if ok { yes.into() } else { no.into() },
        };
        vec![
            check("store", is_open, "answers", "is not reachable yet"),
            check("engine", false, "", "starts as soon as the store answers"),
            check("migrations", is_open, "are up to date", "wait for the store"),
            check("listener", is_open, "receives signals", "waits for the store"),
        ]
    }
}

/// Answers health checks while the server starts, and all other requests with status 503.
pub fn router(progress: Arc<Progress>) -> Router {
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .fallback(not_yet)
        .with_state(progress);
    with_safe_headers(router)
}

async fn readyz(State(progress): State<Arc<Progress>>) -> impl IntoResponse {
    let view = ReadyView { status: "not_ready", checks: progress.checks() };
    (StatusCode::SERVICE_UNAVAILABLE, Json(view))
}

async fn not_yet() -> Response {
    let detail = "nothing was changed; see /readyz for the state of the start";
    Problem::new(ProblemType::Starting, detail).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::{Request, header};
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn requests_before_the_start_get_a_problem_document() {
        let request = Request::post("/api/v1/jobs").body(Body::empty()).unwrap();
        let answer = router(Arc::default()).oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(answer.headers()[header::RETRY_AFTER], "2");
        assert_eq!(answer.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        let body = to_bytes(answer.into_body(), 10_000).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["type"], "/problems/starting");
        assert_eq!(problem["status"], 503);
    }
}
