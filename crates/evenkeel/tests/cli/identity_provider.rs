//! A small identity provider for tests, which checks what a real one checks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub const PUBLIC_URL: &str = "http://jobs.example.com";
const CLIENT_ID: &str = "dashboard";
const CLIENT_SECRET: &str = "s3cret: with a colon";
const KEY_ID: &str = "one";

/// What the provider knows of a code.
struct Grant {
    challenge: String,
    redirect_uri: String,
    id_token: String,
}

/// The grants by code. A used code has none.
type Grants = Arc<Mutex<HashMap<String, Option<Grant>>>>;

pub struct IdentityProvider {
    pub url: String,
    files: tempfile::TempDir,
    key: KeyPair,
    grants: Grants,
    runtime: tokio::runtime::Runtime,
}

impl IdentityProvider {
    pub fn start() -> Self {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let files = tempfile::tempdir().unwrap();
        let jwk = json!({
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": KEY_ID,
            "x": URL_SAFE_NO_PAD.encode(key.der_bytes()),
        });
        std::fs::write(files.path().join("jwks.json"), json!({"keys": [jwk]}).to_string()).unwrap();
        std::fs::write(files.path().join("client-secret"), format!("{CLIENT_SECRET}\n")).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let grants = Grants::default();
        let router = Router::new().route("/token", post(token)).with_state(Arc::clone(&grants));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, files, key, grants, runtime }
    }

    /// The file with the client secret.
    pub fn secret_file(&self) -> PathBuf {
        self.files.path().join("client-secret")
    }

    /// Arguments of a server at which users of this provider sign in.
    pub fn arguments(&self) -> Vec<String> {
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let settings = [
            ("--public-url", PUBLIC_URL.to_owned()),
            ("--jwt-algorithm", "EdDSA".to_owned()),
            ("--jwt-jwks-file", path(&self.files.path().join("jwks.json"))),
            ("--jwt-issuer", self.url.clone()),
            ("--jwt-audience", format!("evenkeel,{CLIENT_ID}")),
            ("--oidc-client-id", CLIENT_ID.to_owned()),
            ("--oidc-client-secret-file", path(&self.secret_file())),
            ("--oidc-authorization-endpoint", format!("{}/authorize?realm=a%26b", self.url)),
            ("--oidc-token-endpoint", format!("{}/token", self.url)),
            ("--oidc-name", "Example ID".to_owned()),
        ];
        settings.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    /// Signs a user in who was sent to `location`, as the sign-in page of a provider does. The ID
    /// token has the claims of a viewer, changed by `claims`. Returns the state and the code.
    pub fn sign_in(&self, location: &str, claims: &Value) -> (String, String) {
        assert!(
            location.starts_with(&format!("{}/authorize?realm=a%26b&", self.url)),
            "{location}"
        );
        let asked = fields(location.split_once('?').unwrap().1);
        let is = |name: &str, value: &str| assert_eq!(asked[name], value, "{asked:?}");
        is("response_type", "code");
        is("client_id", CLIENT_ID);
        is("scope", "openid profile");
        is("code_challenge_method", "S256");
        is("redirect_uri", &format!("{PUBLIC_URL}/sign-in/callback"));
        let mut all = json!({
            "iss": self.url, "aud": CLIENT_ID, "sub": "ann", "exp": 4_000_000_000_u64,
            "nonce": asked["nonce"], "role": "viewer", "tenant": "default",
        });
        for (name, value) in claims.as_object().unwrap() {
            match value {
                Value::Null => drop(all.as_object_mut().unwrap().remove(name)),
                value => all[name] = value.clone(),
            }
        }
        let grant = Grant {
            challenge: asked["code_challenge"].clone(),
            redirect_uri: asked["redirect_uri"].clone(),
            id_token: self.signed(&all),
        };
        let mut grants = self.grants.lock().unwrap();
        let code = format!("code-{}", grants.len());
        grants.insert(code.clone(), Some(grant));
        (asked["state"].clone(), code)
    }

    fn signed(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = json!({"alg": "EdDSA", "kid": KEY_ID});
        let stem = format!("{}.{}", part(&head), part(claims));
        let signature = self.key.sign(stem.as_bytes()).unwrap();
        format!("{stem}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Stops the provider. Later calls find its port closed.
    pub fn stop(self) {
        drop(self.runtime);
    }
}

/// Returns the fields of a query or a form.
pub fn fields(text: &str) -> HashMap<String, String> {
    let url = Url::parse(&format!("http://localhost/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

/// Exchanges a code, which is valid once.
async fn token(
    State(grants): State<Grants>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    let refused = |status, error: &str| (status, json!({"error": error}).to_string());
    if headers.get("authorization").is_none_or(|value| !is_client(value.as_bytes())) {
        return refused(StatusCode::UNAUTHORIZED, "invalid_client");
    }
    let given = fields(&body);
    if given["grant_type"] != "authorization_code" {
        return refused(StatusCode::BAD_REQUEST, "unsupported_grant_type");
    }
    let mut grants = grants.lock().unwrap();
    let grant = grants.get_mut(&given["code"]).and_then(Option::take);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&given["code_verifier"]));
    match grant {
        Some(grant)
            if grant.challenge == challenge && grant.redirect_uri == given["redirect_uri"] =>
        {
            let answer = json!({
                "access_token": "x", "token_type": "Bearer", "id_token": grant.id_token,
            });
            (StatusCode::OK, answer.to_string())
        }
        _ => refused(StatusCode::BAD_REQUEST, "invalid_grant"),
    }
}

/// True for the id and the secret of the client, each encoded as in a form (RFC 6749, section 2.3.1).
fn is_client(authorization: &[u8]) -> bool {
    let Some(pair) = authorization.strip_prefix(b"Basic ") else { return false };
    let pair = String::from_utf8(STANDARD.decode(pair).unwrap()).unwrap();
    let (id, secret) = pair.split_once(':').unwrap();
    let form = fields(&format!("id={id}&secret={secret}"));
    form["id"] == CLIENT_ID && form["secret"] == CLIENT_SECRET
}
