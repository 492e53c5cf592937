//! HTTP calls to wherever a user says.
//!
//! Whoever can create a job chooses a URL that this node then calls from where it stands. Every
//! call goes through an [`Outbound`], which refuses addresses that are not public unless they are
//! allowed, connects to the very address it judged, follows no redirect by itself and uses no
//! proxy: a proxy would look names up where no guard sees it.

mod guard;
mod look_up;
mod tls;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

pub use guard::{Guard, NoAddress, Refused};
pub use look_up::{Found, LookUp, SystemLookUp};
pub use reqwest;
pub use tls::{Identity, PemError, Roots, TlsOptions};

use guard::Guarded;
use reqwest::header::AUTHORIZATION;
use reqwest::{Client, Request, Response, redirect};

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
    /// Where the addresses of names come from. The guard judges what it says.
    pub look_up: Arc<dyn LookUp>,
}

impl Default for OutboundSettings {
    fn default() -> Self {
        Self {
            allow_networks: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("evenkeel/", env!("CARGO_PKG_VERSION")).into(),
            unpack: false,
            look_up: Arc::new(SystemLookUp),
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
    /// Its name has no address that may be called.
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
    /// There are no certificates to trust.
    #[error("https can't be used on this node: {0}")]
    NoTls(rustls::Error),
    /// It failed on the way. The text names all causes, and not the URL, which may hold a secret.
    #[error("{}", describe(.0))]
    Failed(reqwest::Error),
}

/// Idle connections kept for one host: about as many as a node runs bodies.
const IDLE_MAX: usize = 4096;

/// Makes guarded calls. Cheap to clone; all clones share their connections.
#[derive(Clone, Debug)]
pub struct Outbound {
    client: Client,
    shared: Arc<Shared>,
    /// Why no https call can work, if so. Plain calls do, so it is no reason not to start.
    tls_fault: Option<rustls::Error>,
}

/// What clients with other TLS options have in common.
#[derive(Debug)]
struct Shared {
    guard: Guard,
    settings: OutboundSettings,
}

impl Outbound {
    /// Makes the client whose connections all calls share.
    pub fn new(settings: OutboundSettings) -> Result<Self, SetupError> {
        let guard = Guard::new(settings.allow_networks.clone());
        Self::build(Arc::new(Shared { guard, settings }), &TlsOptions::default())
    }

    /// One with the same guard and settings, but TLS options and connections of its own. Reads the
    /// machine's certificates, which takes some milliseconds.
    pub fn with_tls(&self, tls: &TlsOptions) -> Result<Self, SetupError> {
        Self::build(Arc::clone(&self.shared), tls)
    }

    fn build(shared: Arc<Shared>, tls: &TlsOptions) -> Result<Self, SetupError> {
        let settings = &shared.settings;
        let (tls, tls_fault) = tls::config(tls)?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Guarded::new(shared.guard.clone(), Arc::clone(&settings.look_up)))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            .gzip(settings.unpack)
            .brotli(settings.unpack)
            .deflate(settings.unpack)
            .connect_timeout(settings.connect_timeout)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(15))
            .pool_max_idle_per_host(IDLE_MAX)
            // Shorter than what servers usually keep: a connection closed under a call fails it.
            .pool_idle_timeout(Duration::from_secs(30))
            .user_agent(&settings.user_agent)
            .build()?;
        Ok(Self { client, shared, tls_fault })
    }

    /// Makes one call. A redirect is an answer like any other; whoever follows it calls again. A
    /// name and password in the URL become an `Authorization`, unless there is one.
    pub async fn send(&self, mut request: Request) -> Result<Response, CallError> {
        self.take_credentials(&mut request)?;
        self.shared.guard.judge_literal(request.url())?;
        if let (Some(fault), "https") = (&self.tls_fault, request.url().scheme()) {
            return Err(CallError::NoTls(fault.clone()));
        }
        self.client.execute(request).await.map_err(CallError::from_client)
    }

    /// After this, there is nothing before the host for two parsers to disagree about.
    fn take_credentials(&self, request: &mut Request) -> Result<(), CallError> {
        if request.url().username().is_empty() && request.url().password().is_none() {
            return Ok(());
        }
        // The client does it for requests that it builds itself.
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
    /// What the guard says about a name comes out of the client's resolver wrapped in other errors.
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

/// An error with all its causes. It names the URL, which may hold a secret, unless that was taken out
/// of it.
pub fn describe(error: &reqwest::Error) -> String {
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
