//! Why a sign-in at the identity provider failed, and what the user can do.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use evenkeel_access::Verdict;
use evenkeel_api::ClientAddress;
use evenkeel_store::AuditEntry;

use super::{Answer, Oidc};
use crate::backend::Refused;
use crate::session::CREDENTIAL_BYTES_MAX;
use crate::{Web, pages};

/// Longest error text of the provider that a page shows, in characters.
pub(super) const ERROR_CHARS_MAX: usize = 200;

/// The status of the page, and a sentence that says what to do.
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    retry_after_secs: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after_secs: None }
    }

    /// The sign-in page with this problem.
    pub(super) fn page(&self, web: &Web, next: &str) -> Response {
        let mut response = pages::sign_in::failed(web, self.status, next, &self.detail);
        if let Some(secs) = self.retry_after_secs {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(secs));
        }
        response
    }

    /// The browser has no sign-in with the state of the provider's answer.
    pub(super) fn not_begun_here(web: &Web, oidc: &Oidc, from: Option<ClientAddress>) -> Self {
        let status = StatusCode::BAD_REQUEST;
        // The number of audit entries for requests without a credential is limited.
        let verdict = from.map(|from| web.access.anonymous.failed(from.0, web.now()));
        if !matches!(verdict, Some(Verdict::Blocked(_))) {
            let reason = "this browser did not begin the sign-in";
            web.access.audit.record_refusal(audit_entry(web, from, status, reason));
        }
        let detail = format!(
            "This sign-in did not begin in this browser, began more than 10 minutes ago, or was \
             replaced by a newer one. Sign in again. If that fails too, allow cookies, and open the \
             dashboard at {}.",
            oidc.settings.public_url
        );
        Self::new(status, detail)
    }

    /// The provider sent no code.
    pub(super) fn provider_refused(oidc: &Oidc, answer: &Answer) -> Self {
        let name = oidc.name();
        let detail = format!(
            "{} refused the sign-in: {}. Sign in again, or ask an administrator of {name} for access.",
            sentence_start(name),
            error_text(&answer.error, &answer.error_description),
        );
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// The provider did not accept the code.
    pub(super) fn code_refused(web: &Web, oidc: &Oidc, from: Option<ClientAddress>) -> Self {
        let detail = format!(
            "{} did not accept this sign-in, because it was used already or took too long. Sign in \
             again.",
            sentence_start(oidc.name()),
        );
        Self::counted(web, from, "the identity provider refused the code", detail)
    }

    pub(super) fn no_token(oidc: &Oidc) -> Self {
        let detail = format!(
            "This server got no token from {}. Try again in a minute. If that fails too, ask an \
             administrator to look into the log of this server.",
            oidc.name()
        );
        Self::new(StatusCode::BAD_GATEWAY, detail)
    }

    /// The ID token does not belong to this sign-in, for this reason.
    pub(super) fn other_sign_in(
        web: &Web,
        oidc: &Oidc,
        from: Option<ClientAddress>,
        reason: &str,
    ) -> Self {
        let detail = format!(
            "This server did not accept the token of {}: {reason}. Sign in again, and tell an \
             administrator if that fails too.",
            oidc.name()
        );
        Self::counted(web, from, reason, detail)
    }

    pub(super) fn token_too_long(oidc: &Oidc, bytes: usize) -> Self {
        let name = oidc.name();
        let detail = format!(
            "The token of {name} has {bytes} bytes, and only {CREDENTIAL_BYTES_MAX} bytes fit into a \
             cookie. Ask an administrator of {name} to put fewer claims into the ID token."
        );
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// The API refused the ID token.
    pub(super) fn token_refused(oidc: &Oidc, refused: Refused) -> Self {
        if refused.status != StatusCode::UNAUTHORIZED {
            return Self::new(refused.status, refused.detail);
        }
        let name = oidc.name();
        let detail = format!(
            "This server did not accept the token of {name}: {}. Ask an administrator to check your \
             role and tenant at {name}, and the settings of this server that begin with jwt_.",
            refused.detail
        );
        Self::new(refused.status, detail)
    }

    /// Counts and audits a refused code or ID token like any refused credential.
    fn counted(web: &Web, from: Option<ClientAddress>, reason: &str, detail: String) -> Self {
        let entry = audit_entry(web, from, StatusCode::UNAUTHORIZED, reason);
        match web.access.count_refusal(from.map(|from| from.0), entry) {
            None => Self::new(StatusCode::UNAUTHORIZED, detail),
            Some(limited) => Self {
                status: StatusCode::TOO_MANY_REQUESTS,
                detail: format!("{detail} There were {}.", limited.detail),
                retry_after_secs: Some(limited.retry_after_secs),
            },
        }
    }
}

fn audit_entry(
    web: &Web,
    from: Option<ClientAddress>,
    status: StatusCode,
    reason: &str,
) -> AuditEntry {
    let now = web.now();
    AuditEntry {
        at: now,
        tenant: None,
        subject: "unknown".into(),
        role: None,
        action: "sign_in".into(),
        target: None,
        status: status.as_u16(),
        denied: true,
        detail: Some(reason.into()),
        remote: from.map(|from| from.0.to_canonical().to_string()),
        request_id: web.access.request_id(now),
    }
}

/// Returns the provider's error, shortened and on one line.
pub(super) fn error_text(error: &str, description: &str) -> String {
    let texts = [error.trim(), description.trim()];
    let texts: Vec<_> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    if texts.is_empty() {
        return "it gave no reason".into();
    }
    let legal = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = texts.join(", ").chars().map(legal).collect();
    match text.char_indices().nth(ERROR_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.trim_end_matches('.').to_owned(),
    }
}

/// Returns a name with a capital letter, as at the start of a sentence.
pub(super) fn sentence_start(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
