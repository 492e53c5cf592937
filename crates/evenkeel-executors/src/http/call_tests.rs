use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, JobNo, RunIds};
use serde_json::json;

use super::*;

const URL: &str = "https://example.com/";

fn check(config: &Value, payload: &Value) -> Result<(), ConfigFault> {
    Call::parse(config)?.check(payload)
}

/// Returns a configuration with one field besides the URL.
fn with(field: &str, value: Value) -> Value {
    json!({"url": URL, field: value})
}

#[test]
fn bad_configuration_is_refused_with_its_field() {
    for (config, field) in [
        (json!({}), ".url"),
        (json!(null), ".url"),
        (json!([]), ""),
        (json!({"url": 1}), ".url"),
        (json!({"url": "example.com"}), ".url"),
        (json!({"url": "ftp://example.com/"}), ".url"),
        (json!({"url": "http://"}), ".url"),
        (json!({"url": "http://{{payload.host}}/"}), ".url"),
        (json!({"url": "http://e.com/{{payload.x}}"}), ".url"),
        (json!({"url": "http://e.com/", "tls": {}}), ".tls"),
        (with("verb", json!("GET")), ".verb"),
        (with("method", json!("BREW")), ".method"),
        (with("method", json!("CONNECT")), ".method"),
        (with("headers", json!([])), ".headers"),
        (with("headers", json!({"a b": "c"})), ".headers.a b"),
        (with("headers", json!({"a": 1})), ".headers.a"),
        (with("headers", json!({"a": "b\nc"})), ".headers.a"),
        (with("headers", json!({"a": "{{payload.lines}}"})), ".headers.a"),
        (with("headers", json!({"a": "{{payload.x}}"})), ".headers.a"),
        (with("headers", json!({"Content-Length": "0"})), ".headers.Content-Length"),
        (with("headers", json!({"X-Evenkeel-Fence": "9"})), ".headers.X-Evenkeel-Fence"),
        (with("headers", json!({"Webhook-Id": "9"})), ".headers.Webhook-Id"),
        (with("body", json!({"a": ["{{payload.x}}"]})), ".body.a.0"),
        (with("body_text", json!("{{payload.x}}")), ".body_text"),
        (with("body_text", json!({})), ".body_text"),
        (json!({"url": URL, "body": 1, "body_text": ""}), ".body_text"),
        (with("expected_status", json!(99)), ".expected_status"),
        (with("expected_status", json!([])), ".expected_status"),
        (with("expected_status", json!([200, "x"])), ".expected_status"),
        (with("expected_status", json!("+xx")), ".expected_status"),
        (with("give_up_on", json!("6xx")), ".give_up_on"),
        (with("redirects", json!(11)), ".redirects"),
        (with("redirects", json!(true)), ".redirects"),
        (with("max_response_bytes", json!(-1)), ".max_response_bytes"),
        (with("tls", json!([])), ".tls"),
        (with("tls", json!({"min": "1.3"})), ".tls.min"),
        (with("tls", json!({"min_version": "1.1"})), ".tls.min_version"),
        (with("tls", json!({"verify": "no"})), ".tls.verify"),
        (with("tls", json!({"ca_pem": "x".repeat(100_000)})), ".tls.ca_pem"),
    ] {
        let fault = check(&config, &json!({"lines": "a\r\nb: c"})).unwrap_err();
        assert_eq!(fault.field, format!("executor_config{field}"), "{config}: {fault}");
    }
}

#[test]
fn call_posts_and_accepts_any_2xx_by_default() {
    let config = json!({"url": URL});
    let call = Call::parse(&config).unwrap();
    assert_eq!((&call.method, call.redirects), (&Method::POST, 0));
    assert!(call.is_expected(StatusCode::NO_CONTENT));
    assert!(!call.is_expected(StatusCode::FOUND));
    let config = json!({"url": URL, "method": "head"});
    assert_eq!(Call::parse(&config).unwrap().redirects, 5);
}

#[test]
fn only_expected_statuses_succeed() {
    let config = json!({"url": URL, "expected_status": [404, "3xx"], "give_up_on": [400, "5xx"]});
    let call = Call::parse(&config).unwrap();
    assert!(call.is_expected(StatusCode::NOT_FOUND) && call.is_expected(StatusCode::FOUND));
    assert!(!call.is_expected(StatusCode::OK));
    assert!(call.expects_by_name(StatusCode::NOT_FOUND));
    assert!(!call.expects_by_name(StatusCode::FOUND));
    assert!(call.gives_up_on(StatusCode::BAD_REQUEST) && call.gives_up_on(StatusCode::BAD_GATEWAY));
    assert!(call.gives_up_on(StatusCode::GONE) && !call.gives_up_on(StatusCode::FORBIDDEN));
}

#[test]
fn templates_are_filled_in_everywhere() {
    let config = json!({
        "url": "https://example.com/{{payload.id}}?at={{scheduled_at}}",
        "headers": {"X-Id": "<{{payload.id}}>"},
        "body_text": "{{payload.id}}/{{attempt}}",
    });
    let payload = json!({"id": "a b"});
    assert_eq!(check(&config, &payload), Ok(()));
    let key = AttemptKey::regular(JobNo(1), "2026-12-01T09:00:00Z".parse().unwrap());
    let id = RunIds::new(b"test").attempt_id(key);
    let values = Values { id, fence: Fence(1), payload: &payload };
    let filled = Call::parse(&config).unwrap().fill(&values).unwrap();
    let url = "https://example.com/a%20b?at=2026-12-01T09%3A00%3A00.000000Z";
    assert_eq!(filled.url.as_str(), url);
    assert_eq!(filled.headers["x-id"], "<a b>");
    let content = filled.content.unwrap();
    assert_eq!(&content.bytes[..], b"a b/1");
    assert_eq!(content.kind, "text/plain; charset=utf-8");
}

#[test]
fn headers_share_one_size_limit() {
    let config = with("headers", json!({"a": "{{payload}}", "b": "{{payload}}"}));
    assert_eq!(check(&config, &json!("x".repeat(HEADER_BYTES_MAX / 2))), Ok(()));
    let fault = check(&config, &json!("x".repeat(HEADER_BYTES_MAX / 2 + 1))).unwrap_err();
    assert_eq!(fault.field, "executor_config.headers.b");
}

#[test]
fn tls_options_equal_to_the_defaults_are_ignored() {
    for (tls, is_own) in [
        (json!({}), false),
        (json!({"verify": true, "min_version": "1.2", "ca_pem": null}), false),
        (json!({"min_version": "1.3"}), true),
    ] {
        let config = with("tls", tls);
        assert_eq!(Call::parse(&config).unwrap().tls.is_some(), is_own, "{config}");
    }
}
