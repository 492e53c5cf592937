//! Readiness of this node.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use evenkeel_api::{Check, Readiness, with_safe_headers};
use evenkeel_engine::{Clock, HealthProbe, WriteHealth, unserved_pools};
use evenkeel_store::{Store, StoreError, Unwritable};
use tokio::sync::Mutex;

/// Minimum time between two checks of the worker pools. The minimum limits the load on the store,
/// because anyone can call `/readyz` without a token.
const POOLS_EVERY: Duration = Duration::from_secs(5);
/// Time limit for one check of the worker pools.
const POOLS_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of pool names in the result of a readiness check.
const NAMED_MAX: usize = 10;

pub struct NodeReadiness {
    pub engine: HealthProbe,
    pub store: Arc<dyn Store>,
    pub health: Arc<WriteHealth>,
    pub clock: Arc<dyn Clock>,
    /// The time and the result of the last check of the worker pools.
    pub pools: Mutex<Option<(Duration, String)>>,
}

impl NodeReadiness {
    /// Lists pools with waiting runs and no workers.
    async fn pools(&self) -> String {
        let mut last = self.pools.lock().await;
        let now = self.clock.monotonic();
        if let Some((then, text)) = &*last
            && now.saturating_sub(*then) < POOLS_EVERY
        {
            return text.clone();
        }
        let text = match tokio::time::timeout(POOLS_TIMEOUT, self.unserved()).await {
            Ok(Ok(unserved)) => pools_text(&unserved),
            Ok(Err(error)) => format!("are not known: {error}"),
            Err(_) => "are not known: the store did not answer within 2 s".into(),
        };
        *last = Some((now, text.clone()));
        text
    }

    async fn unserved(&self) -> Result<Vec<String>, StoreError> {
        // With the limit 0, the store reads few queue rows and still returns the pools with waiting
        // runs.
        let queue = self.store.queue_depths(0).await?;
        let (_, members) = self.store.members().await?;
        Ok(unserved_pools(&queue, &members).into_keys().collect())
    }
}

/// Checks that the store accepts writes, because runs can't start or finish otherwise.
fn writes(unwritable: Option<Unwritable>) -> Check {
    let detail = match unwritable {
        None => "are stored".into(),
        Some(why) => format!("are not stored: {why}; {}", why.way_out()),
    };
    Check { name: "changes".into(), ok: unwritable.is_none(), detail }
}

fn pools_text(unserved: &[String]) -> String {
    let named = unserved[..unserved.len().min(NAMED_MAX)].join(", ");
    match unserved.len().saturating_sub(NAMED_MAX) {
        _ if unserved.is_empty() => "all pools with waiting runs have workers".into(),
        0 => format!("runs wait in pools without live nodes: {named}"),
        more => format!("runs wait in pools without live nodes: {named} and {more} more"),
    }
}

#[async_trait]
impl Readiness for NodeReadiness {
    async fn checks(&self) -> Vec<Check> {
        let health = self.engine.health();
        let detail = if health.ready {
            format!("runs {} of at most {} attempts", health.bodies, health.workers)
        } else {
            "is not a member: it is rejoining, has lost its lease, or is draining".into()
        };
        // A node that receives no notifications from other nodes starts runs at most one second
        // late, so it stays ready.
        let listener = if self.store.signals().is_remote_lost() {
            "receives no signals of other nodes; polls every second instead"
        } else {
            "receives signals"
        };
        vec![
            Check { name: "engine".into(), ok: health.ready, detail },
            writes(self.health.unwritable()),
            Check { name: "migrations".into(), ok: true, detail: "are up to date".into() },
            Check { name: "listener".into(), ok: true, detail: listener.into() },
            // If one pool has no workers, jobs of other pools still run, so the node stays ready.
            Check { name: "pools".into(), ok: true, detail: self.pools().await },
        ]
    }
}

/// Restricts a router to the endpoints for health and metrics.
pub fn only(router: Router) -> Router {
    let few = middleware::from_fn(async |request: Request, next: Next| -> Response {
        if matches!(request.uri().path(), "/healthz" | "/readyz" | "/metrics") {
            next.run(request).await
        } else {
            (StatusCode::NOT_FOUND, "this node does not have the role api\n").into_response()
        }
    });
    with_safe_headers(router.layer(few))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn node_without_api_answers_404_with_safe_headers() {
        let request = Request::get("/api/v1/jobs").body(Body::empty()).unwrap();
        let answer = only(Router::new()).oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    }

    #[test]
    fn full_disk_makes_the_node_unready() {
        assert!(writes(None).ok);
        let check = writes(Some(Unwritable::DiskFull));
        assert!(!check.ok);
        assert!(check.detail.contains("is full; free space"), "{}", check.detail);
    }

    #[test]
    fn pools_text_names_ten_pools_and_counts_the_rest() {
        let pools: Vec<String> = (0..12).map(|n| format!("p{n}")).collect();
        assert_eq!(pools_text(&[]), "all pools with waiting runs have workers");
        let two = pools_text(&pools[..2]);
        assert_eq!(two, "runs wait in pools without live nodes: p0, p1");
        assert!(pools_text(&pools).ends_with("p8, p9 and 2 more"));
        assert!(pools_text(&pools[..10]).ends_with("p8, p9"));
    }
}
