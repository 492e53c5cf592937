//! `GET /healthz` and `GET /readyz`, for those who start and stop the process.

use std::time::Duration;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::App;

/// One thing that must be well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Check {
    /// What.
    pub name: String,
    /// Is it well?
    pub ok: bool,
    /// In words. Anybody can read them, so they name no hosts and no users.
    pub detail: String,
}

/// Says how the rest of the process is.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// All that must be well before requests are sent here.
    async fn checks(&self) -> Vec<Check>;
}

/// Whether requests should be sent here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ReadyView {
    /// `ready` or `not_ready`.
    pub status: &'static str,
    /// All that was looked at.
    pub checks: Vec<Check>,
}

/// The process answers.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operations",
    responses((status = 200, description = "It lives", body = String, content_type = "text/plain")),
    security(()),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// The process can do its work: the store answers and the engine runs.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operations",
    responses(
        (status = 200, description = "Send requests", body = ReadyView),
        (status = 503, description = "Send none", body = ReadyView),
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
