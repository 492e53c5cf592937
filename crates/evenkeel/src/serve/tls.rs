//! TLS for the server, with a certificate that can be replaced while the server runs.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;
use crate::{Failure, Result};

pub struct Tls {
    files: TlsFiles,
    current: RwLock<Current>,
}

#[derive(Clone)]
struct Current {
    config: Arc<ServerConfig>,
    fingerprint: String,
}

impl Tls {
    pub fn load(files: &TlsFiles) -> Result<Self> {
        Ok(Self { current: RwLock::new(read(files)?), files: files.clone() })
    }

    /// Reloads the certificate and key files. If the new files are invalid, the previous
    /// certificate stays in use.
    pub fn reload(&self) -> Result {
        let fresh = read(&self.files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current().config)
    }

    /// Returns the SHA-256 of the certificate, by which local commands recognise the server.
    pub fn fingerprint(&self) -> String {
        self.current().fingerprint
    }

    fn current(&self) -> Current {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read(files: &TlsFiles) -> Result<Current> {
    let TlsFiles { cert, key } = files;
    let unreadable = |path: &Path, what: &str, error: &dyn std::error::Error| {
        Failure::usage(format!("{} can't be used: {error}", path.display()))
            .or_else(format!("give a PEM file with {what}"))
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(cert, "the certificate chain", &error))?;
    let Some(first) = chain.first() else {
        let what = format!("{} holds no certificate", cert.display());
        return Err(Failure::usage(what).or_else("give a PEM file with the certificate"));
    };
    let fingerprint = fingerprint(first);
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| unreadable(key, "the key of the certificate", &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|error| {
        let what = format!("{} and {} do not match: {error}", cert.display(), key.display());
        Failure::usage(what).or_else("give a certificate and its own key")
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Current { config: Arc::new(config), fingerprint })
}

pub fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = Sha256::digest(certificate.as_ref());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
