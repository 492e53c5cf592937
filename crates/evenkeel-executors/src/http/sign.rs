//! Signs calls as Standard Webhooks defines, so that receivers can verify the sender.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::TenantNo;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The keys that sign calls. Each tenant has a separate signing key, derived from the secret of the
/// installation, so that a tenant's receivers cannot forge calls to another tenant. While an
/// operator replaces the secret of the installation, each call has two signatures: one for the new
/// secret and one for the old secret.
#[derive(Clone)]
pub struct SigningKeys {
    current: Hmac<Sha256>,
    previous: Option<Hmac<Sha256>>,
}

/// This text makes signing keys differ from keys that are derived from the same secret for other
/// purposes.
const PURPOSE: &[u8] = b"evenkeel webhook key 1";

impl SigningKeys {
    pub fn new(secret: &[u8]) -> Self {
        Self { current: hmac(secret), previous: None }
    }

    /// Adds the signing keys derived from the previous secret, which receivers may still use.
    #[must_use]
    pub fn with_previous(self, secret: &[u8]) -> Self {
        Self { previous: Some(hmac(secret)), ..self }
    }

    /// Returns the secret to configure in a tenant's receivers: `whsec_` and the key in Base64.
    pub fn receiver_secret(&self, tenant: TenantNo) -> String {
        format!("whsec_{}", STANDARD.encode(key_of(&self.current, tenant)))
    }

    /// Returns the value of the header `webhook-signature`: the signature with the current key,
    /// then the signature with the previous key.
    pub fn sign(&self, tenant: TenantNo, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut signatures = signature(&key_of(&self.current, tenant), id, seconds, body);
        if let Some(previous) = &self.previous {
            signatures.push(' ');
            signatures += &signature(&key_of(previous, tenant), id, seconds, body);
        }
        signatures
    }
}

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKeys")
    }
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    // HMAC accepts keys of any length, so this call cannot fail.
    Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()))
}

fn key_of(secret: &Hmac<Sha256>, tenant: TenantNo) -> [u8; 32] {
    let mut mac = secret.clone();
    mac.update(PURPOSE);
    mac.update(&tenant.0.to_be_bytes());
    mac.finalize().into_bytes().into()
}

fn signature(key: &[u8], id: &str, seconds: i64, body: &[u8]) -> String {
    let mut mac = hmac(key);
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example signature that Standard Webhooks publishes with its libraries.
    #[test]
    fn signature_matches_the_example_of_standard_webhooks() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let body = br#"{"test": 2432232314}"#;
        assert_eq!(
            signature(&key, id, 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn receiver_verifies_with_its_secret() {
        let keys = SigningKeys::new(b"secret");
        let given = keys.receiver_secret(TenantNo(7));
        let key = STANDARD.decode(given.strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(key.len(), 32);
        assert_eq!(signature(&key, "id", 5, b"x"), keys.sign(TenantNo(7), "id", 5, b"x"));
    }

    #[test]
    fn tenants_have_different_keys() {
        let keys = SigningKeys::new(b"secret");
        assert_ne!(keys.receiver_secret(TenantNo(7)), keys.receiver_secret(TenantNo(8)));
        assert_ne!(keys.sign(TenantNo(7), "id", 5, b"x"), keys.sign(TenantNo(8), "id", 5, b"x"));
    }

    #[test]
    fn both_keys_sign_during_a_rotation() {
        let (old, new) = (SigningKeys::new(b"old"), SigningKeys::new(b"new"));
        let both = new.clone().with_previous(b"old");
        let sign = |keys: &SigningKeys| keys.sign(TenantNo(7), "id", 5, b"x");
        assert_eq!(sign(&both), format!("{} {}", sign(&new), sign(&old)));
        assert_eq!(both.receiver_secret(TenantNo(7)), new.receiver_secret(TenantNo(7)));
    }
}
