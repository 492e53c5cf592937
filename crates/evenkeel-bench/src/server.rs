//! Serves the real HTTP API on a socket in this process.

use std::sync::Arc;

use async_trait::async_trait;
use axum::serve::ListenerExt as _;
use evenkeel_api::{Access, AppParts, Check, Readiness, Settings, TokenRequest, Tokens, Trust};
use evenkeel_commands::{Balance, Balancing, Callbacks, ExecutorCheck, Feed, Jobs, Pages, Runs};
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::{AttemptTokens, Span, TenantNo};
use evenkeel_secrets::Secrets;
use evenkeel_store::{Role, Store};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::node::Sources;

pub const TENANT: &str = "bench";

struct AnyConfig;

impl ExecutorCheck for AnyConfig {
    fn check(
        &self,
        _tenant: TenantNo,
        _kind: &str,
        _config: &Value,
        _payload: &Value,
    ) -> Result<(), (String, String)> {
        Ok(())
    }

    fn kinds(&self) -> Vec<String> {
        vec!["noop".into()]
    }
}

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
        let balance = Balance::new(Arc::clone(store), BalanceSettings::default());
        let parts = AppParts {
            store: Arc::clone(store),
            jobs: Jobs::new(
                Arc::clone(store),
                Arc::clone(&sources.chance),
                Arc::new(AnyConfig),
                Arc::clone(&balance),
            ),
            balancing: Balancing::new(Arc::clone(&balance), Arc::clone(&sources.chance)),
            balance,
            callbacks: Callbacks::new(
                Arc::clone(store),
                Arc::clone(&sources.chance),
                AttemptTokens::new(b"of a bench"),
                sources.run_ids,
                DEFAULT_ALPHA,
            ),
            pages: Pages::new(Arc::clone(store)),
            runs: Runs::new(Arc::clone(store), sources.run_ids),
            feed: Feed::new(Arc::clone(store)),
            streams: evenkeel_api::Streams::default(),
            access: Arc::new(Access::new(
                Arc::clone(store),
                Trust { local: Some(tokens), ..Trust::default() },
                Arc::clone(&sources.chance),
            )),
            secrets: Arc::new(Secrets::new(Arc::clone(store), None, Arc::clone(&sources.chance))),
            clock: Arc::new(move || clock.wall()),
            metrics: Arc::new(String::new),
            ready: Arc::new(AlwaysReady),
            run_ids: sources.run_ids,
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

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
