//! Sign-ins that users began at the identity provider and have not finished.

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_core::chance::Chance;
use evenkeel_core::{Span, Timestamp};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::cookies;
use crate::session::Sessions;

/// A sign-in must be finished within this time.
const VALID_FOR: Span = Span::from_secs(600);
/// Longest path that a sign-in leads to. Browsers refuse cookies of more than 4,096 bytes.
const NEXT_BYTES_MAX: usize = 2000;
/// Only the pages that begin and finish sign-ins get the cookie.
const PATH: &str = "/sign-in";

/// A sign-in that a user began, as the sealed cookie contains it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Pending {
    /// Connects the provider's answer to the browser that began the sign-in.
    pub(super) state: String,
    /// Connects the ID token to this sign-in.
    pub(super) nonce: String,
    /// Proves to the provider that the code belongs to this sign-in (PKCE).
    pub(super) verifier: String,
    /// The page that the user wanted.
    pub(super) next: String,
}

impl Pending {
    pub(super) fn new(next: &str, chance: &dyn Chance) -> Self {
        // 256 random bits: 43 characters, the shortest PKCE verifier.
        let secret = || {
            let bytes: Vec<u8> = (0..4).flat_map(|_| chance.bits().to_le_bytes()).collect();
            URL_SAFE_NO_PAD.encode(bytes)
        };
        let next = if next.len() > NEXT_BYTES_MAX { "/" } else { next };
        Self { state: secret(), nonce: secret(), verifier: secret(), next: next.to_owned() }
    }

    /// The PKCE challenge of method S256.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier.as_bytes()))
    }

    pub(super) fn cookie(
        &self,
        sessions: &Sessions,
        is_tls: bool,
        now: Timestamp,
    ) -> Option<HeaderValue> {
        let text = serde_json::to_string(self).ok()?;
        let secure = if is_tls { "; Secure" } else { "" };
        let cookie = format!(
            "{}={}; Path={PATH}; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
            sessions.pending_cookie(),
            sessions.pending.seal(&text, now)?,
            VALID_FOR.as_micros() / 1_000_000,
        );
        HeaderValue::try_from(cookie).ok()
    }

    /// Returns the sign-in with this state that the browser of a request began, unless it is too old.
    /// Without the comparison of states, another site could sign the browser in as another user.
    pub(super) fn of_request(
        sessions: &Sessions,
        headers: &HeaderMap,
        state: &str,
        now: Timestamp,
    ) -> Option<Self> {
        let name = sessions.pending_cookie();
        let cookie = cookies::find(headers, &name)?;
        let text = sessions.pending.open(cookie, VALID_FOR, now)?;
        let pending: Self = serde_json::from_str(&text).ok()?;
        (pending.state == state).then_some(pending)
    }
}

pub(super) fn clear_cookie(sessions: &Sessions) -> Option<HeaderValue> {
    let name = sessions.pending_cookie();
    HeaderValue::try_from(format!("{name}=; Path={PATH}; HttpOnly; SameSite=Lax; Max-Age=0")).ok()
}
