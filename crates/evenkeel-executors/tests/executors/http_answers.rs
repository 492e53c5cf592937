use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use evenkeel_core::Span;
use evenkeel_core::chain::Again;
use evenkeel_core::run::Outcome;
use evenkeel_executors::{Executor, HttpExecutor, HttpSettings, Report, WallClock};
use serde_json::{Value, json};

use crate::http_support::{local, local_settings, serve};
use crate::support::invocation;

/// The report after an answer with this status and `Retry-After`.
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
async fn a_busy_receiver_is_left_alone_for_as_long_as_it_asks() {
    let wait = |secs| Again::NotBefore(Span::from_secs(secs));
    for (status, header, again) in [
        (429, "120", wait(120)),
        (503, "Sun, 15 Nov 2026 08:01:00 GMT", wait(60)),
        (404, "5", wait(5)),
        (503, "whenever", Again::AsUsual),
    ] {
        let report = answered(status, header, json!({})).await;
        assert_eq!((report.outcome, report.again), (Outcome::Failed, again), "{status} {header}");
        assert_eq!(report.output.as_deref(), Some("said"));
    }
}

#[tokio::test]
async fn what_is_hopeless_is_not_tried_again() {
    let config = json!({"give_up_on": [400, "5xx"]});
    for (status, again) in [
        (400, Again::Never),
        (410, Again::Never),
        (503, Again::Never),
        (404, Again::NotBefore(Span::from_secs(9))),
    ] {
        let report = answered(status, "9", config.clone()).await;
        assert_eq!((report.outcome, report.again), (Outcome::Failed, again), "{status}");
    }
    let good = answered(410, "9", json!({"expected_status": 410})).await;
    assert_eq!((good.outcome, good.again), (Outcome::Completed, Again::AsUsual));
}

#[tokio::test]
async fn an_answer_is_read_up_to_the_limit() {
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
async fn a_payload_that_lacks_what_is_asked_for_fails_the_run_by_name() {
    let config = json!({"url": "https://example.com/{{payload.x}}"});
    let report = local().run(invocation("http", config)).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert_eq!(error, "executor_config.url: asks for payload.x, which the payload lacks");
}
