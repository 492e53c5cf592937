use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_core::{Span, Timestamp};
use evenkeel_outbound::OutboundSettings;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::exchange::{check_claims, id_token};
use super::problem::{ERROR_CHARS_MAX, error_text, sentence_start};
use super::*;
use crate::session::Sessions;

/// Returns another number with each call.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Chance for Counting {
    fn bits(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

fn oidc(token_endpoint: &str, client_secret: Option<&str>) -> Oidc {
    let allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    let outbound = OutboundSettings { allow_networks, ..OutboundSettings::default() };
    let settings = OidcSettings {
        client_id: "dash board".into(),
        client_secret: client_secret.map(String::from),
        authorization_endpoint: "https://id.example.com/authorize?tenant=1".parse().unwrap(),
        token_endpoint: token_endpoint.parse().unwrap(),
        scopes: "openid profile".into(),
        name: "Keycloak".into(),
        public_url: "https://jobs.example.com".into(),
        outbound: Outbound::new(outbound).unwrap(),
    };
    Oidc::new(settings, Arc::new(Counting::default()))
}

fn sessions(key: u8) -> Sessions {
    Sessions::new(&[key; 32], Arc::new(Counting::default()))
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000 + secs * 1_000_000)
}

/// The headers of a request with the cookie that an answer has set.
fn request_with(cookie: &HeaderValue) -> HeaderMap {
    let pair = cookie.to_str().unwrap().split(';').next().unwrap();
    HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(pair).unwrap())])
}

#[test]
fn challenge_is_the_one_of_the_standard() {
    // The example of RFC 7636, appendix B.
    let pending = Pending {
        verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into(),
        ..Pending::new("/", &Counting::default())
    };
    assert_eq!(pending.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

#[test]
fn pending_sign_in_is_kept_for_ten_minutes_in_one_browser() {
    let pending = Pending::new("/jobs", &Counting::default());
    let secrets = [&pending.state, &pending.nonce, &pending.verifier];
    assert!(secrets.iter().all(|secret| secret.len() == 43));
    assert!(secrets[0] != secrets[1] && secrets[1] != secrets[2]);

    let cookie = pending.cookie(&sessions(1), true, at(0)).unwrap();
    let text = cookie.to_str().unwrap();
    assert!(text.ends_with("; Path=/sign-in; HttpOnly; SameSite=Lax; Max-Age=600; Secure"));
    assert!(secrets.iter().all(|secret| !text.contains(*secret)), "{text}");
    let headers = request_with(&cookie);
    let opened = |key, state: &str, now| {
        Pending::of_request(&sessions(key), &headers, state, now).map(|pending| pending.next)
    };
    assert_eq!(opened(1, &pending.state, at(599)).as_deref(), Some("/jobs"));
    assert_eq!(opened(1, &pending.state, at(600)), None);
    assert_eq!(opened(2, &pending.state, at(0)), None);
    for state in ["", "x", &pending.nonce] {
        assert_eq!(opened(1, state, at(0)), None, "{state}");
    }
    let no_cookie = HeaderMap::new();
    assert!(Pending::of_request(&sessions(1), &no_cookie, &pending.state, at(0)).is_none());

    let plain = pending.cookie(&sessions(1), false, at(0)).unwrap();
    assert!(!plain.to_str().unwrap().contains("Secure"));
}

#[test]
fn session_cookie_is_not_a_pending_sign_in() {
    let (sessions, now) = (sessions(1), at(0));
    let pending = Pending::new("/", &Counting::default());
    let sealed = sessions.pending.seal(&serde_json::to_string(&pending).unwrap(), now).unwrap();
    assert!(sessions.pending.open(&sealed, Span::from_secs(1), now).is_some());
    assert_eq!(sessions.open(&sealed, now), None);
    let other = sessions.seal(&serde_json::to_string(&pending).unwrap(), now).unwrap();
    assert_eq!(sessions.pending.open(&other, Span::from_secs(1), now), None);
}

#[test]
fn cookie_of_a_pending_sign_in_fits_into_a_browser() {
    let longest = format!("/{}", "x".repeat(1999));
    for (next, kept) in [(longest.clone(), longest.as_str()), (format!("{longest}x"), "/")] {
        let pending = Pending::new(&next, &Counting::default());
        assert_eq!(pending.next, kept);
        assert!(pending.cookie(&sessions(1), true, at(0)).unwrap().len() < 4096);
    }
}

#[test]
fn browser_is_sent_to_the_provider_with_state_nonce_and_challenge() {
    let oidc = oidc("https://id.example.com/token", None);
    let pending = Pending::new("/jobs", &Counting::default());
    let url = oidc.authorization_url(&pending);
    assert!(url.as_str().starts_with("https://id.example.com/authorize?tenant=1&"), "{url}");
    let challenge = pending.challenge();
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().skip(1).collect();
    let expected = [
        ("response_type", "code"),
        ("client_id", "dash board"),
        ("redirect_uri", "https://jobs.example.com/sign-in/callback"),
        ("scope", "openid profile"),
        ("state", &pending.state),
        ("nonce", &pending.nonce),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(!url.as_str().contains(&pending.verifier));
    let link = oidc.link("/jobs?status=paused");
    assert_eq!(link, "https://jobs.example.com/sign-in/oidc?next=%2Fjobs%3Fstatus%3Dpaused");
}

/// A token without a valid signature, which only its claims matter for.
fn token(claims: &Value) -> String {
    format!("e30.{}.", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

#[test]
fn id_token_of_another_sign_in_or_client_is_refused() {
    let check = |claims: Value| check_claims(&token(&claims), "n", "dashboard");
    assert_eq!(check(json!({"nonce": "n", "aud": "dashboard"})), Ok(()));
    let several = json!({"nonce": "n", "aud": ["x", "dashboard"], "azp": "dashboard", "a": 1});
    assert_eq!(check(several), Ok(()));
    for nonce in [json!("m"), json!(""), Value::Null] {
        let refused = check(json!({"nonce": nonce, "aud": "dashboard"})).unwrap_err();
        assert!(refused.contains("nonce"), "{refused}");
    }
    assert!(check(json!({"aud": "dashboard"})).unwrap_err().contains("nonce"));
    for claims in [
        json!({"nonce": "n", "aud": "evenkeel"}),
        json!({"nonce": "n", "aud": []}),
        json!({"nonce": "n", "aud": ["dashboard", "x"], "azp": "x"}),
    ] {
        let refused = check(claims).unwrap_err();
        assert!(refused.contains("another client"), "{refused}");
    }
    for broken in ["", "ek_key", "a.b.c", "a.e30.c"] {
        let refused = check_claims(broken, "n", "dashboard").unwrap_err();
        assert_eq!(refused, "it is not an ID token", "{broken}");
    }
}

#[test]
fn answer_of_the_token_endpoint_is_a_token_or_a_reason() {
    let read =
        |status, body: &str| id_token(StatusCode::from_u16(status).unwrap(), body.as_bytes());
    assert_eq!(read(200, r#"{"id_token":"a.b.c","access_token":"x"}"#), Ok("a.b.c".into()));
    let refused = r#"{"error":"invalid_grant","error_description":"used"}"#;
    assert_eq!(read(400, refused), Err(Failure::CodeRefused));
    for (status, body, reason) in [
        (200, "{}", "without an id_token"),
        (200, r#"{"id_token":""}"#, "without an id_token"),
        (200, "<html>", "without an id_token"),
        (302, r#"{"id_token":"a.b.c"}"#, "302: it gave no reason"),
        (401, r#"{"error":"invalid_client"}"#, "401: invalid_client"),
        (502, "<html>", "502: it gave no reason"),
    ] {
        let Err(Failure::NoToken(found)) = read(status, body) else { panic!("{status} {body}") };
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn error_text_of_the_provider_is_one_short_line() {
    assert_eq!(error_text("access_denied", " no\r\naccess. "), "access_denied, no  access");
    assert_eq!(error_text("", ""), "it gave no reason");
    let long = error_text("x", &"é".repeat(1000));
    assert_eq!(long.chars().count(), ERROR_CHARS_MAX + 1);
    assert!(long.ends_with('…'));
    assert_eq!(sentence_start("éa b"), "Éa b");
}

/// Answers one request on a port of its own, and returns what it received.
async fn answer_once(answer: Vec<u8>) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"end-of-verifier") {
            let mut part = [0; 1024];
            match stream.read(&mut part).await.unwrap() {
                0 => break,
                count => received.extend_from_slice(&part[..count]),
            }
        }
        // The client may close the connection before it has read a long answer.
        let _ = stream.write_all(&answer).await;
        String::from_utf8(received).unwrap()
    });
    (url, served)
}

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[tokio::test]
async fn code_is_exchanged_with_the_verifier_and_the_client_secret() {
    let (url, served) = answer_once(ok(r#"{"id_token":"a.b.c"}"#)).await;
    let client = oidc(&url, Some("p:ss wörd"));
    let token = client.exchange("the code&x", "end-of-verifier").await;
    assert_eq!(token, Ok("a.b.c".into()));
    let request = served.await.unwrap();
    // base64("dash%20board:p%3Ass%20w%C3%B6rd")
    assert!(
        request.contains("authorization: Basic ZGFzaCUyMGJvYXJkOnAlM0FzcyUyMHclQzMlQjZyZA=="),
        "{request}"
    );
    let fields = "grant_type=authorization_code&code=the%20code%26x&\
                  redirect_uri=https%3A%2F%2Fjobs.example.com%2Fsign-in%2Fcallback&\
                  code_verifier=end-of-verifier";
    assert!(request.ends_with(&format!("\r\n\r\n{fields}")), "{request}");
}

#[tokio::test]
async fn long_answer_of_the_token_endpoint_is_not_read_to_its_end() {
    let body = format!(r#"{{"id_token":"{}"}}"#, "x".repeat(64 * 1024));
    let (url, _served) = answer_once(ok(&body)).await;
    let result = oidc(&url, Some("s")).exchange("code", "end-of-verifier").await;
    let Err(Failure::NoToken(reason)) = result else { panic!("{result:?}") };
    assert!(reason.contains("more than 65536 bytes"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn silent_token_endpoint_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    let result = oidc(&url, None).exchange("code", "verifier").await;
    let Err(Failure::NoToken(reason)) = result else { panic!("{result:?}") };
    assert!(reason.contains("within 10 s"), "{reason}");
}
