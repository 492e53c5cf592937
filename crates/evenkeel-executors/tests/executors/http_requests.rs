use axum::Router;
use axum::routing::any;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::{AttemptId, AttemptTokens, TenantNo};
use evenkeel_executors::{HttpExecutor, HttpSettings, SigningKeys, WallClock};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};

use crate::http_support::{echo, echoed_by, local, local_settings, serve};
use crate::support::invocation;

async fn echoed(config: Value, payload: Value) -> Value {
    let address = serve(Router::new().route("/", any(echo))).await;
    let mut config = config;
    config["url"] = format!("http://{address}/").into();
    echoed_by(&local(), config, payload).await
}

#[tokio::test]
async fn call_carries_the_ids_of_run_and_attempt() {
    let seen = echoed(json!({"headers": {"Authorization": "Bearer x"}}), json!({"a": 1})).await;
    let id = invocation("http", Value::Null).id;
    let headers = &seen["headers"];
    assert_eq!(headers["idempotency-key"], id.run_id().to_string());
    assert_eq!(headers["x-evenkeel-run-id"], id.run_id().to_string());
    assert_eq!(headers["x-evenkeel-execution-id"], id.to_string());
    assert_ne!(headers["x-evenkeel-execution-id"], headers["x-evenkeel-run-id"]);
    assert_eq!(headers["x-evenkeel-attempt"], "3");
    assert_eq!(headers["x-evenkeel-fence"], "5");
    assert_eq!(headers["x-evenkeel-scheduled-at"], "2026-12-01T09:00:00.000000Z");
    assert_eq!(headers["authorization"], "Bearer x");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(seen["method"], "POST");
    assert_eq!(seen["body"], r#"{"a":1}"#);
}

#[tokio::test]
async fn null_payload_sends_no_body() {
    let seen = echoed(json!({"method": "get"}), Value::Null).await;
    assert_eq!((&seen["method"], &seen["body"]), (&json!("GET"), &json!("")));
    assert!(seen["headers"].get("content-type").is_none());
}

#[tokio::test]
async fn job_may_set_its_content_type() {
    let config = json!({"headers": {"Content-Type": "application/vnd.x+json"}});
    let seen = echoed(config, json!([1])).await;
    assert_eq!(seen["headers"]["content-type"], "application/vnd.x+json");
}

#[tokio::test]
async fn templates_in_url_headers_and_body_are_filled_in() {
    let address = serve(Router::new().route("/{*path}", any(echo))).await;
    let config = json!({
        "url": format!("http://{address}/items/{{{{payload.id}}}}?run={{{{run_id}}}}"),
        "method": "PUT",
        "headers": {"X-Item": "item {{payload.id}}"},
        "body": {"id": "{{payload.id}}", "count": "{{payload.count}}", "try": "no {{attempt}}"},
    });
    let seen = echoed_by(&local(), config, json!({"id": "a/b \"c\"", "count": 3})).await;
    let run_id = invocation("http", Value::Null).id.run_id();
    assert_eq!(seen["uri"], format!("/items/a%2Fb%20%22c%22?run={run_id}"));
    assert_eq!(seen["headers"]["x-item"], "item a/b \"c\"");
    assert_eq!(seen["headers"]["content-type"], "application/json");
    let body: Value = serde_json::from_str(seen["body"].as_str().unwrap()).unwrap();
    assert_eq!(body, json!({"id": "a/b \"c\"", "count": 3, "try": "no 3"}));
}

#[tokio::test]
async fn body_text_is_sent_unchanged() {
    let config = json!({"body_text": "{ {{payload.a}} & }"});
    let seen = echoed(config, json!({"a": "<x>"})).await;
    assert_eq!(seen["body"], "{ <x> & }");
    assert_eq!(seen["headers"]["content-type"], "text/plain; charset=utf-8");
    let none = echoed(json!({"body_text": ""}), json!({"a": 1})).await;
    assert_eq!(none["body"], "");
    assert!(none["headers"].get("content-type").is_none());
}

#[tokio::test]
async fn credentials_in_the_url_are_sent_as_basic_authentication() {
    let address = serve(Router::new().route("/", any(echo))).await;
    let config = json!({"url": format!("http://user:p%20w@{address}/")});
    let seen = echoed_by(&local(), config, Value::Null).await;
    let expected = format!("Basic {}", STANDARD.encode("user:p w"));
    assert_eq!(seen["headers"]["authorization"], expected);
}

fn signing() -> HttpExecutor {
    HttpExecutor::new(HttpSettings {
        signing: Some(SigningKeys::new(b"new").with_previous(b"old")),
        attempt_tokens: Some(AttemptTokens::new(b"tokens")),
        clock: WallClock::new(|| "2026-12-01T09:00:01.9Z".parse().unwrap()),
        ..local_settings()
    })
}

/// Verifies a signature as Standard Webhooks describes.
fn is_signed(seen: &Value, secret: &str) -> bool {
    let header = |name: &str| seen["headers"][name].as_str().unwrap().to_owned();
    let body = seen["body"].as_str().unwrap();
    let signed = format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp"));
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    header("webhook-signature").split(' ').any(|signature| {
        let proof = STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).unwrap();
        mac.update(signed.as_bytes());
        mac.verify_slice(&proof).is_ok()
    })
}

#[tokio::test]
async fn receiver_can_verify_a_call_with_either_key() {
    let address = serve(Router::new().route("/", any(echo))).await;
    let config = json!({"url": format!("http://{address}/")});
    let seen = echoed_by(&signing(), config, json!({"a": "ü"})).await;
    let id = invocation("http", Value::Null).id;
    assert_eq!(seen["headers"]["webhook-id"], id.run_id().to_string());
    assert_eq!(seen["headers"]["webhook-timestamp"], "1796115601");
    for secret in [&b"new"[..], b"old"] {
        let keys = SigningKeys::new(secret);
        assert!(is_signed(&seen, &keys.receiver_secret(TenantNo(1))));
        assert!(!is_signed(&seen, &keys.receiver_secret(TenantNo(2))));
    }
    assert!(!is_signed(&seen, &SigningKeys::new(b"other").receiver_secret(TenantNo(1))));
}

#[tokio::test]
async fn receiver_gets_a_token_for_this_attempt() {
    let address = serve(Router::new().route("/", any(echo))).await;
    let config = json!({"url": format!("http://{address}/")});
    let settings =
        HttpSettings { attempt_tokens: Some(AttemptTokens::new(b"tokens")), ..local_settings() };
    let public_url = std::sync::Arc::clone(&settings.public_url);
    let executor = HttpExecutor::new(settings);
    let seen = echoed_by(&executor, config.clone(), Value::Null).await;
    let given = invocation("http", Value::Null);
    let token = seen["headers"]["x-evenkeel-callback-token"].as_str().unwrap();
    assert_eq!(AttemptTokens::new(b"tokens").verify(given.key, token), Some(given.fence));
    assert!(seen["headers"].get("x-evenkeel-callback-url").is_none());

    // The server learns its public URL only after the executor was created.
    public_url.set("https://keel.example/".into()).unwrap();
    let seen = echoed_by(&executor, config, Value::Null).await;
    let url = seen["headers"]["x-evenkeel-callback-url"].as_str().unwrap();
    let id = url.strip_prefix("https://keel.example/api/v1/runs/").unwrap();
    assert_eq!(id.parse::<AttemptId>().unwrap(), given.id);
}

#[tokio::test]
async fn call_without_keys_has_no_signature_and_no_token() {
    let seen = echoed(json!({}), json!(1)).await;
    for name in ["webhook-id", "webhook-signature", "x-evenkeel-callback-token"] {
        assert!(seen["headers"].get(name).is_none(), "{name}");
    }
}
