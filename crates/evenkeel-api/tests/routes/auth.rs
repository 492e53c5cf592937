//! Tokens and roles.

use axum::body::Body;
use axum::http::{Method, Request, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_store::Role;
use evenkeel_store_testkit::fixtures::START;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::world::{World, request, token};

fn claims() -> Value {
    let now = START.as_micros() / 1_000_000;
    json!({
        "sub": "mallory", "role": "admin", "tenant": "main", "iat": now, "exp": now + 3600,
        "iss": "evenkeel", "jti": "x",
    })
}

fn signed(algorithm: Algorithm, claims: &Value, secret: &[u8]) -> String {
    evenkeel_access::use_ring();
    encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret)).unwrap()
}

fn unsigned(header: Value, claims: &Value, signature: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", part(&header), part(claims))
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let world = World::new().await;
    let secret = [42; 32];
    let with = |field: &str, value: Value| {
        let mut claims = claims();
        claims[field] = value;
        signed(Algorithm::HS256, &claims, &secret)
    };
    let without = |field: &str| {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(field);
        signed(Algorithm::HS256, &claims, &secret)
    };
    let good = signed(Algorithm::HS256, &claims(), &secret);
    let (stem, signature) = good.rsplit_once('.').unwrap();
    let corpus = [
        ("no algorithm", unsigned(json!({"alg": "none", "typ": "JWT"}), &claims(), "")),
        ("no algorithm, signed", unsigned(json!({"alg": "none"}), &claims(), signature)),
        ("no algorithm in capitals", unsigned(json!({"alg": "NONE"}), &claims(), "")),
        ("another algorithm's name", unsigned(json!({"alg": "RS256"}), &claims(), signature)),
        ("an elliptic one", unsigned(json!({"alg": "ES256"}), &claims(), signature)),
        (
            "its own key",
            unsigned(
                json!({"alg": "HS256", "jwk": {"kty": "oct", "k": "AAAA"}}),
                &claims(),
                signature,
            ),
        ),
        ("a longer hash", signed(Algorithm::HS384, &claims(), &secret)),
        ("the longest hash", signed(Algorithm::HS512, &claims(), &secret)),
        ("another secret", signed(Algorithm::HS256, &claims(), &[43; 32])),
        ("an empty secret", signed(Algorithm::HS256, &claims(), b"")),
        ("no signature", format!("{stem}.")),
        ("half a signature", format!("{stem}.{}", &signature[..20])),
        ("another's claims", unsigned(json!({"alg": "HS256"}), &claims(), signature)),
        ("expired", with("exp", json!(START.as_micros() / 1_000_000))),
        ("made in the future", with("iat", json!(START.as_micros() / 1_000_000 + 61))),
        ("good in the future", with("nbf", json!(START.as_micros() / 1_000_000 + 61))),
        ("critical headers", {
            let mut header = Header::new(Algorithm::HS256);
            header.crit = Some(vec!["exp".into()]);
            encode(&header, &claims(), &EncodingKey::from_secret(&secret)).unwrap()
        }),
        ("no end", without("exp")),
        ("an end in words", with("exp", json!("never"))),
        ("a negative end", with("exp", json!(-1))),
        ("another issuer", with("iss", json!("somebody"))),
        ("no issuer", without("iss")),
        ("an audience", with("aud", json!("others"))),
        ("an unknown role", with("role", json!("root"))),
        ("no role", without("role")),
        ("no tenant", without("tenant")),
        ("nothing", String::new()),
        ("dots", "..".into()),
        ("words", "let me in".into()),
        ("a very long one", "a".repeat(100_000)),
    ];
    for (what, forged) in corpus {
        let answer = world.send(request(Method::GET, "/api/v1/jobs", Some(&forged), None)).await;
        answer.problem(401, "unauthorized");
        let challenge = answer.header(header::WWW_AUTHENTICATE);
        assert_eq!(challenge, Some("Bearer realm=\"evenkeel\""), "{what}");
    }
    world.send(request(Method::GET, "/api/v1/jobs", Some(&good), None)).await.expect(200);
}

#[tokio::test]
async fn token_is_read_from_one_header_only() {
    let world = World::new().await;
    let token = token(Role::Admin, "main");
    let with = |values: &[String]| {
        let mut request = Request::builder().uri("/api/v1/jobs");
        for value in values {
            request = request.header(header::AUTHORIZATION, value);
        }
        request.body(Body::empty()).unwrap()
    };
    let refused = [
        with(&[]),
        with(std::slice::from_ref(&token)),
        with(&[format!("Basic {token}")]),
        with(&["Bearer".into()]),
        with(&[format!("Bearer {token}"), format!("Bearer {token}")]),
        request(Method::GET, &format!("/api/v1/jobs?token={token}"), None, None),
        request(Method::GET, &format!("/api/v1/jobs?access_token={token}"), None, None),
    ];
    for request in refused {
        world.send(request).await.problem(401, "unauthorized");
    }
    world.send(with(&[format!("bearer {token}")])).await.expect(200);
}

#[tokio::test]
async fn expired_token_is_refused() {
    let world = World::new().await;
    world.pass(3599);
    world.get("/api/v1/jobs").await.expect(200);
    world.pass(1);
    let problem = world.get("/api/v1/jobs").await.problem(401, "unauthorized");
    assert_eq!(problem["detail"], "the token has expired");
}

#[tokio::test]
async fn role_is_checked_before_the_body_is_read() {
    let world = World::new().await;
    let document = Some(json!({"name": 5}));
    let answer = world.ask_as(Role::Viewer, Method::POST, "/api/v1/jobs", document).await;
    let problem = answer.problem(403, "forbidden");
    assert_eq!(problem["detail"], "this needs the role operator, the token has viewer");
}
