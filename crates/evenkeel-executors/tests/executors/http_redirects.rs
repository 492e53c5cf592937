use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::any;
use evenkeel_core::AttemptTokens;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{Executor, HttpExecutor, HttpSettings, SigningKeys};
use serde_json::{Value, json};

use crate::http_support::{
    call, counting, echo, echoed_by, local, local_settings, serve, serve_at,
};
use crate::support::invocation;

/// Returns a site where `/STATUS?LOCATION` redirects to LOCATION and `/echo` echoes the request.
fn site() -> Router {
    async fn away(uri: Uri) -> impl IntoResponse {
        let status: u16 = uri.path()[1..].parse().unwrap();
        let location = uri.query().unwrap().to_owned();
        (StatusCode::from_u16(status).unwrap(), [(header::LOCATION, location)])
    }
    Router::new().route("/echo", any(echo)).route("/{status}", any(away))
}

/// Returns an executor that signs calls and gives tokens to receivers.
fn signing() -> HttpExecutor {
    HttpExecutor::new(HttpSettings {
        signing: Some(SigningKeys::new(b"secret")),
        attempt_tokens: Some(AttemptTokens::new(b"tokens")),
        ..local_settings()
    })
}

/// Returns the request that arrives at `/echo` of `target` after a redirect from `from`.
async fn arrived(from: SocketAddr, status: u16, target: &str, method: &str) -> Value {
    let config = json!({
        "url": format!("http://{from}/{status}?{target}"), "method": method, "redirects": 1,
        "headers": {
            "Authorization": "Bearer secret", "Cookie": "a=b", "X-Api-Key": "secret",
            "Accept": "text/x", "Content-Type": "application/x",
        },
    });
    echoed_by(&signing(), config, json!({"a": 1})).await
}

#[tokio::test]
async fn redirect_status_decides_the_method() {
    let here = serve(site()).await;
    for (status, method, then) in [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (301, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
    ] {
        let seen = arrived(here, status, "/echo", method).await;
        assert_eq!(seen["method"], then, "{status} {method}");
        let body = if then == "GET" { "" } else { r#"{"a":1}"# };
        assert_eq!(seen["body"], body, "{status} {method}");
        assert_eq!(seen["headers"].get("content-type").is_none(), then == "GET");
        // A redirect to the same origin keeps all headers, with a signature of the new request.
        assert_eq!(seen["headers"]["authorization"], "Bearer secret");
        assert_eq!(seen["headers"]["x-api-key"], "secret");
        let signature = seen["headers"]["webhook-signature"].as_str().unwrap();
        let id = seen["headers"]["webhook-id"].as_str().unwrap();
        let seconds = seen["headers"]["webhook-timestamp"].as_str().unwrap().parse().unwrap();
        let tenant = invocation("http", Value::Null).tenant;
        let expected = SigningKeys::new(b"secret").sign(tenant, id, seconds, body.as_bytes());
        assert_eq!(signature, expected);
    }
}

#[tokio::test]
async fn other_origins_get_no_secrets() {
    let elsewhere = serve_at("127.0.0.2", site()).await;
    let here = serve(site()).await;
    let seen = arrived(here, 307, &format!("http://u:p@{elsewhere}/echo"), "POST").await;
    let headers = &seen["headers"];
    for secret in [
        "authorization", "cookie", "x-api-key", "webhook-id", "webhook-signature",
        "x-evenkeel-callback-token",
    ] {
        assert!(headers.get(secret).is_none(), "{secret}: {seen}");
    }
    assert_eq!(headers["accept"], "text/x");
    assert_eq!(headers["content-type"], "application/x");
    assert!(headers.get("idempotency-key").is_some());
    assert_eq!(seen["body"], r#"{"a":1}"#);
}

#[tokio::test]
async fn other_origins_get_no_body_of_a_get() {
    let elsewhere = serve_at("127.0.0.2", site()).await;
    let here = serve(site()).await;
    for status in [302, 307] {
        let at_home = arrived(here, status, "/echo", "GET").await;
        assert_eq!(at_home["body"], r#"{"a":1}"#, "{status}");
        let seen = arrived(here, status, &format!("http://{elsewhere}/echo"), "GET").await;
        assert_eq!(seen["body"], "", "{status}");
        assert!(seen["headers"].get("content-type").is_none(), "{seen}");
    }
}

#[tokio::test]
async fn redirect_back_to_the_first_origin_gets_no_secrets() {
    let here = serve(site()).await;
    let elsewhere = serve_at("127.0.0.2", site()).await;
    let back = format!("http://{elsewhere}/307?http://{here}/echo");
    let config = json!({
        "url": format!("http://{here}/307?{back}"), "redirects": 2,
        "headers": {"Authorization": "Bearer secret"},
    });
    let seen = echoed_by(&signing(), config, Value::Null).await;
    assert!(seen["headers"].get("authorization").is_none(), "{seen}");
    assert!(seen["headers"].get("webhook-signature").is_none(), "{seen}");
}

#[tokio::test]
async fn credentials_of_the_url_stay_with_the_first_origin() {
    let here = serve(site()).await;
    for location in ["/echo".to_owned(), format!("http://{here}/echo")] {
        let url = format!("http://user:pw@{here}/302?{location}");
        let seen = echoed_by(&local(), json!({"url": url, "method": "GET"}), Value::Null).await;
        assert_eq!(seen["headers"]["authorization"], "Basic dXNlcjpwdw==", "{location}");
    }
}

#[tokio::test]
async fn redirect_loop_ends_at_the_limit_with_an_error_without_secrets() {
    let circle = any(|headers: HeaderMap| async move {
        assert!(headers.contains_key("authorization"));
        (StatusCode::FOUND, [(header::LOCATION, "/a?token=secret")])
    });
    let here = serve(Router::new().route("/a", circle)).await;
    let config = json!({
        "url": format!("http://u:secret@{here}/a?token=secret"), "method": "GET", "redirects": 3,
    });
    let report = local().run(invocation("http", config)).await;
    assert_eq!(report.outcome, Outcome::Failed);
    // The error names only origins, because the path of a URL may be secret.
    let hop = format!("http://{here}");
    let hops = [hop.as_str(); 5].join(" -> ");
    let error = format!("more than 3 redirects: {hops}");
    assert_eq!(report.error.unwrap(), error);
}

#[tokio::test]
async fn redirect_is_a_response_unless_it_is_followed() {
    let (target, calls) = counting().await;
    let here = serve(site()).await;
    let url = format!("http://{here}/302?http://{target}/");
    let posted = local().run(call(url.clone())).await;
    assert_eq!(posted.error.as_deref(), Some("the answer was 302 Found"));
    for config in [
        json!({"url": url, "method": "GET", "expected_status": 302}),
        json!({"url": url, "method": "GET", "redirects": 0, "expected_status": "3xx"}),
    ] {
        let report = local().run(invocation("http", config)).await;
        assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    // GET follows redirects by default.
    let fetched = local().run(invocation("http", json!({"url": url, "method": "GET"}))).await;
    assert_eq!(fetched.outcome, Outcome::Completed, "{fetched:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn invalid_redirects_are_not_followed() {
    let here = serve(site()).await;
    for (location, part) in [
        ("ftp://example.com/", "redirects to a ftp: URL"),
        ("file:///etc/passwd", "redirects to a file: URL"),
        ("http://[nonsense", "redirects to an invalid URL"),
    ] {
        let config = json!({"url": format!("http://{here}/302?{location}"), "method": "GET"});
        let report = local().run(invocation("http", config)).await;
        let error = report.error.unwrap();
        assert!(error.contains(part), "{location}: {error}");
    }
}
