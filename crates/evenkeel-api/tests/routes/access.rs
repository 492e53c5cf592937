//! Tests of API keys, the limit on failed authentication, and tokens of external identity
//! providers.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, header};
use evenkeel_access::Trust;
use evenkeel_api::{ClientAddress, SECRET_BYTES_MIN, TokenRequest, Tokens};
use evenkeel_core::Span;
use evenkeel_store::Role;
use evenkeel_store_testkit::fixtures::START;
use serde_json::{Value, json};

use crate::world::{Answer, Counting, World, request, token, tokens};

async fn create_key(world: &World, document: Value) -> Value {
    let path = "/api/v1/api-keys";
    world.ask_as(Role::Admin, Method::POST, path, Some(document)).await.expect(201)
}

async fn ask_with(world: &World, credential: &str) -> Answer {
    world.send(request(Method::GET, "/api/v1/jobs", Some(credential), None)).await
}

fn from_address(credential: &str, from: &str) -> Request<Body> {
    let mut request = request(Method::GET, "/api/v1/jobs", Some(credential), None);
    let from: IpAddr = from.parse().unwrap();
    request.extensions_mut().insert(ClientAddress(from));
    request
}

#[tokio::test]
async fn key_has_its_role_and_tenant_until_it_is_revoked() {
    let world = World::new().await;
    world.create(json!({"name": "a"})).await;
    let made = create_key(&world, json!({"name": "ci", "role": "viewer"})).await;
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("ek_") && key.len() == 67);
    assert_eq!(ask_with(&world, key).await.expect(200)["total"], 1);
    let trigger = request(Method::POST, "/api/v1/jobs", Some(key), Some(json!({})));
    world.send(trigger).await.problem(403, "forbidden");
    let place = format!("/api/v1/api-keys/{}", made["id"].as_str().unwrap());
    let revoked = world.ask_as(Role::Admin, Method::DELETE, &place, None).await.expect(200);
    assert_eq!(revoked, json!({"id": made["id"], "revoked": true}));
    let problem = ask_with(&world, key).await.problem(401, "unauthorized");
    assert_eq!(problem["detail"], "the API key was revoked");
    world.ask_as(Role::Admin, Method::DELETE, &place, None).await.problem(404, "not-found");
}

#[tokio::test]
async fn key_is_shown_once() {
    let world = World::new().await;
    let made = create_key(&world, json!({"name": "ci", "role": "admin", "expires_in": "1h"})).await;
    let key = made["key"].as_str().unwrap();
    let secret = &key["ek_".len()..];
    for path in ["/api/v1/api-keys", "/api/v1/audit"] {
        let list = world.ask_as(Role::Admin, Method::GET, path, None).await;
        list.expect(200);
        assert!(!list.text.contains(secret), "{path}");
        assert!(list.text.contains(made["id"].as_str().unwrap()), "{path}");
    }
}

#[tokio::test]
async fn key_expires() {
    let world = World::new().await;
    let made =
        create_key(&world, json!({"name": "ci", "role": "viewer", "expires_in": "1h"})).await;
    let key = made["key"].as_str().unwrap();
    world.pass(3599);
    ask_with(&world, key).await.expect(200);
    world.pass(1);
    let problem = ask_with(&world, key).await.problem(401, "unauthorized");
    assert_eq!(problem["detail"], "the API key has expired");
}

#[tokio::test]
async fn key_name_is_taken_until_the_key_is_revoked() {
    let world = World::new().await;
    let document = json!({"name": "ci", "role": "viewer"});
    create_key(&world, document.clone()).await;
    let path = "/api/v1/api-keys";
    let again = world.ask_as(Role::Admin, Method::POST, path, Some(document)).await;
    assert_eq!(again.problem(409, "key-name-taken")["field"], "name");
}

#[tokio::test]
async fn invalid_key_is_refused_with_all_its_errors() {
    let world = World::new().await;
    for (document, fields) in [
        (json!({}), vec!["name", "role"]),
        (json!({"name": "", "role": "root"}), vec!["name", "role"]),
        (json!({"name": "a\nb", "role": 5}), vec!["name", "role", "role"]),
        (json!({"name": "a", "role": "viewer", "expires_in": "soon"}), vec!["expires_in"]),
        (
            json!({"name": "a", "role": "viewer", "expires_at": "2001-01-01T00:00:00Z"}),
            vec!["expires_at"],
        ),
        (json!({"name": "a", "role": "viewer", "tenant": "other"}), vec!["tenant"]),
        (json!([1]), vec![""]),
    ] {
        let path = "/api/v1/api-keys";
        let answer = world.ask_as(Role::Admin, Method::POST, path, Some(document.clone())).await;
        let problem = answer.problem(422, "invalid-parameter");
        let errors = problem["errors"].as_array().unwrap();
        let mut named: Vec<_> =
            errors.iter().map(|error| error["field"].as_str().unwrap()).collect();
        named.sort_unstable();
        assert_eq!(named, fields, "{document}");
    }
}

#[tokio::test]
async fn unknown_keys_are_refused() {
    let world = World::new().await;
    let made = create_key(&world, json!({"name": "ci", "role": "viewer"})).await;
    let key = made["key"].as_str().unwrap();
    let other = format!("ek_{}", "0".repeat(64));
    for forged in
        ["ek_", "ek_1", other.as_str(), &key.to_uppercase(), &key[..66], &format!("{key}0")]
    {
        ask_with(&world, forged).await.problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn address_with_too_many_failures_must_wait() {
    let world = World::new().await;
    let good = token(Role::Viewer, "main");
    for _ in 0..10 {
        world.send(from_address("wrong", "192.0.2.1")).await.problem(401, "unauthorized");
        world.send(from_address(&good, "192.0.2.1")).await.expect(200);
    }
    let answer = world.send(from_address("wrong", "192.0.2.1")).await;
    answer.problem(429, "too-many-failures");
    assert_eq!(answer.header(header::RETRY_AFTER), Some("60"));
    world.pass(20);
    let answer = world.send(from_address("wrong", "192.0.2.1")).await;
    assert_eq!(answer.header(header::RETRY_AFTER), Some("40"));
    // Requests with valid credentials are not limited, because several clients may share an IP
    // address.
    world.send(from_address(&good, "192.0.2.1")).await.expect(200);
    world.send(from_address("wrong", "192.0.2.2")).await.problem(401, "unauthorized");
    world.pass(41);
    world.send(from_address("wrong", "192.0.2.1")).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn request_without_a_credential_does_not_count_as_a_failure() {
    let world = World::new().await;
    for _ in 0..30 {
        let mut request = request(Method::GET, "/api/v1/jobs", None, None);
        request.extensions_mut().insert(ClientAddress("192.0.2.1".parse().unwrap()));
        world.send(request).await.problem(401, "unauthorized");
    }
    // The audit log contains the refused requests, up to a limit.
    world.create(json!({})).await;
    let log = request(Method::GET, "/api/v1/audit", Some(&token(Role::Admin, "default")), None);
    assert_eq!(world.send(log).await.expect(200)["total"], 11);
}

fn machine_token() -> (Arc<Tokens>, String) {
    let tokens = Arc::new(Tokens::new(&[9; SECRET_BYTES_MIN]).unwrap());
    let request = TokenRequest {
        role: Role::Admin,
        tenant: "main".into(),
        ttl: Span::from_secs(3600),
        now: START,
        subject: "local".into(),
    };
    let token = tokens.issue(&request, &Counting::new()).unwrap();
    (tokens, token)
}

#[tokio::test]
async fn token_of_the_data_directory_is_valid_on_its_own_machine_only() {
    let (machine, token) = machine_token();
    let world = World::trusting(Trust { machine: Some(machine), ..Trust::default() }).await;
    for from in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        world.send(from_address(&token, from)).await.expect(200);
    }
    let problem = world.send(from_address(&token, "192.0.2.1")).await.problem(401, "unauthorized");
    assert!(problem["detail"].as_str().unwrap().contains("API key"), "{problem}");
    ask_with(&world, &token).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn local_tokens_are_refused_if_only_an_identity_provider_is_trusted() {
    let (machine, _) = machine_token();
    let world = World::trusting(Trust { machine: Some(machine), ..Trust::default() }).await;
    let stored = token(Role::Admin, "main");
    for from in ["127.0.0.1", "192.0.2.1"] {
        world.send(from_address(&stored, from)).await.problem(401, "unauthorized");
    }
    let trust = Trust { local: Some(Arc::new(tokens())), ..Trust::default() };
    let world = World::trusting(trust).await;
    world.send(from_address(&stored, "192.0.2.1")).await.expect(200);
}
