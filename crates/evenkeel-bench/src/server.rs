//! Serves the real HTTP API on a socket in this process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::serve::ListenerExt as _;
use evenkeel_api::{Access, AppParts, Check, Readiness, Settings, TokenRequest, Tokens, Trust};
use evenkeel_commands::{Balance, Balancing, Callbacks, Feed, Jobs, Pages, Runs};
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::{AttemptTokens, Span};
use evenkeel_executors::CATALOG;
use evenkeel_secrets::Secrets;
use evenkeel_store::{Role, Store};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::node::Sources;

pub const TENANT: &str = "bench";

struct AlwaysReady;

#[async_trait]
impl Readiness for AlwaysReady {
    async fn checks(&self) -> Vec<Check> {
        Vec::new()
    }
}

/// Dropping it stops the server.
pub struct Server {
    /// Without a path.
    pub url: String,
    /// An admin token of [`TENANT`].
    pub token: String,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub async fn start(store: &Arc<dyn Store>, sources: &Sources) -> anyhow::Result<Self> {
        let tokens = Arc::new(Tokens::new(&[sources.chance.bits() as u8; 32])?);
        let clock = Arc::clone(&sources.clock);
        let token = tokens.issue(
            &TokenRequest {
                role: Role::Operator,
                tenant: TENANT.into(),
                ttl: Span::from_secs(3600),
                now: clock.wall(),
                subject: "bench".into(),
            },
            &*sources.chance,
        )?;
        let store = || Arc::clone(store);
        let chance = || Arc::clone(&sources.chance);
        let balance = Balance::new(store(), BalanceSettings::default());
        let tokens_of_attempts = AttemptTokens::new(b"of a bench");
        let trust = Trust { local: Some(tokens), ..Trust::default() };
        let (run_ids, alpha) = (sources.run_ids, DEFAULT_ALPHA);
        let parts = AppParts {
            store: store(),
            jobs: Jobs::new(store(), chance(), Arc::new(CATALOG), Arc::clone(&balance)),
            balancing: Balancing::new(Arc::clone(&balance), chance()),
            balance,
            callbacks: Callbacks::new(store(), chance(), tokens_of_attempts, run_ids, alpha),
            pages: Pages::new(store()),
            runs: Runs::new(store(), run_ids),
            feed: Feed::new(store()),
            streams: evenkeel_api::Streams::default(),
            access: Arc::new(Access::new(store(), trust, chance())),
            secrets: Arc::new(Secrets::new(store(), None, chance())),
            clock: Arc::new(move || clock.wall()),
            metrics: Arc::new(String::new),
            ready: Arc::new(AlwaysReady),
            run_ids,
            settings: Settings::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let listener = listener.tap_io(|stream| {
            // As `serve` does.
            let _ = stream.set_nodelay(true);
        });
        let router = evenkeel_api::router(parts);
        let task = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, token, task })
    }
}

/// Returns an HTTP client that keeps one idle connection.
pub fn http_client(timeout: Duration) -> reqwest::Result<reqwest::Client> {
    client_builder().pool_max_idle_per_host(1).timeout(timeout).build()
}

/// Starts to build an HTTP client for a server on this machine.
pub fn client_builder() -> reqwest::ClientBuilder {
    // reqwest needs a default crypto provider, even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
