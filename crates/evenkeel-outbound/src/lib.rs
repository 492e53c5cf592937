//! Makes HTTP calls to URLs that users choose.
//!
//! A client that creates a job chooses a URL, and a node calls the URL from inside the operator's
//! network. Every call goes through an [`Outbound`], which refuses IP addresses that are neither
//! public nor allowed by the operator. An [`Outbound`] connects only to IP addresses that it has
//! checked. An [`Outbound`] follows no redirects and uses no proxy, because a proxy would resolve
//! host names where the guard cannot check them.
//!
//! - `guard`: which addresses may be called
//! - `resolver`: how names become addresses
//! - `tls`: trusted certificates and client certificates

mod guard;
mod resolver;
mod tls;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

pub use guard::{Guard, NoAddress, Refused};
pub use reqwest;
pub use resolver::{ResolvedAddresses, Resolver, SystemResolver};
pub use tls::{Identity, PemError, Roots, TlsOptions};

use guard::GuardedResolver;
use reqwest::header::AUTHORIZATION;
use reqwest::{Client, Request, Response, redirect};

#[derive(Clone, Debug)]
pub struct OutboundSettings {
    /// Private networks that jobs may call.
    pub allow_networks: Vec<ipnet::IpNet>,
    pub connect_timeout: Duration,
    pub user_agent: String,
    /// True if the client accepts compressed responses and decompresses them.
    pub decompress: bool,
    /// Resolves host names. The address guard checks the resolved addresses.
    pub resolver: Arc<dyn Resolver>,
}

impl Default for OutboundSettings {
    fn default() -> Self {
        Self {
            allow_networks: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("evenkeel/", env!("CARGO_PKG_VERSION")).into(),
            decompress: false,
            resolver: Arc::new(SystemResolver),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("the TLS client can't be made")]
    Tls(#[from] rustls::Error),
    #[error("the HTTP client can't be made")]
    Client(#[from] reqwest::Error),
}

/// Why an HTTP call got no response.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
    /// The machine has no trusted root certificates.
    #[error("https can't be used on this node: {0}")]
    NoTls(rustls::Error),
    /// The error message of a failed HTTP call names all causes, but not the URL, which may contain
    /// a secret.
    #[error("{}", describe(.0))]
    Failed(reqwest::Error),
}

/// Maximum number of idle connections per host: about as many as a node runs attempts at once.
const IDLE_MAX: usize = 4096;

/// Makes HTTP calls to checked addresses. All clones of an `Outbound` share their connections.
#[derive(Clone, Debug)]
pub struct Outbound {
    client: Client,
    shared: Arc<Shared>,
    /// Why https does not work on this machine. Plain http works without TLS, so the server starts
    /// anyway.
    tls_fault: Option<rustls::Error>,
}

/// Settings that HTTP clients with different TLS options share.
#[derive(Debug)]
struct Shared {
    guard: Guard,
    settings: OutboundSettings,
}

impl Outbound {
    pub fn new(settings: OutboundSettings) -> Result<Self, SetupError> {
        let guard = Guard::new(settings.allow_networks.clone());
        Self::build(Arc::new(Shared { guard, settings }), &TlsOptions::default())
    }

    /// Returns an HTTP client with the same address guard and settings, but with other TLS options
    /// and separate connections. `with_tls` reads the machine's certificates, which takes some
    /// milliseconds.
    pub fn with_tls(&self, tls: &TlsOptions) -> Result<Self, SetupError> {
        Self::build(Arc::clone(&self.shared), tls)
    }

    fn build(shared: Arc<Shared>, tls: &TlsOptions) -> Result<Self, SetupError> {
        let settings = &shared.settings;
        let (tls, tls_fault) = tls::config(tls)?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(GuardedResolver::new(
                shared.guard.clone(),
                Arc::clone(&settings.resolver),
            ))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            .gzip(settings.decompress)
            .brotli(settings.decompress)
            .deflate(settings.decompress)
            .connect_timeout(settings.connect_timeout)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(15))
            .pool_max_idle_per_host(IDLE_MAX)
            // The HTTP client closes idle connections earlier than most servers do, because a call
            // on a connection that the server has closed fails.
            .pool_idle_timeout(Duration::from_secs(30))
            .user_agent(&settings.user_agent)
            .build()?;
        Ok(Self { client, shared, tls_fault })
    }

    /// Makes one HTTP call. A redirect is returned like any other response. Credentials in the URL
    /// become an `Authorization` header, unless the request has one.
    pub async fn send(&self, mut request: Request) -> Result<Response, CallError> {
        self.take_credentials(&mut request)?;
        self.shared.guard.check_literal(request.url())?;
        if let (Some(fault), "https") = (&self.tls_fault, request.url().scheme()) {
            return Err(CallError::NoTls(fault.clone()));
        }
        self.client.execute(request).await.map_err(CallError::from_client)
    }

    /// Moves the credentials out of the URL, so that all URL parsers find the same host in the URL.
    fn take_credentials(&self, request: &mut Request) -> Result<(), CallError> {
        if request.url().username().is_empty() && request.url().password().is_none() {
            return Ok(());
        }
        // The HTTP client moves credentials into a header only for requests that it builds itself.
        let built = self.client.get(request.url().clone()).build();
        let mut built = built.map_err(CallError::from_client)?;
        *request.url_mut() = built.url().clone();
        if let Some(credentials) = built.headers_mut().remove(AUTHORIZATION) {
            request.headers_mut().entry(AUTHORIZATION).or_insert(credentials);
        }
        Ok(())
    }
}

impl CallError {
    /// Finds the error of the address guard, which the HTTP client wraps in other errors.
    fn from_client(error: reqwest::Error) -> Self {
        let mut cause = error.source();
        while let Some(source) = cause {
            if let Some(none) = source.downcast_ref::<NoAddress>() {
                return Self::NoAddress(none.clone());
            }
            cause = source.source();
        }
        Self::Failed(error.without_url())
    }
}

/// Returns the message of an HTTP error with all its causes. The message contains the URL, which
/// may contain a secret, unless the caller removed the URL from the error.
pub fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let message = source.to_string();
        // Some errors already contain the message of their cause.
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = source.source();
    }
    text
}
