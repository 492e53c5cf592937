//! How this node is, for those who start and stop it.

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use evenkeel_api::{Check, Readiness};
use evenkeel_engine::Probe;
use evenkeel_store::Signals;

/// The engine and what it depends on, as a matter of readiness.
pub struct NodeReadiness {
    engine: Probe,
    signals: Signals,
}

impl NodeReadiness {
    /// Of the node that `engine` is of and that hears by `signals`.
    pub fn new(engine: Probe, signals: Signals) -> Self {
        Self { engine, signals }
    }
}

#[async_trait]
impl Readiness for NodeReadiness {
    async fn checks(&self) -> Vec<Check> {
        let health = self.engine.health();
        let detail = if health.ready {
            format!("runs {} of at most {} bodies", health.bodies, health.workers)
        } else {
            "takes no part: it is joining again, has lost its lease, or drains".into()
        };
        // Without it everything works, up to a second later: no reason to send nobody here.
        let listener = if self.signals.are_deaf() {
            "does not hear other nodes; they are found by looking every second"
        } else {
            "hears"
        };
        vec![
            Check { name: "engine".into(), ok: health.ready, detail },
            Check { name: "migrations".into(), ok: true, detail: "are up to date".into() },
            Check { name: "listener".into(), ok: true, detail: listener.into() },
        ]
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
