//! HTTP calls to wherever a user says.
//!
//! Whoever can create a job chooses a URL that this node then calls from where it stands. Every
//! call goes through an [`Outbound`], which refuses addresses that are not public unless they are
//! allowed, connects to the very address it judged, follows no redirect by itself and uses no
//! proxy: a proxy would look names up where no guard sees it.

mod guard;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

pub use guard::{Guard, Refused};
pub use reqwest;

use reqwest::{Client, Request, Response, redirect};
use rustls::RootCertStore;
use rustls_platform_verifier::BuilderVerifierExt;

/// How calls are made.
#[derive(Clone, Debug)]
pub struct OutboundSettings {
    /// Networks that are not public and may be called all the same.
    pub allow_networks: Vec<ipnet::IpNet>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// What calls name themselves.
    pub user_agent: String,
    /// Are compressed answers asked for and unpacked?
    pub unpack: bool,
}

impl Default for OutboundSettings {
    fn default() -> Self {
        Self {
            allow_networks: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("evenkeel/", env!("CARGO_PKG_VERSION")).into(),
            unpack: false,
        }
    }
}

/// A client that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Its TLS side.
    #[error("the TLS client can't be made")]
    Tls(#[from] rustls::Error),
    /// Any other side of it.
    #[error("the HTTP client can't be made")]
    Client(#[from] reqwest::Error),
}

/// A call that was not answered.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Its address may not be called.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There are no certificates to trust.
    #[error("https can't be used on this node: {0}")]
    NoTls(rustls::Error),
    /// It failed on the way. The text names all causes, and not the URL, which may hold a secret.
    #[error("{}", describe(.0))]
    Failed(reqwest::Error),
}

/// Makes guarded calls. Cheap to clone; all clones share their connections.
#[derive(Clone, Debug)]
pub struct Outbound {
    client: Client,
    guard: Guard,
    /// Why no https call can work, if so. Plain calls do, so it is no reason not to start.
    tls_fault: Option<rustls::Error>,
}

impl Outbound {
    /// Makes the client whose connections all calls share.
    pub fn new(settings: OutboundSettings) -> Result<Self, SetupError> {
        let guard = Guard::new(settings.allow_networks);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?;
        let (tls, tls_fault) = match tls.clone().with_platform_verifier() {
            Ok(tls) => (tls, None),
            // A small container often comes without any certificates.
            Err(fault) => (tls.with_root_certificates(RootCertStore::empty()), Some(fault)),
        };
        let client = Client::builder()
            .tls_backend_preconfigured(tls.with_no_client_auth())
            .dns_resolver(guard.clone())
            .redirect(redirect::Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            .gzip(settings.unpack)
            .brotli(settings.unpack)
            .deflate(settings.unpack)
            .connect_timeout(settings.connect_timeout)
            // Shorter than what servers usually keep: a connection closed under a call fails it.
            .pool_idle_timeout(Duration::from_secs(30))
            .user_agent(settings.user_agent)
            .build()?;
        Ok(Self { client, guard, tls_fault })
    }

    /// Makes one call. A redirect is an answer like any other; whoever follows it calls again.
    pub async fn send(&self, request: Request) -> Result<Response, CallError> {
        self.guard.judge_literal(request.url())?;
        if let (Some(fault), "https") = (&self.tls_fault, request.url().scheme()) {
            return Err(CallError::NoTls(fault.clone()));
        }
        self.client.execute(request).await.map_err(CallError::from_client)
    }
}

impl CallError {
    fn from_client(error: reqwest::Error) -> Self {
        Self::Failed(error.without_url())
    }
}

/// An error with all its causes.
fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let message = source.to_string();
        // Some layers repeat what they wrap.
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = source.source();
    }
    text
}
