//! Limits of request bodies: size, format, time and memory.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, header};
use evenkeel_api::{BODY_BYTES_MAX, Settings};
use evenkeel_store::Role;
use futures::{StreamExt as _, stream};
use serde_json::json;

use crate::world::{Answer, Engine, World, noop, request, token};

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
async fn only_json_content_types_are_read() {
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
async fn malformed_json_is_refused_with_its_position() {
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
async fn body_is_read_up_to_its_limit() {
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
async fn slow_request_times_out() {
    let settings = Settings { request_timeout: Duration::from_secs(30), ..Settings::default() };
    let world = World::with(Engine::Hangs, settings).await;
    let answer = world.send(request(Method::GET, "/readyz", None, None)).await;
    answer.problem(503, "timeout");
    assert_eq!(answer.header(header::RETRY_AFTER), Some("2"));
}

#[tokio::test]
async fn panic_is_answered_with_500() {
    let world = World::with(Engine::Panics, Settings::default()).await;
    let answer = world.send(request(Method::GET, "/readyz", None, None)).await;
    let problem = answer.problem(500, "internal");
    assert!(!problem.to_string().contains("probe"));
    assert_eq!(answer.header(header::CACHE_CONTROL), Some("no-store"));
}

#[tokio::test]
async fn every_answer_has_safe_headers() {
    let world = World::new().await;
    let mut answers = Vec::new();
    for path in ["/api/v1/jobs", "/healthz", "/readyz", "/nothing", "/metrics"] {
        answers.push((path, world.get(path).await));
    }
    answers.push(("POST", world.post("/api/v1/jobs", None).await));
    answers.push(("401", world.send(request(Method::GET, "/api/v1/jobs", None, None)).await));
    let method = world.ask_as(Role::Admin, Method::PATCH, "/api/v1/jobs", None).await;
    answers.push(("405", method));
    for (what, answer) in answers {
        for (name, value) in [
            (header::CACHE_CONTROL, "no-store"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::REFERRER_POLICY, "no-referrer"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{what}");
        }
        let policy = answer.header(header::CONTENT_SECURITY_POLICY).unwrap();
        assert!(policy.starts_with("default-src 'none';"), "{what}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{what}: {policy}");
    }
}

#[tokio::test]
async fn unsupported_method_lists_the_allowed_ones() {
    let world = World::new().await;
    let answer = world.ask_as(Role::Admin, Method::PATCH, "/api/v1/jobs", None).await;
    answer.problem(405, "method-not-allowed");
    let allowed = answer.header(header::ALLOW).unwrap_or_default();
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
}

#[tokio::test(start_paused = true)]
async fn incomplete_body_times_out() {
    let settings = Settings {
        body_idle: Duration::from_secs(2),
        body_total: Duration::from_secs(5),
        ..Settings::default()
    };
    let world = World::with(Engine::Ready, settings).await;
    let piece = || Ok::<_, std::io::Error>("{\"executor_type\"");
    // One client stops sending its request body, and the other sends one chunk per second forever.
    let silent = stream::iter([piece()]).chain(stream::pending());
    let slow = stream::repeat(()).then(move |()| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        piece()
    });
    for (body, after) in [(Body::from_stream(silent), "2 s"), (Body::from_stream(slow), "5 s")] {
        let answer = send_body(&world, Some("application/json"), body).await;
        let problem = answer.problem(408, "request-timeout");
        assert!(problem["detail"].as_str().unwrap().contains(after), "{problem}");
        assert_eq!(answer.header(header::CONNECTION), Some("close"));
    }
}

#[tokio::test]
async fn requests_over_the_memory_limit_are_refused() {
    let settings = Settings { request_memory: 4 * 1024 * 1024, ..Settings::default() };
    let world = World::with(Engine::Ready, settings).await;
    // The client sends all bytes of the body except the last, so the request keeps its memory
    // reserved.
    let (sender, receiver) = futures::channel::mpsc::unbounded::<Result<String, std::io::Error>>();
    let mut jobs = r#"{"jobs": [{"executor_type": "noop"}]"#.to_owned();
    jobs.push_str(&" ".repeat(2_900_000));
    sender.unbounded_send(Ok(jobs)).unwrap();
    let large = bulk(&world, Body::from_stream(receiver));
    let small = || noop(json!({}));
    let others = async {
        tokio::task::yield_now().await;
        let answer = bulk(&world, Body::from(" ".repeat(1_000_000))).await;
        answer.problem(503, "server-busy");
        assert_eq!(answer.header(header::RETRY_AFTER), Some("2"));
        // Part of the memory is reserved for small requests.
        world.post("/api/v1/jobs", Some(small())).await.expect(201);
        sender.unbounded_send(Ok("}".into())).unwrap();
        drop(sender);
    };
    let (large, ()) = futures::join!(large, others);
    assert_eq!(large.expect(200)["created"], 1);
    // The memory of all earlier requests is free again.
    let answer = bulk(&world, Body::from(" ".repeat(2_900_000))).await;
    answer.problem(400, "malformed-json");
}

async fn bulk(world: &World, body: Body) -> Answer {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/api/v1/jobs/bulk")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, format!("Bearer {}", token(Role::Operator, "main")));
    world.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn document_with_too_many_values_is_refused_before_parsing() {
    let world = World::new().await;
    let dense = format!("[{}0]", "{\"\":0},".repeat(30_000));
    let whole = format!("{{\"executor_type\": \"noop\", \"payload\": {dense}}}");
    let answer = send_body(&world, Some("application/json"), whole.clone()).await;
    let problem = answer.problem(413, "body-too-large");
    assert!(problem["detail"].as_str().unwrap().contains("16 MiB"), "{problem}");
    // The syntax error at the end of the body is not reported, because the body is refused before
    // parsing.
    let broken = format!("{whole},,,");
    let answer = send_body(&world, Some("application/json"), broken).await;
    answer.problem(413, "body-too-large");
    let many = bulk(&world, Body::from(format!("{{\"jobs\": [{whole}, 0]}}"))).await.expect(200);
    assert_eq!(many["results"][0]["status"], 413);
    assert_eq!(many["results"][1]["status"], 422);
}

#[tokio::test]
async fn job_in_a_bulk_request_has_the_size_limit_of_a_single_one() {
    let world = World::new().await;
    let long = noop(json!({"metadata": {"a": "x".repeat(BODY_BYTES_MAX)}}));
    let jobs = json!({"jobs": [long, noop(json!({}))]}).to_string();
    let many = bulk(&world, Body::from(jobs)).await.expect(200);
    assert_eq!(many["results"][0]["status"], 413);
    assert_eq!(many["results"][1]["status"], 201);
}
