//! TLS options of an HTTP client.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;

#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Root certificates that the client trusts in addition to the machine's root certificates.
    pub extra_roots: Roots,
    /// True if TLS 1.2 is refused.
    pub only_tls13: bool,
    /// The client certificate, sent to servers that request one.
    pub identity: Option<Identity>,
    /// True if server certificates are verified.
    pub verify: bool,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self { extra_roots: Roots::default(), only_tls13: false, identity: None, verify: true }
    }
}

/// The error for a PEM text without a usable certificate or key.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    #[error("is not PEM: {0}")]
    Unreadable(rustls::pki_types::pem::Error),
    #[error("holds no certificate")]
    NoCertificate,
    #[error("can't be used: {0}")]
    Unusable(rustls::Error),
}

/// Trusted certificates.
#[derive(Clone, Debug, Default)]
pub struct Roots(Vec<CertificateDer<'static>>);

impl Roots {
    /// Reads all certificates of a PEM text, which must contain at least one.
    pub fn from_pem(pem: &[u8]) -> Result<Self, PemError> {
        let certificates = certificates(pem)?;
        let mut store = RootCertStore::empty();
        for certificate in &certificates {
            store.add(certificate.clone()).map_err(PemError::Unusable)?;
        }
        Ok(Self(certificates))
    }
}

#[derive(Clone, Debug)]
pub struct Identity(Arc<CertifiedKey>);

impl Identity {
    /// Reads a PEM text with the client certificate, its private key, and optionally its issuers.
    pub fn from_pem(pem: &[u8]) -> Result<Self, PemError> {
        let chain = certificates(pem)?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(PemError::Unreadable)?;
        let identity = CertifiedKey::from_der(chain, key, &provider());
        Ok(Self(Arc::new(identity.map_err(PemError::Unusable)?)))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(PemError::Unreadable)?;
    if certificates.is_empty() { Err(PemError::NoCertificate) } else { Ok(certificates) }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Returns the TLS configuration of a client, and an error if it has no root certificates.
pub(crate) fn config(
    options: &TlsOptions,
) -> Result<(ClientConfig, Option<rustls::Error>), rustls::Error> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = if options.only_tls13 {
        builder.with_protocol_versions(&[&rustls::version::TLS13])?
    } else {
        builder.with_safe_default_protocol_versions()?
    };
    let mut fault = None;
    let builder = if options.verify {
        let roots = options.extra_roots.0.iter().cloned();
        match Verifier::new_with_extra_roots(roots, provider) {
            Ok(verifier) => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
            // Small containers often have no certificates.
            Err(error) => {
                fault = Some(error);
                builder.with_root_certificates(RootCertStore::empty())
            }
        }
    } else {
        let unverified = Arc::new(NoVerification(provider));
        builder.dangerous().with_custom_certificate_verifier(unverified)
    };
    let config = match &options.identity {
        Some(Identity(key)) => {
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(key))))
        }
        None => builder.with_no_client_auth(),
    };
    Ok((config, fault))
}

/// A certificate verifier that accepts every server certificate.
#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
