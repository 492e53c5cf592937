//! `GET /healthz` and `GET /readyz`, for process managers and load balancers.

use std::time::Duration;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::App;

/// One readiness check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// True if it passed.
    pub ok: bool,
    /// Explanation. The explanation of a readiness check is public, so it names no hosts or users.
    pub detail: String,
}

/// Readiness checks of parts of the process outside the API, such as the engine.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Returns the checks that must pass before the node reports itself ready.
    async fn checks(&self) -> Vec<Check>;
}

/// Readiness of the node, with the result of each check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ReadyView {
    /// `ready` or `not_ready`.
    pub status: &'static str,
    /// All checks.
    pub checks: Vec<Check>,
}

/// Answers 200 as long as the process runs.
#[utoipa::path(
    get, path = "/healthz", tag = "operations",
    responses((status = 200, description = "The process is alive", body = String, content_type = "text/plain")),
    security(()),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Reports whether the node is ready for requests: the store is available and the engine is
/// running.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses(
        (status = 200, description = "The node is ready for requests", body = ReadyView),
        (status = 503, description = "The node is not ready for requests", body = ReadyView),
    ),
    security(()),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn readyz(State(app): State<App>) -> impl IntoResponse {
    let mut checks = vec![store(&app).await];
    checks.extend(app.ready.checks().await);
    let ok = checks.iter().all(|check| check.ok);
    let (code, status) =
        if ok { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "not_ready") };
    (code, Json(ReadyView { status, checks }))
}

async fn store(app: &App) -> Check {
    const PATIENCE: Duration = Duration::from_secs(2);
    let answer = tokio::time::timeout(PATIENCE, app.store.now()).await;
    let ok = matches!(answer, Ok(Ok(_)));
    let detail = if ok { "answers" } else { "does not answer" };
    Check { name: "store".into(), ok, detail: detail.into() }
}
