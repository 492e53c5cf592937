use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Redirect;
use axum::routing::{any, get, post};
use evenkeel_core::Span;
use evenkeel_core::run::Outcome;
use evenkeel_executors::{
    CancelReason, Executor, HttpExecutor, Invocation, Registry, Report, TAIL_BYTES_MAX,
    cancellation,
};
use evenkeel_outbound::{Outbound, OutboundSettings};
use serde_json::{Value, json};

use crate::support::{invocation, with};

fn executor(allow_networks: &[&str]) -> HttpExecutor {
    let allow_networks = allow_networks.iter().map(|net| net.parse().unwrap()).collect();
    let settings = OutboundSettings { allow_networks, ..OutboundSettings::default() };
    HttpExecutor::new(Outbound::new(settings).unwrap())
}

/// One that may call this machine.
fn local() -> HttpExecutor {
    executor(&["127.0.0.0/8", "::1/128"])
}

async fn serve(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// A server that counts its calls.
async fn counting() -> (SocketAddr, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let count = any(move || async move {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    (serve(Router::new().route("/", count)).await, calls)
}

fn call(url: String) -> Invocation {
    invocation("http", json!({"url": url}))
}

/// Answers with what it got.
async fn echo(method: Method, headers: HeaderMap, body: Bytes) -> String {
    let headers: serde_json::Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().into()))
        .collect();
    let body = String::from_utf8(body.to_vec()).unwrap();
    json!({"method": method.as_str(), "headers": headers, "body": body}).to_string()
}

async fn echoed(config: Value, payload: Value) -> Value {
    let address = serve(Router::new().route("/", any(echo))).await;
    let mut config = config;
    config["url"] = format!("http://{address}/").into();
    let invocation = with(invocation("http", config), |definition| definition.payload = payload);
    let report = local().run(invocation).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    serde_json::from_str(&report.output.unwrap()).unwrap()
}

#[tokio::test]
async fn the_called_side_can_tell_runs_and_attempts_apart() {
    let seen = echoed(json!({"headers": {"Authorization": "Bearer x"}}), json!({"a": 1})).await;
    let key = invocation("http", Value::Null).key;
    let headers = &seen["headers"];
    assert_eq!(headers["idempotency-key"], key.run_id().to_string());
    assert_eq!(headers["x-evenkeel-run-id"], key.run_id().to_string());
    assert_eq!(headers["x-evenkeel-execution-id"], key.execution_id().to_string());
    assert_ne!(headers["x-evenkeel-execution-id"], headers["x-evenkeel-run-id"]);
    assert_eq!(headers["x-evenkeel-attempt"], "2");
    assert_eq!(headers["x-evenkeel-fence"], "5");
    assert_eq!(headers["x-evenkeel-scheduled-at"], "2026-12-01T09:00:00.000000Z");
    assert_eq!(headers["authorization"], "Bearer x");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(seen["method"], "POST");
    assert_eq!(seen["body"], r#"{"a":1}"#);
}

#[tokio::test]
async fn no_payload_is_no_body() {
    let seen = echoed(json!({"method": "get"}), Value::Null).await;
    assert_eq!((&seen["method"], &seen["body"]), (&json!("GET"), &json!("")));
    assert!(seen["headers"].get("content-type").is_none());
}

#[tokio::test]
async fn a_job_may_name_its_content_type() {
    let config = json!({"headers": {"Content-Type": "application/vnd.x+json"}});
    let seen = echoed(config, json!([1])).await;
    assert_eq!(seen["headers"]["content-type"], "application/vnd.x+json");
}

#[tokio::test]
async fn the_status_decides() {
    let status = get(|| async { (StatusCode::NOT_FOUND, "nothing here\0") });
    let address = serve(Router::new().route("/", status)).await;
    let config = |expected| {
        let url = format!("http://{address}/");
        json!({"url": url, "method": "GET", "expected_status": expected})
    };
    let bad = local().run(invocation("http", config(Value::Null))).await;
    assert_eq!(bad.outcome, Outcome::Failed);
    assert_eq!(bad.error.as_deref(), Some("the answer was 404 Not Found"));
    assert_eq!(bad.output.as_deref(), Some("nothing here\u{fffd}"));
    for expected in [json!(404), json!([200, 404])] {
        let good = local().run(invocation("http", config(expected))).await;
        assert_eq!((good.outcome, good.error), (Outcome::Completed, None));
    }
    let other = local().run(invocation("http", config(json!(200)))).await;
    assert_eq!(other.outcome, Outcome::Failed);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (target, calls) = counting().await;
    let away = any(move || async move { Redirect::temporary(&format!("http://{target}/")) });
    let address = serve(Router::new().route("/", away)).await;
    let report = local().run(call(format!("http://{address}/"))).await;
    assert_eq!(report.error.as_deref(), Some("the answer was 307 Temporary Redirect"));
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_answer_that_does_not_come_times_out() {
    let never = post(std::future::pending::<()>);
    let address = serve(Router::new().route("/", never)).await;
    let hasty = with(call(format!("http://{address}/")), |d| d.timeout = Span::from_millis(100));
    let report = local().run(hasty).await;
    assert_eq!(report, Report::timed_out("no answer for 100ms"));
}

#[tokio::test]
async fn a_call_can_be_cancelled() {
    let (handle, cancel) = cancellation();
    let handle = Arc::new(handle);
    // Cancelled by the called side, so that it is surely under way.
    let never = post(move || async move {
        handle.cancel(CancelReason::Requested);
        std::future::pending::<()>().await;
    });
    let address = serve(Router::new().route("/", never)).await;
    let report = local().run(Invocation { cancel, ..call(format!("http://{address}/")) }).await;
    assert_eq!(report, Report::cancelled(CancelReason::Requested));
}

#[tokio::test]
async fn inner_addresses_are_refused_in_every_spelling() {
    let (address, calls) = counting().await;
    let port = address.port();
    let guarded = executor(&[]);
    for host in
        ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]", "0"]
    {
        let report = guarded.run(call(format!("http://{host}:{port}/"))).await;
        assert_eq!(report.outcome, Outcome::Failed, "{host}");
        let error = report.error.unwrap();
        assert!(error.contains("which is not public"), "{host}: {error}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_allowed_network_is_called() {
    let (address, calls) = counting().await;
    let port = address.port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let report = local().run(call(format!("http://{host}:{port}/"))).await;
        assert_eq!(report.outcome, Outcome::Completed, "{host}: {report:?}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let elsewhere = executor(&["10.0.0.0/8"]);
    let report = elsewhere.run(call(format!("http://127.0.0.1:{port}/"))).await;
    assert_eq!(report.outcome, Outcome::Failed);
}

#[tokio::test]
async fn a_huge_answer_keeps_its_end() {
    let size = 5_000_000;
    let huge = post(move || async move {
        let mut body = vec![b'x'; size];
        body.extend(b"the end");
        ([(header::CONTENT_TYPE, "text/plain")], Body::from(body))
    });
    let address = serve(Router::new().route("/", huge)).await;
    let report = local().run(call(format!("http://{address}/"))).await;
    let output = report.output.unwrap();
    assert!(output.ends_with("xthe end"));
    let missing = size + "the end".len() - TAIL_BYTES_MAX;
    assert!(output.starts_with(&format!("… {missing} bytes left out\n")));
}

#[tokio::test]
async fn a_server_that_is_not_there_fails_the_call_without_its_url() {
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let report = local().run(call(format!("http://u:secret@{address}/?token=secret"))).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert!(error.contains("refused") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn many_calls_at_once_all_get_their_answer() {
    let (address, calls) = counting().await;
    let executor = Arc::new(local());
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let executor = Arc::clone(&executor);
        running
            .spawn(async move { executor.run(call(format!("http://{address}/"))).await.outcome });
    }
    assert!(running.join_all().await.iter().all(|outcome| *outcome == Outcome::Completed));
    assert_eq!(calls.load(Ordering::SeqCst), 500);
}

#[test]
fn http_has_two_names() {
    let registry = Registry::new().with(Arc::new(executor(&[])));
    for kind in ["http", "http_callback"] {
        assert_eq!(registry.get(kind).map(|executor| executor.kind()), Some("http"));
    }
}
