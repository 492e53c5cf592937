//! TLS for the client.

use std::sync::Arc;

use reqwest::Url;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::Failure;

/// TLS as the machine trusts it; nothing is loaded for an address that needs none.
pub(super) fn config(url: &Url) -> Result<ClientConfig, Failure> {
    let failure = |error: rustls::Error| Failure::because("TLS can't be set up", &error);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failure)?;
    let builder = if url.scheme() == "https" {
        builder.with_platform_verifier().map_err(failure)?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
