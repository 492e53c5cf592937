use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{StatusCode, header};
use axum::routing::{get, post};
use evenkeel_core::Span;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{
    CancelReason, Executor, Invocation, Registry, Report, TAIL_BYTES_MAX, cancellation,
};
use serde_json::{Value, json};

use crate::http_support::{call, counting, executor, local, serve};
use crate::support::{invocation, with};

#[tokio::test]
async fn status_decides_the_outcome() {
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
async fn missing_response_times_out() {
    let never = post(std::future::pending::<()>);
    let address = serve(Router::new().route("/", never)).await;
    let hasty = with(call(format!("http://{address}/")), |d| d.timeout = Span::from_millis(100));
    let report = local().run(hasty).await;
    assert_eq!(report, Report::timed_out("no answer for 100ms"));
}

#[tokio::test]
async fn call_can_be_cancelled() {
    let (handle, cancel) = cancellation();
    let handle = Arc::new(handle);
    // The receiver cancels the attempt, so the call is certainly open at that time.
    let never = post(move || async move {
        handle.cancel(CancelReason::Requested);
        std::future::pending::<()>().await;
    });
    let address = serve(Router::new().route("/", never)).await;
    let report = local().run(Invocation { cancel, ..call(format!("http://{address}/")) }).await;
    assert_eq!(report, Report::cancelled(CancelReason::Requested));
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_spelling() {
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
async fn allowed_network_is_called() {
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
async fn huge_response_keeps_its_end() {
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
async fn error_of_an_unreachable_server_does_not_name_the_url() {
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let report = local().run(call(format!("http://u:secret@{address}/?token=secret"))).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert!(error.contains("refused") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn concurrent_calls_all_get_their_responses() {
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

#[tokio::test]
async fn consecutive_calls_share_a_connection() {
    let peers = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&peers);
    let note = post(move |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
        seen.lock().unwrap().insert(peer);
        "an answer"
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service =
        Router::new().route("/", note).into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    let executor = local();
    for _ in 0..200 {
        let report = executor.run(call(format!("http://{address}/"))).await;
        assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    }
    let connections = peers.lock().unwrap().len();
    // An HTTP connection returns to the connection pool shortly after its response, so a call may
    // open another connection.
    assert!(connections <= 20, "{connections}");
}

#[test]
fn http_has_an_alias() {
    let registry = Registry::new().with(Arc::new(executor(&[])));
    for kind in ["http", "http_callback"] {
        assert_eq!(registry.get(kind).map(|executor| executor.declaration().kind), Some("http"));
    }
}
