//! How this node is, for those who start and stop it.

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use evenkeel_api::{Check, Readiness};
use evenkeel_engine::Probe;

/// The engine, as a matter of readiness.
pub struct EngineReadiness(pub Probe);

#[async_trait]
impl Readiness for EngineReadiness {
    async fn checks(&self) -> Vec<Check> {
        let health = self.0.health();
        let detail = if health.ready {
            format!("runs {} of at most {} bodies", health.bodies, health.workers)
        } else {
            "takes no part: it is joining again, has lost its lease, or drains".into()
        };
        vec![Check { name: "engine".into(), ok: health.ready, detail }]
    }
}

/// Of all answers, only how the node is and what it measures.
pub fn only(router: Router) -> Router {
    router.layer(middleware::from_fn(async |request: Request, next: Next| -> Response {
        if matches!(request.uri().path(), "/healthz" | "/readyz" | "/metrics") {
            next.run(request).await
        } else {
            (StatusCode::NOT_FOUND, "this node does not have the role api\n").into_response()
        }
    }))
}
