//! The audit log of changes and refusals.

use std::sync::Arc;

use axum::http::{HeaderName, Method};
use evenkeel_access::AuditLog;
use evenkeel_api::{Access, Clock, Settings, Streams, Trust};
use evenkeel_store::{Role, Store};
use evenkeel_store_testkit::fixtures::START;
use evenkeel_store_testkit::model::ModelStore;
use serde_json::{Value, json};

use crate::broken_store::BrokenStore;
use crate::world::{Counting, Engine, World, noop, request, send, server_with, token, tokens};

async fn entries(world: &World, tenant: &str, query: &str) -> Vec<Value> {
    let path = format!("/api/v1/audit{query}");
    let token = token(Role::Admin, tenant);
    let list = world.send(request(Method::GET, &path, Some(&token), None)).await.expect(200);
    list["entries"].as_array().unwrap().clone()
}

#[tokio::test]
async fn change_is_audited_before_it_is_answered() {
    let world = World::new().await;
    let job = world.create(json!({"name": "a", "interval_minutes": 5})).await;
    let id = job["id"].as_str().unwrap();
    world.post(&format!("/api/v1/jobs/{id}/trigger"), None).await.expect(202);
    let found = entries(&world, "main", "").await;
    let seen: Vec<_> = found
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), entry["target"].as_str().unwrap()))
        .collect();
    assert_eq!(seen, [("trigger_job", id), ("create_job", id)]);
    let created = &found[1];
    assert_eq!((&created["subject"], &created["role"]), (&json!("tester"), &json!("operator")));
    assert_eq!((&created["status"], &created["denied"]), (&json!(201), &json!(false)));
}

#[tokio::test]
async fn reads_previews_and_invalid_requests_are_not_audited() {
    let world = World::new().await;
    world.get("/api/v1/jobs").await.expect(200);
    world.post("/api/v1/schedules/preview", Some(json!({"schedule": "1h"}))).await.expect(200);
    world.post("/api/v1/jobs", Some(json!({"nonsense": 1}))).await.problem(422, "invalid-job");
    world
        .delete("/api/v1/jobs/0190163d-8694-739b-aea5-966c26f8ad91")
        .await
        .problem(404, "not-found");
    assert_eq!(entries(&world, "main", "").await, Vec::<Value>::new());
}

#[tokio::test]
async fn every_refusal_is_audited() {
    let world = World::new().await;
    let body = Some(noop(json!({})));
    world.ask_as(Role::Viewer, Method::POST, "/api/v1/jobs", body).await.problem(403, "forbidden");
    world.send(request(Method::GET, "/api/v1/jobs", Some("wrong"), None)).await.expect(401);
    world.send(request(Method::GET, "/api/v1/pages", None, None)).await.expect(401);
    // Recording a change also writes the queued audit entries of the refused requests.
    world.create(json!({})).await;
    let own = entries(&world, "main", "?denied=true").await;
    assert_eq!(own.len(), 1);
    assert_eq!((&own[0]["action"], &own[0]["status"]), (&json!("create_job"), &json!(403)));
    assert_eq!(own[0]["detail"], "this needs the role operator, the token has viewer");
    // The tenant `default` sees refused requests whose tenant is unknown.
    let unknown = entries(&world, "default", "").await;
    let seen: Vec<_> = unknown.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(seen, ["list_pages", "list_jobs"]);
    assert_eq!((&unknown[0]["subject"], &unknown[0]["role"]), (&json!("unknown"), &Value::Null));
}

#[tokio::test]
async fn audit_log_requires_the_role_admin() {
    let world = World::new().await;
    for role in [Role::Viewer, Role::Operator] {
        let answer = world.ask_as(role, Method::GET, "/api/v1/audit", None).await;
        answer.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn audit_log_is_filtered_and_paged() {
    let world = World::new().await;
    for n in 0..5 {
        world.create(json!({"name": format!("job {n}")})).await;
        world.pass(60);
    }
    assert_eq!(entries(&world, "main", "?subject=tester&limit=2").await.len(), 2);
    assert_eq!(entries(&world, "main", "?subject=nobody").await.len(), 0);
    let (mut path, mut seen) = ("/api/v1/audit?limit=2".to_owned(), 0);
    loop {
        let page = world.ask_as(Role::Admin, Method::GET, &path, None).await.expect(200);
        assert_eq!((&page["total"], &page["total_is_estimate"]), (&json!(5), &json!(false)));
        seen += page["entries"].as_array().unwrap().len();
        let Some(next) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/audit?limit=2&cursor={next}");
    }
    assert_eq!(seen, 5);
    let third = entries(&world, "main", "").await[2]["at"].as_str().unwrap().to_owned();
    assert_eq!(entries(&world, "main", &format!("?from={third}")).await.len(), 3);
    assert_eq!(entries(&world, "main", &format!("?before={third}")).await.len(), 2);
    for query in ["denied=maybe", "from=yesterday", "offset=1&cursor=x", "who=me"] {
        let path = format!("/api/v1/audit?{query}");
        let answer = world.ask_as(Role::Admin, Method::GET, &path, None).await;
        answer.problem(422, "invalid-parameter");
    }
}

#[tokio::test]
async fn every_request_has_an_id_that_the_audit_log_shows() {
    let world = World::new().await;
    let name = HeaderName::from_static("x-request-id");
    let ask = |id: &str| {
        let body = Some(noop(json!({})));
        let mut request =
            request(Method::POST, "/api/v1/jobs", Some(&token(Role::Operator, "main")), body);
        request.headers_mut().insert(name.clone(), id.parse().unwrap());
        world.send(request)
    };
    let answer = ask("my-own.1").await;
    assert_eq!(answer.header(name.clone()), Some("my-own.1"));
    let odd = ask("two words; and=more").await;
    let given = odd.header(name).unwrap().to_owned();
    assert_eq!(given.len(), 36);
    let found = entries(&world, "main", "").await;
    let ids: Vec<_> = found.iter().map(|entry| entry["request_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [given.as_str(), "my-own.1"]);
}

#[tokio::test]
async fn change_that_cannot_be_audited_is_not_acknowledged() {
    let clock: Clock = Arc::new(|| START);
    let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock.clone()));
    let trust = Trust { local: Some(Arc::new(tokens())), ..Trust::default() };
    let mut access = Access::new(store.clone(), trust, Arc::new(Counting::new()));
    access.audit = AuditLog::start(BrokenStore::down());
    let router =
        server_with(store, clock, Engine::Ready, Settings::default(), access, Streams::default());
    let token = token(Role::Operator, "main");
    let create = request(Method::POST, "/api/v1/jobs", Some(&token), Some(noop(json!({}))));
    let problem = send(&router, create).await.problem(503, "store-unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("audit log"), "{problem}");
    let look = request(Method::GET, "/api/v1/jobs", Some(&token), None);
    send(&router, look).await.expect(200);
}
