//! Who asks, and whether they may.

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use evenkeel_core::Timestamp;
use evenkeel_store::{Role, Scope};

use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// Who asks, with a token that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Where, and what they may do there.
    pub scope: Scope,
    /// The tenant's name.
    pub tenant: String,
    /// Who, by the token.
    pub subject: String,
    /// From when on the token is worth nothing.
    pub expires_at: Timestamp,
}

/// Lets only those pass whose token allows the method. It stands before every route that is not
/// public, so that a new endpoint is closed unless somebody opens it.
pub(crate) async fn require_token(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let caller = authenticate(&app, request.headers()).await?;
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let needed = needed_role(request.method(), path);
    if caller.scope.role < needed {
        let detail = format!(
            "this needs the role {}, the token has {}",
            needed.as_str(),
            caller.scope.role.as_str(),
        );
        return Err(Problem::new(ProblemType::Forbidden, detail));
    }
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// Questions that are too long for an address: they come as a POST and change nothing.
const QUESTIONS: [&str; 1] = ["/api/v1/schedules/preview"];

/// Looking is for everybody, changing is not.
fn needed_role(method: &Method, path: Option<&str>) -> Role {
    let looks = matches!(*method, Method::GET | Method::HEAD);
    let asks = path.is_some_and(|path| QUESTIONS.contains(&path));
    if looks || asks { Role::Viewer } else { Role::Operator }
}

async fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    let claims = app.tokens.verify(bearer(headers)?, (app.clock)()).map_err(|refusal| {
        tracing::debug!(error = &refusal as &dyn std::error::Error, "a token was refused");
        Problem::new(ProblemType::Unauthorized, refusal.to_string())
    })?;
    let tenant = app.tenants.number(&claims.tenant).await?;
    let scope = Scope { tenant, role: claims.role };
    let expires = i64::try_from(claims.exp).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    let expires_at = Timestamp::from_micros(expires);
    Ok(Caller { scope, tenant: claims.tenant, subject: claims.sub, expires_at })
}

/// The token, from its header and from nowhere else: addresses end up in logs and histories.
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
        // Only a route outside the guard lacks it; such a route must not open by accident.
        parts
            .extensions
            .get()
            .cloned()
            .ok_or_else(|| Problem::new(ProblemType::Unauthorized, "no token was checked"))
    }
}
