//! The right of whoever was called to say how one attempt goes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::ids::AttemptKey;
use crate::lease::Fence;

/// Makes and checks tokens that are each good for one attempt under one fence. Nothing is stored:
/// all nodes that share the secret know each other's tokens.
#[derive(Clone)]
pub struct AttemptTokens(Hmac<Sha256>);

/// Before the secret is used for anything else, this tells the uses apart.
const PURPOSE: &[u8] = b"evenkeel attempt token 1";

impl AttemptTokens {
    /// Tokens of this secret.
    pub fn new(secret: &[u8]) -> Self {
        let mac = Hmac::new_from_slice(secret);
        // HMAC takes keys of any length.
        Self(mac.unwrap_or_else(|_| Hmac::new(&Default::default())))
    }

    /// The token of an attempt: its fence, a dot, and the proof.
    pub fn mint(&self, key: AttemptKey, fence: Fence) -> String {
        let proof = self.mac(key, fence).finalize().into_bytes();
        format!("{}.{}", fence.0, URL_SAFE_NO_PAD.encode(proof))
    }

    /// The fence a token was made for, if it is one of this attempt.
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
