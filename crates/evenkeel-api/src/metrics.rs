//! `GET /metrics`

use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use evenkeel_access::DEFAULT_TENANT;

use crate::auth::Caller;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// All metrics of this node as Prometheus text. They are about the jobs of all tenants, so only
/// a token of the tenant `default` opens them.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "get_metrics",
    tag = "operations",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn metrics(
    State(app): State<App>,
    // Nobody, if the operator has opened it to everybody.
    caller: Option<Extension<Caller>>,
) -> Result<impl IntoResponse, Problem> {
    if let Some(Extension(caller)) = caller
        && caller.tenant != DEFAULT_TENANT
    {
        let detail = format!(
            "metrics are about the jobs of all tenants: this needs a token of the tenant \
             {DEFAULT_TENANT}, or a server with open_metrics"
        );
        return Err(Problem::new(ProblemType::Forbidden, detail));
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (app.metrics)()))
}
