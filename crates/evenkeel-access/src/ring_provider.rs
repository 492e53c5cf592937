//! Implements the cryptography of tokens with the crate `ring`.
//!
//! Evenkeel does not use the two built-in providers of the token library. One built-in provider
//! needs the crate `rsa`, whose private-key operations leak through their timing
//! (RUSTSEC-2023-0071). The other built-in provider needs aws-lc, which takes minutes to compile.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

/// Signs tokens of this server, and verifies tokens of this server and of external identity
/// providers.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // The token library calls `key_utils` only to publish key sets, which Evenkeel does not do.
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| unsupported(),
        rsa_pub_components_from_public_key: |_| unsupported(),
        ec_pub_components_from_private_key: |_, _| unsupported(),
        ed_pub_components_from_private_key: |_, _| unsupported(),
        compute_digest: |_, _| unsupported(),
    },
};

fn unsupported<T>() -> Result<T, Error> {
    Err(ErrorKind::Provider("not supported".into()).into())
}

/// Installs `ring` as the cryptography provider of the token library. All constructors in this
/// crate that handle tokens call `use_ring`.
pub fn use_ring() {
    static INSTALLED: Once = Once::new();
    // The token library accepts one cryptography provider per process, and no other crate of
    // Evenkeel installs one.
    INSTALLED.call_once(|| {
        let _ = PROVIDER.install_default();
    });
}

fn hmac_algorithm(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Algorithm::HS256 => Some(hmac::HMAC_SHA256),
        Algorithm::HS384 => Some(hmac::HMAC_SHA384),
        Algorithm::HS512 => Some(hmac::HMAC_SHA512),
        _ => None,
    }
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    let hash = hmac_algorithm(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
    if key.family() != AlgorithmFamily::Hmac {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(Secret { algorithm: *algorithm, key: hmac::Key::new(hash, key.as_bytes()) }))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    // A key's type is fixed when the key is read, so no public key is used as a shared secret.
    let family = match algorithm {
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => AlgorithmFamily::Hmac,
        Algorithm::RS256 => AlgorithmFamily::Rsa,
        Algorithm::ES256 => AlgorithmFamily::Ec,
        Algorithm::EdDSA => AlgorithmFamily::Ed,
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    match hmac_algorithm(*algorithm) {
        Some(hash) => {
            let key = hmac::Key::new(hash, key.try_get_as_bytes()?);
            Ok(Box::new(Secret { algorithm: *algorithm, key }))
        }
        None => Ok(Box::new(Public { algorithm: *algorithm, key: key.clone() })),
    }
}

struct Secret {
    algorithm: Algorithm,
    key: hmac::Key,
}

impl Signer<Vec<u8>> for Secret {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(hmac::sign(&self.key, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Secret {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        // `hmac::verify` compares in constant time.
        hmac::verify(&self.key, message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Secret {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl JwtVerifier for Secret {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

struct Public {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for Public {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Algorithm::RS256, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(message, signature)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
            _ => return Err(signature::Error::new()),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Public {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
