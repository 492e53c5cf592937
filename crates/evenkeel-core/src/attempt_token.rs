//! Tokens with which the receiver of an HTTP call can report the progress and result of one
//! attempt.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::ids::AttemptKey;
use crate::lease::Fence;

/// Mints and verifies tokens. Each token is valid for one claim of one attempt, which the fence
/// number identifies. Tokens are not stored, because every node that knows the secret can verify
/// tokens.
#[derive(Clone)]
pub struct AttemptTokens(Hmac<Sha256>);

/// Makes attempt tokens differ from other values that are derived from the same secret.
const PURPOSE: &[u8] = b"evenkeel attempt token 1";

impl AttemptTokens {
    pub fn new(secret: &[u8]) -> Self {
        let mac = Hmac::new_from_slice(secret);
        // HMAC accepts keys of any length, so `new_from_slice` never fails.
        Self(mac.unwrap_or_else(|_| Hmac::new(&Default::default())))
    }

    /// Returns the token of an attempt: the fence number, a dot, and a proof (an HMAC).
    pub fn mint(&self, key: AttemptKey, fence: Fence) -> String {
        let proof = self.mac(key, fence).finalize().into_bytes();
        format!("{}.{}", fence.0, URL_SAFE_NO_PAD.encode(proof))
    }

    /// Returns the fence number in a token, or `None` if the token does not belong to this attempt.
    pub fn verify(&self, key: AttemptKey, token: &str) -> Option<Fence> {
        let (fence, proof) = token.split_once('.')?;
        let fence = Fence(fence.parse().ok()?);
        let proof = URL_SAFE_NO_PAD.decode(proof).ok()?;
        self.mac(key, fence).verify_slice(&proof).ok().map(|()| fence)
    }

    fn mac(&self, key: AttemptKey, fence: Fence) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(PURPOSE);
        mac.update(&key.scheduled_at.as_micros().to_be_bytes());
        mac.update(&key.job_no.0.to_be_bytes());
        mac.update(&key.sequence.bits().to_be_bytes());
        mac.update(&key.attempt.0.to_be_bytes());
        mac.update(&fence.0.to_be_bytes());
        mac
    }
}

impl std::fmt::Debug for AttemptTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AttemptTokens")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AttemptNo, JobNo};
    use crate::time::Timestamp;

    #[test]
    fn attempt_token_is_valid_for_its_attempt_and_fence_only() {
        let tokens = AttemptTokens::new(b"secret");
        let key = AttemptKey::regular(JobNo(7), Timestamp::from_micros(1));
        let token = tokens.mint(key, Fence(3));
        assert_eq!(tokens.verify(key, &token), Some(Fence(3)));
        assert_eq!(tokens.verify(key.with_attempt(AttemptNo(1)), &token), None);
        assert_eq!(AttemptTokens::new(b"other").verify(key, &token), None);
        let forged = token.replacen("3.", "4.", 1);
        assert_eq!(tokens.verify(key, &forged), None);
        for nonsense in ["", ".", "3", "3.", "x.y", "3.!!", &token[..token.len() - 1]] {
            assert_eq!(tokens.verify(key, nonsense), None, "{nonsense}");
        }
    }
}
