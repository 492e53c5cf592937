use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::Executor;
use evenkeel_outbound::reqwest::Url;
use serde_json::json;

use crate::corpus;
use crate::http_support::{executor, serve_at};
use crate::support::invocation;
use crate::trap::Trap;

/// Every URL of the address guard's test corpus is the target of a redirect from an allowed server.
#[tokio::test]
async fn ten_thousand_redirects_to_private_addresses_make_no_connection() {
    let trap = Trap::set().await;
    // URLs with line breaks are left out, because a header cannot contain line breaks.
    let sendable = |url: &String| HeaderValue::from_bytes(url.as_bytes()).is_ok();
    let targets: Vec<String> = corpus::urls(trap.port).into_iter().filter(sendable).collect();
    let targets = Arc::new(targets);
    let served = Arc::clone(&targets);
    let away = get(move |Path(n): Path<usize>| async move {
        let location = HeaderValue::from_bytes(served[n].as_bytes()).unwrap();
        (StatusCode::FOUND, [(header::LOCATION, location)]).into_response()
    });
    let address = serve_at("127.0.0.2", Router::new().route("/to/{n}", away)).await;
    let home: Url = format!("http://{address}/to/").parse().unwrap();
    let executor = executor(&["127.0.0.2/32"]);
    let (mut refused, mut unreadable, mut at_home) = (0, 0, 0);
    for (n, target) in targets.iter().enumerate() {
        let config = json!({"url": format!("{home}{n}"), "method": "GET"});
        let report = executor.run(invocation("http", config)).await;
        assert_eq!(report.outcome, Outcome::Failed, "{target:?}: {report:?}");
        let error = report.error.unwrap();
        let joined = home.join(target);
        if error.contains("which is not public") {
            refused += 1;
        } else if error.contains("redirects to an invalid URL") {
            assert!(joined.is_err(), "{target:?}");
            unreadable += 1;
        } else {
            // `http:/x` and `http:x` are relative to a page that was fetched over http.
            assert_eq!(joined.unwrap().origin(), home.origin(), "{target:?}: {error}");
            assert_eq!(error, "the answer was 404 Not Found");
            at_home += 1;
        }
    }
    println!("{refused} refused, {unreadable} unreadable, {at_home} at home");
    assert!(refused > 10_000, "{refused}");
    assert_eq!(trap.visitors().await, 0);
}
