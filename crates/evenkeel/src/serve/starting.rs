//! What is answered before the node takes part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use evenkeel_api::{Check, ReadyView};

/// How far a start has come.
#[derive(Debug, Default)]
pub struct Progress {
    store_is_open: AtomicBool,
}

impl Progress {
    /// The store answers, and its tables are up to date.
    pub fn store_is_open(&self) {
        self.store_is_open.store(true, Ordering::Relaxed);
    }

    fn checks(&self) -> Vec<Check> {
        let is_open = self.store_is_open.load(Ordering::Relaxed);
        let check = |name: &str, ok: bool, well: &str, ill: &str| Check {
            name: name.into(),
            ok,
            detail: if ok { well.into() } else { ill.into() },
        };
        vec![
            check("store", is_open, "answers", "is waited for"),
            check("engine", false, "", "starts when the store answers"),
            check("migrations", is_open, "are up to date", "wait for the store"),
            check("listener", is_open, "hears", "waits for the store"),
        ]
    }
}

/// Says how it is, and that nothing else can be had yet.
pub fn router(progress: Arc<Progress>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .fallback(not_yet)
        .with_state(progress)
}

async fn readyz(State(progress): State<Arc<Progress>>) -> impl IntoResponse {
    let view = ReadyView { status: "not_ready", checks: progress.checks() };
    (StatusCode::SERVICE_UNAVAILABLE, Json(view))
}

async fn not_yet() -> Response {
    let wait = [(header::RETRY_AFTER, "2")];
    (StatusCode::SERVICE_UNAVAILABLE, wait, "this node is still starting\n").into_response()
}
