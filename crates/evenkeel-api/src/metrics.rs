//! `GET /metrics`

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::state::App;

/// All metrics of this node as Prometheus text.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "get_metrics",
    tag = "operations",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")),
    security(("bearer" = [])),
)]
pub(crate) async fn metrics(State(app): State<App>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (app.metrics)())
}
