//! `Idempotency-Key`: a request that is sent twice is executed once.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, header};
use evenkeel_api::Settings;
use evenkeel_core::Timestamp;
use evenkeel_store::{JobFilter, JobSort, PageRequest, Role};
use serde_json::{Value, json};

use super::world::{Answer, Engine, World, noop, request, send, server, token};

const JOBS: &str = "/api/v1/jobs";

/// Sends a POST request with an idempotency key for a tenant.
async fn post_as(world: &World, tenant: &str, path: &str, key: &str, body: &Value) -> Answer {
    let token = token(Role::Operator, tenant);
    let mut request = request(Method::POST, path, Some(&token), Some(body.clone()));
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    world.send(request).await
}

async fn post(world: &World, path: &str, key: &str, body: &Value) -> Answer {
    post_as(world, "main", path, key, body).await
}

/// Returns the number of jobs.
async fn count(world: &World) -> u64 {
    let (filter, sort) = (JobFilter::default(), JobSort::default());
    let page = PageRequest::first(1);
    world.rig.store.list_jobs(&world.rig.scope, &filter, sort, page).await.unwrap().total
}

fn is_replay(answer: &Answer) -> bool {
    answer.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
}

#[tokio::test]
async fn repeated_request_gets_the_same_answer_and_runs_once() {
    let world = World::new().await;
    let job = noop(json!({"schedule": "30m"}));
    let first = post(&world, JOBS, "k-1", &job).await;
    let again = post(&world, JOBS, "k-1", &job).await;
    assert_eq!(first.expect(201), again.expect(201));
    for name in [header::LOCATION, header::ETAG, header::CONTENT_TYPE] {
        assert!(first.header(name.clone()).is_some(), "{name}");
        assert_eq!(first.header(name.clone()), again.header(name));
    }
    assert!(!is_replay(&first) && is_replay(&again));
    assert_eq!(count(&world).await, 1);
    let other = post(&world, JOBS, "k-2", &job).await;
    assert_ne!(other.expect(201)["id"], first.json()["id"]);
}

#[tokio::test]
async fn other_request_with_the_same_key_is_refused() {
    let world = World::new().await;
    post(&world, JOBS, "k", &noop(json!({"schedule": "30m"}))).await.expect(201);
    let other = post(&world, JOBS, "k", &noop(json!({"schedule": "31m"}))).await;
    other.problem(422, "idempotency-key-reused");
    let job = post(&world, JOBS, "k2", &noop(json!({"schedule": "30m"}))).await.expect(201);
    let path = format!("{JOBS}/{}/trigger", job["id"].as_str().unwrap());
    post(&world, &path, "k2", &json!({})).await.problem(422, "idempotency-key-reused");
    assert_eq!(count(&world).await, 2);
}

#[tokio::test]
async fn refusal_is_repeated_too() {
    let world = World::new().await;
    let wrong = noop(json!({"priority": 101}));
    post(&world, JOBS, "k", &wrong).await.problem(422, "invalid-job");
    let again = post(&world, JOBS, "k", &wrong).await;
    again.problem(422, "invalid-job");
    assert!(is_replay(&again));
}

#[tokio::test]
async fn trigger_with_a_key_runs_once() {
    let world = World::new().await;
    let job = world.create(json!({"schedule": "30m", "overlap": "allow"})).await;
    let path = format!("{JOBS}/{}/trigger", job["id"].as_str().unwrap());
    let first = post(&world, &path, "k", &json!({})).await.expect(202);
    assert_eq!(post(&world, &path, "k", &json!({})).await.expect(202), first);
}

#[tokio::test]
async fn key_counts_with_any_content_type() {
    let world = World::new().await;
    let job = world.create(json!({"schedule": "30m", "overlap": "allow"})).await;
    let path = format!("{JOBS}/{}/trigger", job["id"].as_str().unwrap());
    let ask = || {
        let mut asked = request(Method::POST, &path, Some(&token(Role::Operator, "main")), None);
        asked.headers_mut().insert("idempotency-key", "k".parse().unwrap());
        let kind = "application/x-ndjson".parse().unwrap();
        asked.headers_mut().insert(header::CONTENT_TYPE, kind);
        world.send(asked)
    };
    let first = ask().await.expect(202);
    let again = ask().await;
    assert_eq!(again.expect(202), first);
    assert!(is_replay(&again));
}

#[tokio::test]
async fn keys_of_other_tenants_are_independent() {
    let world = World::new().await;
    let job = noop(json!({}));
    let mine = post(&world, JOBS, "k", &job).await;
    let theirs = post_as(&world, "other", JOBS, "k", &job).await;
    assert!(!is_replay(&theirs));
    assert_ne!(mine.expect(201)["id"], theirs.expect(201)["id"]);
}

#[tokio::test]
async fn malformed_key_is_refused() {
    let world = World::new().await;
    for key in ["", "a b", &"x".repeat(256), "ümlaut"] {
        let token = token(Role::Operator, "main");
        let mut request = request(Method::POST, JOBS, Some(&token), Some(noop(json!({}))));
        let value = axum::http::HeaderValue::from_bytes(key.as_bytes()).unwrap();
        request.headers_mut().insert("idempotency-key", value);
        let problem = world.send(request).await.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], "Idempotency-Key");
    }
    let token = token(Role::Operator, "main");
    let mut twice = request(Method::POST, JOBS, Some(&token), Some(noop(json!({}))));
    for key in ["a", "b"] {
        twice.headers_mut().append("idempotency-key", key.parse().unwrap());
    }
    world.send(twice).await.problem(422, "invalid-parameter");
    assert_eq!(count(&world).await, 0);
}

#[tokio::test]
async fn concurrent_requests_with_a_key_run_once() {
    let world = World::new().await;
    let job = noop(json!({"schedule": "30m"}));
    let answers = futures::future::join_all((0..8).map(|_| post(&world, JOBS, "k", &job))).await;
    for answer in &answers {
        if answer.status.as_u16() == 409 {
            answer.problem(409, "request-under-way");
            assert!(answer.header(header::RETRY_AFTER).is_some());
        } else {
            answer.expect(201);
        }
    }
    assert_eq!(count(&world).await, 1);
}

#[tokio::test]
async fn server_error_is_not_stored() {
    let store = super::broken_store::BrokenStore::down();
    let clock = Arc::new(|| Timestamp::from_micros(1_900_000_000_000_000));
    let router = server(store, clock, Engine::Ready, Settings::default());
    let token = token(Role::Operator, "main");
    let mut asked = request(Method::POST, JOBS, Some(&token), Some(noop(json!({}))));
    asked.headers_mut().insert("idempotency-key", "k".parse().unwrap());
    send(&router, asked).await.problem(503, "store-unavailable");
}

#[tokio::test]
async fn body_too_large_is_refused_with_a_key() {
    let world = World::new().await;
    let long = noop(json!({"payload": "x".repeat(1024 * 1024)}));
    post(&world, JOBS, "k", &long).await.problem(413, "body-too-large");
}

#[tokio::test]
async fn get_ignores_the_key() {
    let world = World::new().await;
    let token = token(Role::Viewer, "main");
    for _ in 0..2 {
        let asked = Request::builder()
            .uri(JOBS)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header("idempotency-key", "k")
            .body(Body::empty())
            .unwrap();
        let answer = world.send(asked).await;
        answer.expect(200);
        assert!(!is_replay(&answer));
    }
}
