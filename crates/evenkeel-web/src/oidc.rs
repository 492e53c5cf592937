//! Signing in at an identity provider: the authorization code flow of OpenID Connect with PKCE.
//!
//! - `begin` sends the browser to the provider. What the server must know later is in a sealed cookie
//!   (`pending`), so nothing is kept on the server, and any node of a cluster can finish a sign-in.
//! - `finish` handles the provider's answer: it exchanges the code for an ID token (`exchange`), and
//!   begins a session with that token. The API checks the ID token like any other token. If a step
//!   fails, the sign-in page says what to do (`problem`).

mod exchange;
mod pending;
mod problem;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use evenkeel_api::ClientAddress;
use evenkeel_core::chance::Chance;
use evenkeel_outbound::Outbound;
use evenkeel_outbound::reqwest::Url;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::backend::escape;
use crate::session::CREDENTIAL_BYTES_MAX;
use crate::{Web, layout, session};
use exchange::Failure;
use pending::Pending;
use problem::Problem;

/// Path that sends the browser to the identity provider.
pub(crate) const BEGIN: &str = "/sign-in/oidc";
/// Path to which the identity provider sends the browser back.
pub(crate) const CALLBACK: &str = "/sign-in/callback";

/// Maximum number of codes that are exchanged at the same time. Further sign-ins wait.
const EXCHANGES_MAX: usize = 64;
/// How users sign in at an identity provider.
#[derive(Clone)]
pub struct OidcSettings {
    pub client_id: String,
    /// `None` for a public client, which only PKCE protects.
    pub client_secret: Option<String>,
    pub authorization_endpoint: Url,
    pub token_endpoint: Url,
    /// Scopes, separated by spaces.
    pub scopes: String,
    /// Name of the identity provider on the sign-in page.
    pub name: String,
    /// URL under which browsers reach this server, without a slash at its end.
    pub public_url: String,
    /// Calls the token endpoint.
    pub outbound: Outbound,
}

pub(crate) struct Oidc {
    settings: OidcSettings,
    chance: Arc<dyn Chance>,
    exchanges: Semaphore,
}

impl Oidc {
    pub(crate) fn new(settings: OidcSettings, chance: Arc<dyn Chance>) -> Self {
        Self { settings, chance, exchanges: Semaphore::new(EXCHANGES_MAX) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// The address that begins a sign-in. It has the host to which the provider sends the browser
    /// back, because the cookie of the sign-in belongs to one host.
    pub(crate) fn link(&self, next: &str) -> String {
        format!("{}{BEGIN}?next={}", self.settings.public_url, escape(next))
    }

    fn redirect_uri(&self) -> String {
        format!("{}{CALLBACK}", self.settings.public_url)
    }

    /// True if browsers reach this server over TLS, perhaps through a proxy.
    fn is_https(&self) -> bool {
        self.settings.public_url.starts_with("https://")
    }

    /// The address of the identity provider's sign-in page. A query in the setting is kept.
    fn authorization_url(&self, pending: &Pending) -> Url {
        let mut url = self.settings.authorization_endpoint.clone();
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", &self.redirect_uri()),
            ("scope", &self.settings.scopes),
            ("state", &pending.state),
            ("nonce", &pending.nonce),
            ("code_challenge", &pending.challenge()),
            ("code_challenge_method", "S256"),
        ]);
        url
    }
}

#[derive(Deserialize)]
pub(crate) struct Begin {
    #[serde(default)]
    next: String,
}

/// Sends the browser to the identity provider.
pub(crate) async fn begin(State(web): State<Web>, Query(query): Query<Begin>) -> Response {
    let Some(oidc) = &web.oidc else { return not_set_up() };
    let pending = Pending::new(session::local_path(&query.next), &*oidc.chance);
    let Some(cookie) = pending.cookie(&web.sessions, web.is_tls || oidc.is_https(), web.now())
    else {
        let detail = "The sign-in can't be encrypted. Look into the server's log.";
        return layout::error(StatusCode::INTERNAL_SERVER_ERROR, "No sign-in", detail);
    };
    let url = oidc.authorization_url(&pending);
    ([(header::SET_COOKIE, cookie)], Redirect::to(url.as_str())).into_response()
}

/// The answer of the identity provider, in the query of the callback.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    state: String,
    code: String,
    error: String,
    error_description: String,
}

/// Finishes a sign-in that this browser began, and leads to the page that the user wanted.
pub(crate) async fn finish(
    State(web): State<Web>,
    from: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
    Query(answer): Query<Answer>,
) -> Response {
    let Some(oidc) = &web.oidc else { return not_set_up() };
    let from = from.map(|Extension(from)| from);
    let pending = Pending::of_request(&web.sessions, &headers, &answer.state, web.now());
    // The provider's error text is shown only for the right state, because any site can link to the
    // callback.
    let Some(pending) = pending else {
        return Problem::not_begun_here(&web, oidc, from).page(&web, "/");
    };
    let mut response = match token_of(&web, oidc, &pending, &answer, from).await {
        Ok(token) => session::begin_over(&web, &token, &pending.next, oidc.is_https()),
        Err(problem) => problem.page(&web, &pending.next),
    };
    if let Some(cookie) = pending::clear_cookie(&web.sessions) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn not_set_up() -> Response {
    let detail = "This server has no identity provider. Sign in with a token or an API key, or set \
                  oidc_client_id in the configuration.";
    layout::error(StatusCode::NOT_FOUND, "Not found", detail)
}

/// Returns an ID token with which a session can begin.
async fn token_of(
    web: &Web,
    oidc: &Oidc,
    pending: &Pending,
    answer: &Answer,
    from: Option<ClientAddress>,
) -> Result<String, Problem> {
    if answer.code.is_empty() {
        return Err(Problem::provider_refused(oidc, answer));
    }
    let token = match oidc.exchange(&answer.code, &pending.verifier).await {
        Ok(token) => token,
        Err(Failure::CodeRefused) => return Err(Problem::code_refused(web, oidc, from)),
        Err(Failure::NoToken(reason)) => {
            tracing::warn!(
                error = reason,
                "identity provider returned no ID token; the sign-in failed"
            );
            return Err(Problem::no_token(oidc));
        }
    };
    let client_id = &oidc.settings.client_id;
    exchange::check_claims(&token, &pending.nonce, client_id)
        .map_err(|reason| Problem::other_sign_in(web, oidc, from, reason))?;
    if token.len() > CREDENTIAL_BYTES_MAX {
        return Err(Problem::token_too_long(oidc, token.len()));
    }
    // The API limits wrong tokens, and writes them to the audit log.
    match session::check(web, &token, from).await {
        Ok(()) => Ok(token),
        Err(refused) => Err(Problem::token_refused(oidc, refused)),
    }
}

#[cfg(test)]
mod tests;
