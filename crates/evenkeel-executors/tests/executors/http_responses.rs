use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{AttemptTokens, Span};
use evenkeel_executors::{Executor, HttpExecutor, HttpSettings, Report, WallClock};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::http_support::{call, local, local_settings, serve};
use crate::support::{invocation, with};

/// Returns the report of an attempt whose receiver responded with this status and `Retry-After`.
async fn answered(status: u16, retry_after: &'static str, config: Value) -> Report {
    let status = StatusCode::from_u16(status).unwrap();
    let answer = post(move || async move { (status, [("retry-after", retry_after)], "said") });
    let address = serve(Router::new().route("/", answer)).await;
    let mut config = config;
    config["url"] = format!("http://{address}/").into();
    let clock = WallClock::new(|| "2026-11-15T08:00:00Z".parse().unwrap());
    let executor = HttpExecutor::new(HttpSettings { clock, ..local_settings() });
    executor.run(invocation("http", config)).await
}

#[tokio::test]
async fn retry_after_delays_the_next_attempt() {
    let wait = |secs| RetryHint::NotBefore(Span::from_secs(secs));
    for (status, header, retry) in [
        (429, "120", wait(120)),
        (503, "Sun, 15 Nov 2026 08:01:00 GMT", wait(60)),
        (404, "5", wait(5)),
        (503, "whenever", RetryHint::ByPolicy),
    ] {
        let report = answered(status, header, json!({})).await;
        assert_eq!((report.outcome, report.retry), (Outcome::Failed, retry), "{status} {header}");
        assert_eq!(report.output.as_deref(), Some("said"));
    }
}

#[tokio::test]
async fn final_failures_of_a_call_are_not_retried() {
    let config = json!({"give_up_on": [400, "5xx"]});
    for (status, retry) in [
        (400, RetryHint::Never),
        (410, RetryHint::Never),
        (503, RetryHint::Never),
        (404, RetryHint::NotBefore(Span::from_secs(9))),
    ] {
        let report = answered(status, "9", config.clone()).await;
        assert_eq!((report.outcome, report.retry), (Outcome::Failed, retry), "{status}");
    }
    let good = answered(410, "9", json!({"expected_status": 410})).await;
    assert_eq!((good.outcome, good.retry), (Outcome::Completed, RetryHint::ByPolicy));
}

#[tokio::test]
async fn response_is_read_up_to_the_limit() {
    let answer = post(|| async { "0123456789" });
    let address = serve(Router::new().route("/", answer)).await;
    for (limit, expected) in [
        (json!(10), "0123456789"),
        (json!(4), "0123\n… not read further than 4 bytes"),
        (json!(0), "\n… not read further than 0 bytes"),
        (json!(null), "0123456789"),
    ] {
        let config = json!({"url": format!("http://{address}/"), "max_response_bytes": limit});
        let report = local().run(invocation("http", config)).await;
        assert_eq!(report.outcome, Outcome::Completed);
        assert_eq!(report.output.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn missing_payload_field_fails_the_attempt_by_name() {
    let config = json!({"url": "https://example.com/{{payload.x}}"});
    let report = local().run(invocation("http", config)).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!(report.retry, RetryHint::Never);
    let error = report.error.unwrap();
    assert_eq!(error, "executor_config.url: refers to payload.x, which the payload does not have");
}

/// Starts a receiver that closes the connection in the middle of its response.
async fn breaking_off(head: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut request).await.unwrap();
        }
        let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 100\r\n\r\nsaid");
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    format!("http://{address}/?token=secret")
}

#[tokio::test]
async fn head_of_a_broken_response_counts() {
    for (head, retry) in [
        ("503 Busy\r\nretry-after: 7", RetryHint::NotBefore(Span::from_secs(7))),
        ("410 Gone", RetryHint::Never),
        ("200 OK\r\nretry-after: 7", RetryHint::ByPolicy),
    ] {
        let report = local().run(call(breaking_off(head).await)).await;
        assert_eq!((report.outcome, report.retry), (Outcome::Failed, retry), "{head}");
        assert_eq!(report.output.as_deref(), Some("said"));
        let error = report.error.unwrap();
        assert!(error.starts_with(&format!("the answer ({}", &head[..3])), "{error}");
        // The error message names the cause of the failure, but not the called URL.
        assert!(error.contains("end of file") && !error.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn accepted_work_is_waited_for_even_if_the_response_breaks_off() {
    let attempt_tokens = Some(AttemptTokens::new(b"tokens"));
    let executor = HttpExecutor::new(HttpSettings { attempt_tokens, ..local_settings() });
    let body = with(call(breaking_off("202 Accepted").await), |d| d.timeout = Span::from_secs(2));
    let report = executor.run(body).await;
    assert_eq!((report.outcome, report.output.as_deref()), (Outcome::TimedOut, Some("said")));
    let error = report.error.unwrap();
    assert!(error.contains("accepted with 202 and sent no heartbeat for 2s"), "{error}");
}
