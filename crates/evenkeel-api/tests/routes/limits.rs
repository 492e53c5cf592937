//! Bodies that are too large, too odd, too slow.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, header};
use evenkeel_api::{BODY_BYTES_MAX, Settings};
use evenkeel_store::Role;

use crate::world::{Answer, Engine, World, request, token};

async fn send_body(world: &World, kind: Option<&str>, body: impl Into<Body>) -> Answer {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/api/v1/jobs")
        .header(header::AUTHORIZATION, format!("Bearer {}", token(Role::Operator, "main")));
    if let Some(kind) = kind {
        request = request.header(header::CONTENT_TYPE, kind);
    }
    world.send(request.body(body.into()).unwrap()).await
}

#[tokio::test]
async fn only_what_is_said_to_be_json_is_read() {
    let world = World::new().await;
    let document = r#"{"executor_type": "noop"}"#;
    for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("json")]
    {
        let answer = send_body(&world, kind, document).await;
        answer.problem(415, "unsupported-media-type");
    }
    for kind in ["application/json", "Application/JSON; charset=utf-8", "application/job+json"] {
        send_body(&world, Some(kind), document).await.expect(201);
    }
}

#[tokio::test]
async fn what_is_not_json_is_refused_with_the_place() {
    let world = World::new().await;
    let deep = "[".repeat(10_000);
    for (body, place) in [
        ("{\n  \"name\": ,}", "line 2 column 11"),
        ("", "line 1 column 0"),
        ("{\"name\": \"\\ud800\"}", "line 1"),
        ("{} {}", "line 1 column 4"),
        (deep.as_str(), "recursion limit"),
    ] {
        let answer = send_body(&world, Some("application/json"), body.to_owned()).await;
        let problem = answer.problem(400, "malformed-json");
        assert!(problem["detail"].as_str().unwrap().contains(place), "{problem}");
    }
    let latin = send_body(&world, Some("application/json"), vec![b'"', 0xe4, b'"']).await;
    latin.problem(400, "malformed-json");
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    let world = World::new().await;
    let fill = |bytes: usize| {
        let frame = r#"{"executor_type": "noop", "metadata": {}}"#;
        format!("{frame}{}", " ".repeat(bytes - frame.len()))
    };
    send_body(&world, Some("application/json"), fill(BODY_BYTES_MAX)).await.expect(201);
    let answer = send_body(&world, Some("application/json"), fill(BODY_BYTES_MAX + 1)).await;
    answer.problem(413, "body-too-large");
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_given_up() {
    let settings = Settings { request_timeout: Duration::from_secs(30), ..Settings::default() };
    let world = World::with(Engine::Hangs, settings).await;
    let answer = world.send(request(Method::GET, "/readyz", None, None)).await;
    answer.problem(503, "timeout");
    assert_eq!(answer.header(header::RETRY_AFTER), Some("2"));
}

#[tokio::test]
async fn a_panic_is_an_answer_too() {
    let world = World::with(Engine::Panics, Settings::default()).await;
    let answer = world.send(request(Method::GET, "/readyz", None, None)).await;
    let problem = answer.problem(500, "internal");
    assert!(!problem.to_string().contains("probe"));
    assert_eq!(answer.header(header::CACHE_CONTROL), Some("no-store"));
}

#[tokio::test]
async fn every_answer_is_nobody_elses() {
    let world = World::new().await;
    for path in ["/api/v1/jobs", "/healthz", "/nothing", "/metrics"] {
        let answer = world.get(path).await;
        assert_eq!(answer.header(header::CACHE_CONTROL), Some("no-store"), "{path}");
        assert_eq!(answer.header(header::X_CONTENT_TYPE_OPTIONS), Some("nosniff"), "{path}");
    }
}

#[tokio::test]
async fn another_method_is_refused_with_those_there_are() {
    let world = World::new().await;
    let answer = world.ask_as(Role::Admin, Method::PATCH, "/api/v1/jobs", None).await;
    answer.problem(405, "method-not-allowed");
    let allowed = answer.header(header::ALLOW).unwrap_or_default();
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
}
