//! TLS for the client.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::Endpoint;
use crate::serve::tls::fingerprint;
use crate::{Failure, Result};

/// Returns the TLS configuration, which trusts the machine's certificate authorities. For the
/// server of the data directory, the client trusts exactly the certificate recorded in that
/// directory, whatever host name the certificate contains.
pub(super) fn config(endpoint: &Endpoint) -> Result<ClientConfig> {
    let failure = |error: Error| Failure::because("TLS can't be set up", &error);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(failure)?;
    let builder = match (&endpoint.certificate_sha256, endpoint.url.scheme()) {
        (Some(known), "https") => {
            let verifier = Arc::new(KnownCertificate { known: known.clone(), provider });
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
        (None, "https") => builder.with_platform_verifier().map_err(failure)?,
        _ => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(builder.with_no_client_auth())
}

/// Trusts exactly one certificate.
#[derive(Debug)]
struct KnownCertificate {
    known: String,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for KnownCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if fingerprint(certificate) == self.known {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
