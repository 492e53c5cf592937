//! Sessions: signing in and out, the cookie, and the token that protects forms.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_access::Refusal;
use evenkeel_api::ClientAddress;
use evenkeel_core::chance::Chance;
use evenkeel_core::{Span, Timestamp};
use ring::hmac;
use serde::Deserialize;

use crate::backend::{Credential, Refused, escape};
use crate::sealed::Sealer;
use crate::shared_answers::Audience;
use crate::{Web, cookies, layout, pages};

/// A session ends after this time, even if its credential is still valid.
const SESSION_MAX: Span = Span::from_secs(12 * 3600);
/// Browsers refuse cookies of more than 4,096 bytes.
pub(crate) const CREDENTIAL_BYTES_MAX: usize = 2900;
/// Path of the API that every role may read, to check a credential.
const CHECK: &str = "/api/v1/nodes?limit=1";

/// Encrypts the cookies of sessions, and computes the tokens of forms.
pub(crate) struct Sessions {
    credentials: Sealer,
    /// Seals the sign-ins that users began at the identity provider.
    pub(crate) pending: Sealer,
    forms: hmac::Key,
    cookie: String,
}

impl Sessions {
    /// Derives all keys from a secret of the installation.
    pub(crate) fn new(secret: &[u8], chance: Arc<dyn Chance>) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = |purpose: &str| hmac::sign(&secret, purpose.as_bytes());
        // Cookies are shared by all ports of a host, so each installation has its own name.
        let name = derived("cookie name");
        let name = name.as_ref().iter().take(4).map(|byte| format!("{byte:02x}"));
        Self {
            credentials: Sealer::new(&derived("session"), Arc::clone(&chance)),
            pending: Sealer::new(&derived("pending sign-in"), chance),
            forms: hmac::Key::new(hmac::HMAC_SHA256, derived("forms").as_ref()),
            cookie: format!("evenkeel_{}", name.collect::<String>()),
        }
    }

    pub(crate) fn seal(&self, credential: &str, now: Timestamp) -> Option<String> {
        self.credentials.seal(credential, now)
    }

    /// Returns the credential in a cookie, unless the session is too old.
    pub(crate) fn open(&self, cookie: &str, now: Timestamp) -> Option<String> {
        self.credentials.open(cookie, SESSION_MAX, now)
    }

    /// The token that every form of a session carries. Another site can't read it.
    fn form_token(&self, cookie: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.forms, cookie.as_bytes()))
    }

    fn is_form_token(&self, cookie: &str, token: &str) -> bool {
        let token = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
        hmac::verify(&self.forms, cookie.as_bytes(), &token).is_ok()
    }

    fn cookie_of(&self, headers: &HeaderMap) -> Option<String> {
        cookies::find(headers, &self.cookie).map(str::to_owned)
    }

    /// Name of the cookie of a pending sign-in.
    pub(crate) fn pending_cookie(&self) -> String {
        format!("{}_sign_in", self.cookie)
    }

    fn set_cookie(&self, value: &str, is_tls: bool) -> Option<HeaderValue> {
        let secure = if is_tls { "; Secure" } else { "" };
        // Links from mail and chat must work, so the cookie is `Lax`. It ends with the browser.
        let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}", self.cookie);
        HeaderValue::try_from(cookie).ok()
    }

    fn clear_cookie(&self) -> Option<HeaderValue> {
        let cookie = format!("{}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0", self.cookie);
        HeaderValue::try_from(cookie).ok()
    }
}

/// The signed-in user of a request.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) credential: Credential,
    pub(crate) subject: String,
    pub(crate) tenant: String,
    pub(crate) role: evenkeel_store::Role,
    pub(crate) form_token: String,
    cookie: String,
}

/// Passes on requests with a valid session. Others are sent to the sign-in page.
pub(crate) async fn require(State(web): State<Web>, mut request: Request, next: Next) -> Response {
    let from = request.extensions().get::<ClientAddress>().copied();
    let now = web.now();
    let cookie = web.sessions.cookie_of(request.headers());
    let Some((cookie, text)) =
        cookie.and_then(|it| web.sessions.open(&it, now).map(|text| (it, text)))
    else {
        return to_sign_in(&request);
    };
    let from_ip = from.map(|from| from.0);
    let identity = match web.access.authenticator.identify(&text, from_ip, now).await {
        Ok((identity, _)) => identity,
        // The session may be valid, so an open page keeps its content and tries again.
        Err(Refusal::Store(_)) => return store_away(),
        Err(_) => return to_sign_in(&request),
    };
    let audience = Audience { tenant: identity.tenant.clone(), role: identity.role };
    request.extensions_mut().insert(Session {
        credential: Credential { text, from, audience: Some(audience) },
        subject: identity.subject,
        tenant: identity.tenant,
        role: identity.role,
        form_token: web.sessions.form_token(&cookie),
        cookie,
    });
    next.run(request).await
}

fn store_away() -> Response {
    let detail = "The store does not answer, so the server can't check your session. Reload the page in a \
                  few seconds. The page /readyz says which part of the server is not ready.";
    layout::error(StatusCode::SERVICE_UNAVAILABLE, "The server can't answer now", detail)
}

fn to_sign_in(request: &Request) -> Response {
    if request.method() != Method::GET {
        let detail = "Your session has ended. Sign in and try again.";
        return layout::error(StatusCode::UNAUTHORIZED, "Not signed in", detail);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    Redirect::to(&format!("/sign-in?next={}", escape(path))).into_response()
}

impl Session {
    /// True while the session's age and its credential allow requests. A credential that can't be
    /// checked, because the store does not answer, counts as valid: the caller sends no data.
    pub(crate) async fn is_valid(&self, web: &Web) -> bool {
        let now = web.now();
        let from = self.credential.from.map(|from| from.0);
        let identify = web.access.authenticator.identify(&self.credential.text, from, now);
        web.sessions.open(&self.cookie, now).is_some()
            && matches!(identify.await, Ok(_) | Err(Refusal::Store(_)))
    }

    /// Returns the answer to a form without the token of this session, or `None` for a valid form.
    pub(crate) fn refuse_form(&self, web: &Web, token: &str) -> Option<Response> {
        if web.sessions.is_form_token(&self.cookie, token) {
            return None;
        }
        let detail = "The form is from another session. Go back, reload the page and try again.";
        Some(layout::error(StatusCode::FORBIDDEN, "Outdated form", detail))
    }
}

#[derive(Deserialize)]
pub(crate) struct SignIn {
    #[serde(default)]
    credential: String,
    #[serde(default)]
    next: String,
}

/// Starts a session with a token or an API key.
pub(crate) async fn sign_in(
    State(web): State<Web>,
    from: Option<Extension<ClientAddress>>,
    Form(form): Form<SignIn>,
) -> Response {
    let from = from.map(|Extension(from)| from);
    let credential = form.credential.trim();
    if credential.is_empty() || credential.len() > CREDENTIAL_BYTES_MAX {
        let detail = if credential.is_empty() {
            "Enter a token or an API key.".to_owned()
        } else {
            format!(
                "The token is longer than {CREDENTIAL_BYTES_MAX} bytes, which fit into a cookie."
            )
        };
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return pages::sign_in::refused(&web, status, &form.next, &detail);
    }
    match check(&web, credential, from).await {
        Ok(()) => begin(&web, credential, &form.next),
        Err(refused) => pages::sign_in::refused(&web, refused.status, &form.next, &refused.detail),
    }
}

/// Checks a credential. The API limits wrong credentials, and writes them to the audit log.
pub(crate) async fn check(
    web: &Web,
    credential: &str,
    from: Option<ClientAddress>,
) -> Result<(), Refused> {
    let credential = Credential { text: credential.to_owned(), from, audience: None };
    web.backend.get(&credential, CHECK).await.map(drop)
}

pub(crate) fn begin(web: &Web, credential: &str, next: &str) -> Response {
    begin_over(web, credential, next, false)
}

/// Begins a session. `is_https`: browsers reach this server over TLS through a proxy.
pub(crate) fn begin_over(web: &Web, credential: &str, next: &str, is_https: bool) -> Response {
    let is_tls = web.is_tls || is_https;
    let sealed = web.sessions.seal(credential, web.now());
    let cookie = sealed.and_then(|sealed| web.sessions.set_cookie(&sealed, is_tls));
    let Some(cookie) = cookie else {
        let detail = "The session can't be encrypted. Look into the server's log.";
        return layout::error(StatusCode::INTERNAL_SERVER_ERROR, "No session", detail);
    };
    ([(header::SET_COOKIE, cookie)], Redirect::to(local_path(next))).into_response()
}

/// Returns `next` if it is a path of this server, else the first page.
pub(crate) fn local_path(next: &str) -> &str {
    let is_local = next.starts_with('/') && !next.starts_with("//") && !next.contains('\\');
    if is_local && next.bytes().all(|byte| byte.is_ascii_graphic()) { next } else { "/" }
}

/// A form without fields of its own.
#[derive(Deserialize)]
pub(crate) struct TokenForm {
    #[serde(default)]
    pub(crate) token: String,
}

/// Ends the session and makes the browser delete all it has stored of this site.
pub(crate) async fn sign_out(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Form(form): Form<TokenForm>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    let mut response = Redirect::to("/sign-in").into_response();
    let headers = response.headers_mut();
    if let Some(cookie) = web.sessions.clear_cookie() {
        headers.insert(header::SET_COOKIE, cookie);
    }
    headers
        .insert("clear-site-data", HeaderValue::from_static("\"cache\", \"cookies\", \"storage\""));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed;

    impl Chance for Fixed {
        fn bits(&self) -> u64 {
            7
        }
    }

    fn sessions(key: u8) -> Sessions {
        Sessions::new(&[key; 32], Arc::new(Fixed))
    }

    #[test]
    fn cookie_holds_the_credential_for_twelve_hours() {
        let now = Timestamp::from_micros(1_000_000);
        let cookie = sessions(1).seal("secret", now).unwrap();
        assert!(!cookie.contains("secret"));
        assert_eq!(sessions(1).open(&cookie, now).as_deref(), Some("secret"));
        let end = now.saturating_add(SESSION_MAX);
        assert_eq!(sessions(1).open(&cookie, end), None);
        assert_eq!(sessions(2).open(&cookie, now), None);
        assert_eq!(sessions(1).pending.open(&cookie, SESSION_MAX, now), None);
        for broken in ["", "AAAA", &cookie[1..], &format!("{cookie}AAAA")] {
            assert_eq!(sessions(1).open(broken, now), None, "{broken}");
        }
    }

    #[test]
    fn form_token_belongs_to_one_session() {
        let token = sessions(1).form_token("a");
        assert!(sessions(1).is_form_token("a", &token));
        assert!(!sessions(1).is_form_token("b", &token));
        assert!(!sessions(2).is_form_token("a", &token));
        assert!(!sessions(1).is_form_token("a", ""));
    }

    #[test]
    fn sign_in_leads_only_to_pages_of_this_server() {
        assert_eq!(local_path("/jobs?status=failed"), "/jobs?status=failed");
        for next in ["", "//evil.example", "https://evil.example", "/\\evil.example", "/a\nb"] {
            assert_eq!(local_path(next), "/", "{next:?}");
        }
    }
}
