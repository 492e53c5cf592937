use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{AttemptTokens, Span};
use evenkeel_executors::{
    CancelReason, Executor, HttpExecutor, HttpSettings, Invocation, Report, WallClock, cancellation,
};
use serde_json::{Value, json};

use crate::http_support::{call, local, local_settings, serve, serve_at};
use crate::support::{eventually, invocation, with};

/// Returns an executor that gives receivers tokens to report results.
fn reporting() -> HttpExecutor {
    let attempt_tokens = Some(AttemptTokens::new(b"tokens"));
    HttpExecutor::new(HttpSettings { attempt_tokens, ..local_settings() })
}

async fn accepting() -> String {
    let accept = any(|| async { (StatusCode::ACCEPTED, "in the queue") });
    format!("http://{}/", serve(Router::new().route("/", accept)).await)
}

fn hasty(url: &str) -> Invocation {
    with(call(url.into()), |definition| definition.timeout = Span::from_secs(2))
}

#[tokio::test]
async fn accepted_attempt_without_heartbeats_times_out_in_the_executor() {
    let report = reporting().run(hasty(&accepting().await)).await;
    let error = "the receiver accepted with 202 and sent no heartbeat for 2s; if its 202 means \
                 success, list 202 in expected_status";
    let output = Some("in the queue".into());
    assert_eq!(report, Report { output, ..Report::timed_out(error) });
}

#[tokio::test]
async fn accepted_attempt_ends_when_its_end_is_reported() {
    for reason in [CancelReason::EndReported, CancelReason::Requested, CancelReason::LeaseLost] {
        let (handle, cancel) = cancellation();
        // The executor reads the clock only after the response has arrived.
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let clock = WallClock::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            "2026-11-15T08:00:00Z".parse().unwrap()
        });
        let attempt_tokens = Some(AttemptTokens::new(b"tokens"));
        let settings = HttpSettings { attempt_tokens, clock, ..local_settings() };
        let executor = HttpExecutor::new(settings);
        let run = executor.run(Invocation { cancel, ..call(accepting().await) });
        let reporting = async {
            eventually("it was answered", || asked.load(Ordering::SeqCst) == 1).await;
            handle.cancel(reason);
        };
        let (report, ()) = tokio::join!(run, reporting);
        assert_eq!(report.outcome, Report::cancelled(reason).outcome);
        assert_eq!(report.error, Report::cancelled(reason).error);
    }
}

#[tokio::test]
async fn status_202_can_be_a_success() {
    let url = accepting().await;
    let named = json!({"url": url, "expected_status": [200, 202]});
    let report = reporting().run(invocation("http", named)).await;
    assert_eq!(report.outcome, Outcome::Completed);
    // A class such as `2xx` does not list the status 202 itself.
    let class = with(invocation("http", json!({"url": url, "expected_status": "2xx"})), |d| {
        d.timeout = Span::from_secs(2);
    });
    assert_eq!(reporting().run(class).await.outcome, Outcome::TimedOut);
    // Without a token, the receiver cannot report the result later.
    assert_eq!(local().run(hasty(&url)).await.outcome, Outcome::Completed);
}

#[tokio::test]
async fn receiver_without_a_token_is_not_waited_for() {
    let target = any(|| async { StatusCode::ACCEPTED });
    let elsewhere = serve_at("127.0.0.2", Router::new().route("/", target)).await;
    let away = any(move || async move {
        axum::response::Redirect::temporary(&format!("http://{elsewhere}/"))
    });
    let address = serve(Router::new().route("/", away)).await;
    let config = json!({"url": format!("http://{address}/"), "redirects": 1});
    let report = reporting().run(invocation("http", config)).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
}

#[tokio::test]
async fn waiting_attempt_needs_little_memory() {
    let executor = reporting();
    let future = executor.run(invocation("http", Value::Null));
    let bytes = size_of_val(&*future);
    println!("a waiting run takes {bytes} bytes");
    assert!(bytes < 2048, "{bytes}");
}
