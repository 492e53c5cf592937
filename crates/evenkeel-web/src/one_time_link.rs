//! Links with which the operator of a local server signs in without a token.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_api::ClientAddress;
use evenkeel_core::chance::Chance;
use evenkeel_core::{Span, Timestamp};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use crate::{Web, pages, session};

/// A link is valid for this time.
const VALID_FOR: Span = Span::from_secs(300);
/// Path of a link, before its secret. The secret is in the query, which no log contains.
pub(crate) const PATH: &str = "/sign-in/once";

/// Links that were created and not used yet. Clones share their links.
#[derive(Clone, Default)]
pub struct OneTimeLinks(Arc<Mutex<Vec<Unused>>>);

struct Unused {
    /// SHA-256 of the secret.
    hash: Vec<u8>,
    expires_at: Timestamp,
    /// The token with which the link begins a session.
    credential: String,
}

impl OneTimeLinks {
    /// Creates a link that begins one session with `credential`, and returns its path.
    pub fn create(&self, credential: &str, now: Timestamp, chance: &dyn Chance) -> String {
        let secret: Vec<u8> = (0..4).flat_map(|_| chance.bits().to_le_bytes()).collect();
        let secret = URL_SAFE_NO_PAD.encode(secret);
        let unused = Unused {
            hash: hash(&secret),
            expires_at: now.saturating_add(VALID_FOR),
            credential: credential.to_owned(),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(unused);
        format!("{PATH}?secret={secret}")
    }

    /// Returns the credential of a link and makes the link invalid.
    fn take(&self, secret: &str, now: Timestamp) -> Option<String> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| now < link.expires_at);
        let hash = hash(secret);
        let at = links.iter().position(|link| link.hash == hash)?;
        Some(links.swap_remove(at).credential)
    }
}

/// Secrets are compared by their hashes, so the time of a comparison tells nothing about a secret.
fn hash(secret: &str) -> Vec<u8> {
    digest(&SHA256, secret.as_bytes()).as_ref().to_vec()
}

#[derive(Deserialize)]
pub(crate) struct Given {
    #[serde(default)]
    secret: String,
}

/// Begins a session with a link, and leads to the first page. Only browsers on this machine may use
/// a link.
pub(crate) async fn sign_in(
    State(web): State<Web>,
    from: Option<Extension<ClientAddress>>,
    Query(given): Query<Given>,
) -> Response {
    let is_here = from.is_some_and(|Extension(from)| from.0.to_canonical().is_loopback());
    let credential = is_here.then(|| web.links.take(&given.secret, web.now())).flatten();
    match credential {
        Some(credential) => session::begin(&web, &credential, "/"),
        None => {
            let detail = "This link was used already, is older than 5 minutes, or belongs to another \
                          machine. Use the token in the file `token` of the server's data \
                          directory, or restart the server for a new link.";
            pages::sign_in::refused(&web, StatusCode::GONE, "/", detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(u64);

    impl Chance for Fixed {
        fn bits(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn link_is_valid_once_and_for_five_minutes() {
        let links = OneTimeLinks::default();
        let now = Timestamp::from_micros(1_000_000);
        let secret = |bits: u64| {
            let path = links.create("token", now, &Fixed(bits));
            path.split_once("?secret=").unwrap().1.to_owned()
        };
        let (first, second) = (secret(1), secret(2));
        assert_eq!(links.take("", now), None);
        assert_eq!(links.take(&first, now).as_deref(), Some("token"));
        assert_eq!(links.take(&first, now), None);
        assert_eq!(links.take(&second, now.saturating_add(VALID_FOR)), None);
    }
}
