//! Exchanges a code for an ID token at the token endpoint of the identity provider.

use std::time::Duration;

use axum::http::{HeaderValue, Method, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use evenkeel_outbound::describe;
use evenkeel_outbound::reqwest::{Body, Request, Response};
use serde::Deserialize;

use super::Oidc;
use super::problem::error_text;
use crate::backend::escape;

/// Time limit for the exchange of a code.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Longest answer of the token endpoint.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The error of the token endpoint for a code that is unknown, used, too old, or of another client.
const CODE_REFUSED: &str = "invalid_grant";

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// The code is not valid.
    CodeRefused,
    /// The token endpoint gave no ID token, for this reason.
    NoToken(String),
}

impl Oidc {
    /// Returns the ID token for a code.
    pub(super) async fn exchange(&self, code: &str, verifier: &str) -> Result<String, Failure> {
        let exchange = async {
            // The semaphore is never closed.
            let _permit = self.exchanges.acquire().await;
            let sent = self.settings.outbound.send(self.token_request(code, verifier)?).await;
            let answer = sent.map_err(|error| Failure::NoToken(error.to_string()))?;
            let status = answer.status();
            id_token(status, &read(answer).await?)
        };
        tokio::time::timeout(TIME_LIMIT, exchange).await.unwrap_or_else(|_| {
            let secs = TIME_LIMIT.as_secs();
            Err(Failure::NoToken(format!("the token endpoint did not answer within {secs} s")))
        })
    }

    fn token_request(&self, code: &str, verifier: &str) -> Result<Request, Failure> {
        let settings = &self.settings;
        let redirect_uri = self.redirect_uri();
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", verifier),
        ];
        let mut request = Request::new(Method::POST, settings.token_endpoint.clone());
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        match &settings.client_secret {
            None => fields.push(("client_id", &settings.client_id)),
            Some(secret) => {
                let pair = format!("{}:{}", escape(&settings.client_id), escape(secret));
                let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
                let mut value = value.map_err(|error| Failure::NoToken(error.to_string()))?;
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
        }
        let pairs = fields.iter().map(|(name, value)| format!("{name}={}", escape(value)));
        *request.body_mut() = Some(Body::from(pairs.collect::<Vec<_>>().join("&")));
        Ok(request)
    }
}

async fn read(mut answer: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(None) => return Ok(body),
            Ok(Some(chunk)) if body.len() + chunk.len() <= ANSWER_BYTES_MAX => {
                body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => {
                let reason =
                    format!("the token endpoint answered more than {ANSWER_BYTES_MAX} bytes");
                return Err(Failure::NoToken(reason));
            }
            Err(error) => {
                let cause = describe(&error.without_url());
                let reason = format!("the answer of the token endpoint broke off: {cause}");
                return Err(Failure::NoToken(reason));
            }
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenAnswer {
    id_token: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Reads the ID token in an answer of the token endpoint.
pub(super) fn id_token(status: StatusCode, body: &[u8]) -> Result<String, Failure> {
    let answer: TokenAnswer = serde_json::from_slice(body).unwrap_or_default();
    if status.is_success() {
        let reason = "the token endpoint answered without an id_token; are openid in oidc_scopes and \
                      oidc_token_endpoint right?";
        let token = answer.id_token.filter(|token| !token.is_empty());
        return token.ok_or_else(|| Failure::NoToken(reason.into()));
    }
    if answer.error.as_deref() == Some(CODE_REFUSED) {
        return Err(Failure::CodeRefused);
    }
    let error = error_text(
        &answer.error.unwrap_or_default(),
        &answer.error_description.unwrap_or_default(),
    );
    Err(Failure::NoToken(format!("the token endpoint answered {}: {error}", status.as_u16())))
}

#[derive(Deserialize)]
struct Claims {
    nonce: Option<String>,
    aud: Audience,
    azp: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Checks that an ID token belongs to this sign-in and to this client. The API checks its signature
/// and all other claims.
pub(super) fn check_claims(token: &str, nonce: &str, client_id: &str) -> Result<(), &'static str> {
    let payload = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims = payload.and_then(|payload| serde_json::from_slice::<Claims>(&payload).ok());
    let claims = claims.ok_or("it is not an ID token")?;
    if claims.nonce.as_deref() != Some(nonce) {
        return Err("its nonce is not the one of this sign-in");
    }
    let is_for_this_client = match &claims.aud {
        Audience::One(name) => name == client_id,
        Audience::Many(names) => names.iter().any(|name| name == client_id),
    };
    if !is_for_this_client || claims.azp.is_some_and(|client| client != client_id) {
        return Err("it is for another client than oidc_client_id");
    }
    Ok(())
}
