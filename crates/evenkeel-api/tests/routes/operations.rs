//! Tests of health, metrics, nodes, and an unavailable store.

use std::sync::Arc;

use axum::http::{Method, header};
use evenkeel_api::{Clock, Settings};
use evenkeel_store::Role;
use evenkeel_store_testkit::fixtures::START;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;

use crate::broken_store::BrokenStore;
use crate::world::{Engine, World, noop, request, send, server, token};

#[tokio::test]
async fn health_is_public() {
    let world = World::new().await;
    let answer = world.send(request(Method::GET, "/healthz", None, None)).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "ok\n"));
    let ready = world.send(request(Method::GET, "/readyz", None, None)).await.expect(200);
    assert_eq!(
        ready,
        json!({"status": "ready", "checks": [
            {"name": "store", "ok": true, "detail": "answers"},
            {"name": "engine", "ok": true, "detail": "was checked"},
        ]})
    );
}

#[tokio::test]
async fn nodes_show_their_roles_and_pools() {
    let world = World::new().await;
    let list = world.get("/api/v1/nodes").await.expect(200);
    assert_eq!(list["nodes"].as_array().unwrap().len(), 1, "{list}");
    let node = &list["nodes"][0];
    assert_eq!((&node["name"], &node["state"]), (&json!("node-1"), &json!("live")));
    assert_eq!(node["roles"], json!(["api", "scheduler", "worker"]));
    assert_eq!(node["pools"], json!(["default"]));
    assert_eq!(node["shards"], 256);
    assert_eq!((&list["total"], &list["total_is_estimate"]), (&json!(1), &json!(false)));
    world
        .send(request(Method::GET, "/api/v1/nodes", None, None))
        .await
        .problem(401, "unauthorized");
}

#[tokio::test]
async fn nodes_are_paged_like_other_lists() {
    let world = World::new().await;
    for name in ["node-2", "node-3"] {
        world.rig.join(name, 1).await;
    }
    let names = |page: &serde_json::Value| -> Vec<String> {
        let nodes = page["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = world.get("/api/v1/nodes?limit=2").await.expect(200);
    assert_eq!(names(&first), ["node-1", "node-2"]);
    assert_eq!(
        (&first["total"], &first["limit"], &first["offset"]),
        (&json!(3), &json!(2), &json!(0))
    );
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/v1/nodes?limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!((names(&rest), &rest["next_cursor"]), (vec!["node-3".to_owned()], &json!(null)));
    assert_eq!(rest["total"], 3);
    let middle = world.get("/api/v1/nodes?limit=1&offset=1").await.expect(200);
    assert_eq!(names(&middle), ["node-2"]);
    let all = world.get("/api/v1/nodes").await.expect(200);
    let shards =
        all["nodes"].as_array().unwrap().iter().map(|node| node["shards"].as_u64().unwrap());
    assert_eq!(shards.clone().sum::<u64>(), 256, "{all}");
    assert!(shards.into_iter().all(|shards| shards > 0), "{all}");
    for wrong in ["limit=0", "cursor=abc", "offset=-1"] {
        let answer = world.get(&format!("/api/v1/nodes?{wrong}")).await;
        answer.problem(422, "invalid-parameter");
    }
}

#[tokio::test]
async fn node_with_a_failing_engine_is_alive_but_not_ready() {
    let world = World::with(Engine::Failing, Settings::default()).await;
    let alive = world.send(request(Method::GET, "/healthz", None, None)).await;
    assert_eq!(alive.status.as_u16(), 200);
    let ready = world.send(request(Method::GET, "/readyz", None, None)).await.expect(503);
    assert_eq!((&ready["status"], &ready["checks"][1]["ok"]), (&json!("not_ready"), &json!(false)));
}

#[tokio::test]
async fn unavailable_store_is_answered_with_503() {
    let clock: Clock = Arc::new(|| START);
    let store = BrokenStore::down();
    let router = server(store, clock, Engine::Ready, Settings::default());
    let token = token(Role::Operator, "main");
    let id = "0190163d-8694-739b-aea5-966c26f8ad91";
    let run = "0190163d-8694-839b-aea5-966c02f8ad91";
    for (method, path, body) in [
        (Method::POST, "/api/v1/jobs".to_owned(), Some(noop(json!({})))),
        (Method::GET, "/api/v1/jobs".into(), None),
        (Method::GET, format!("/api/v1/jobs/{id}"), None),
        (Method::DELETE, format!("/api/v1/jobs/{id}"), None),
        (Method::POST, format!("/api/v1/jobs/{id}/trigger"), None),
        (Method::GET, format!("/api/v1/jobs/{id}/executions"), None),
        (Method::GET, "/api/v1/executions".into(), None),
        (Method::GET, format!("/api/v1/executions/{run}"), None),
    ] {
        let answer = send(&router, request(method, &path, Some(&token), body)).await;
        answer.problem(503, "store-unavailable");
        assert_eq!(answer.header(header::RETRY_AFTER), Some("2"), "{path}");
        assert!(!answer.text.contains("10.0.0.7"), "{}", answer.text);
    }
    let ready = send(&router, request(Method::GET, "/readyz", None, None)).await.expect(503);
    assert_eq!(ready["checks"][0]["detail"], "does not answer");
}

#[tokio::test]
async fn store_error_is_answered_with_500_without_details() {
    let clock: Clock = Arc::new(|| START);
    let store = BrokenStore::corrupt();
    let router = server(store, clock, Engine::Ready, Settings::default());
    let token = token(Role::Viewer, "main");
    let answer = send(&router, request(Method::GET, "/api/v1/jobs", Some(&token), None)).await;
    answer.problem(500, "internal");
    assert!(!answer.text.contains("definition"), "{}", answer.text);
}

#[tokio::test]
async fn metrics_and_the_document_can_be_made_public() {
    let closed = World::new().await;
    let settings = Settings { open_metrics: true, open_openapi: true, ..Settings::default() };
    let open = World::with(Engine::Ready, settings).await;
    for path in ["/metrics", "/api/openapi.json"] {
        let nobody = || request(Method::GET, path, None, None);
        closed.send(nobody()).await.problem(401, "unauthorized");
        let known = token(Role::Viewer, "default");
        let known = request(Method::GET, path, Some(&known), None);
        assert_eq!(closed.send(known).await.status.as_u16(), 200);
        assert_eq!(open.send(nobody()).await.status.as_u16(), 200);
    }
    let answer = open.get("/metrics").await;
    assert_eq!(answer.text, "evenkeel_up 1\n");
    assert!(answer.header(header::CONTENT_TYPE).unwrap().starts_with("text/plain"));
}

#[tokio::test]
async fn metrics_require_the_default_tenant() {
    let world = World::new().await;
    for tenant in ["main", "other", "Default"] {
        let token = token(Role::Admin, tenant);
        let answer = world.send(request(Method::GET, "/metrics", Some(&token), None)).await;
        let problem = answer.problem(403, "forbidden");
        assert!(problem["detail"].as_str().unwrap().contains("the tenant default"), "{problem}");
        assert!(!answer.text.contains("evenkeel_up"));
    }
}

#[tokio::test]
async fn requests_are_counted_by_path_template() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = World::new().await;
    world.create(json!({})).await;
    world.get("/api/v1/jobs/0190163d-8694-739b-aea5-966c26f8ad91").await.problem(404, "not-found");
    world.get("/api/v1/jobs/0190163d-8694-739b-aea5-966c26f8ad92").await.problem(404, "not-found");
    world.get("/nowhere/1").await.problem(404, "not-found");
    let invented = Method::from_bytes(b"INVENTED").unwrap();
    world.ask_as(Role::Viewer, invented, "/nowhere/2", None).await.problem(404, "not-found");
    let text = recorder.handle().render();
    for line in [
        r#"evenkeel_http_requests_total{method="POST",path="/api/v1/jobs",status="201"} 1"#,
        r#"evenkeel_http_requests_total{method="GET",path="/api/v1/jobs/{id}",status="404"} 2"#,
        r#"evenkeel_http_requests_total{method="GET",path="unmatched",status="404"} 1"#,
        r#"evenkeel_http_requests_total{method="other",path="unmatched",status="404"} 1"#,
        r#"evenkeel_http_request_duration_seconds_count{method="POST",path="/api/v1/jobs"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
