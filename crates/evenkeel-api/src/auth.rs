//! Authenticates the caller of each request and checks the caller's role.

use std::net::IpAddr;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use evenkeel_access::Refusal;
use evenkeel_core::Timestamp;
use evenkeel_store::{KeyHash, Role, Scope};

use crate::oversight::{ClientAddress, Guarded};
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// The authenticated caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Tenant and role.
    pub scope: Scope,
    pub tenant: String,
    /// Subject of the token.
    pub subject: String,
    /// Expiry of the credential.
    pub expires_at: Option<Timestamp>,
    /// Hash of the API key, if the request used one; open streams check whether the key was
    /// revoked.
    pub key: Option<KeyHash>,
}

/// Refuses a request whose credential does not have the required role. The role check wraps all
/// routes that are not declared public, so a new endpoint requires a role by default.
pub(crate) async fn require_role(
    State(Guarded { app, rules }): State<Guarded>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let from = request.extensions().get::<ClientAddress>().map(|from| from.0);
    let caller = authenticate(&app, request.headers(), from).await?;
    let rule = rules.find(request.method(), request.extensions());
    if Some(caller.scope.role) < rule.role {
        let detail = format!(
            "this needs the role {}, the token has {}",
            rule.role.map_or("none", Role::as_str),
            caller.scope.role.as_str(),
        );
        let refused = Problem::new(ProblemType::Forbidden, detail).into_response();
        return Ok(with_caller(refused, caller));
    }
    request.extensions_mut().insert(caller.clone());
    Ok(with_caller(next.run(request).await, caller))
}

/// Attaches the caller to the response, for the audit log.
fn with_caller(mut response: Response, caller: Caller) -> Response {
    response.extensions_mut().insert(caller);
    response
}

async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    from: Option<IpAddr>,
) -> Result<Caller, Problem> {
    let credential = bearer(headers)?;
    match app.access.authenticator.identify(credential, from, (app.clock)()).await {
        Ok((identity, scope)) => Ok(Caller {
            scope,
            tenant: identity.tenant,
            subject: identity.subject,
            expires_at: identity.expires_at,
            key: identity.key,
        }),
        Err(Refusal::Store(error)) => Err(error.into()),
        Err(refusal) => {
            tracing::debug!(
                error = &refusal as &dyn std::error::Error,
                "credential refused; answering 401"
            );
            Err(Problem::new(ProblemType::Unauthorized, refusal.to_string()))
        }
    }
}

/// Returns the token of the `Authorization` header. Tokens in the URL are not accepted, because
/// URLs end up in logs and browser histories.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        let detail = "send one Authorization header: Bearer, a space, and the token";
        return Err(Problem::new(ProblemType::Unauthorized, detail));
    };
    let token = value.to_str().ok().and_then(|text| text.split_once(' '));
    match token {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => {
            let detail = "the Authorization header is not Bearer, a space, and a token";
            Err(Problem::new(ProblemType::Unauthorized, detail))
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // A request without a caller is refused, because its route lacks the authentication layer.
        parts
            .extensions
            .get()
            .cloned()
            .ok_or_else(|| Problem::new(ProblemType::Unauthorized, "no token was checked"))
    }
}
