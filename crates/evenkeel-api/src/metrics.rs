//! `GET /metrics`

use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use evenkeel_access::DEFAULT_TENANT;

use crate::auth::Caller;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// Returns all metrics of this node as Prometheus text.
///
/// The metrics cover all tenants, so the caller needs a token of the tenant `default`.
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_metrics(
    State(app): State<App>,
    // The caller is `None` if the server is configured to serve metrics without a token.
    caller: Option<Extension<Caller>>,
) -> Result<impl IntoResponse, Problem> {
    if let Some(Extension(caller)) = caller
        && caller.tenant != DEFAULT_TENANT
    {
        let detail = format!(
            "metrics cover all tenants: use a token of the tenant {DEFAULT_TENANT}, or set \
             open_metrics on the server"
        );
        return Err(Problem::new(ProblemType::Forbidden, detail));
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (app.metrics)()))
}
