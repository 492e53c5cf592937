//! From a request to the start of a body: the real API on a real socket.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use evenkeel_api::{Access, App, Check, Readiness, Settings, TokenRequest, Tokens, Trust};
use evenkeel_commands::{Callbacks, ExecutorCheck, Jobs, Pages, Runs};
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::{AttemptTokens, RunId, Span, TenantNo};
use evenkeel_executors::Executor;
use evenkeel_store::{Role, Roles};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::ledger::LedgerExecutor;
use crate::machine;
use crate::report::{Quantiles, Report};
use crate::run::Bench;

const TENANT: &str = "bench";
/// A body that has not started by then never will.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// Triggers a job `count` times, one after another.
pub async fn measure(bench: &mut Bench, count: u64) -> anyhow::Result<Report> {
    let progress = bench.progress(count, "triggering");
    let (target, sources, _, folder, workers) = bench.parts();
    let (starts, mut started) = mpsc::unbounded_channel();
    let executor =
        LedgerExecutor::create(&folder.join("ledger"), Arc::clone(&sources.clock), Some(starts))?;
    let body: Arc<dyn Executor> = Arc::clone(&executor) as _;
    target.begin().await?;
    let began = sources.clock.monotonic();
    let engine = sources.start(&target.store, body, Roles::ALL, workers).await?;

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
    let store = Arc::clone(&target.store);
    let app = App {
        store: Arc::clone(&store),
        jobs: Jobs::new(Arc::clone(&store), Arc::clone(&sources.chance), Arc::new(AnyConfig)),
        callbacks: Callbacks::new(
            Arc::clone(&store),
            Arc::clone(&sources.chance),
            AttemptTokens::new(b"of a bench"),
            DEFAULT_ALPHA,
        ),
        pages: Pages::new(Arc::clone(&store)),
        runs: Runs::new(Arc::clone(&store)),
        access: Arc::new(Access::new(
            Arc::clone(&store),
            Trust { local: Some(tokens), ..Trust::default() },
            Arc::clone(&sources.chance),
        )),
        clock: Arc::new(move || clock.wall()),
        metrics: Arc::new(String::new),
        ready: Arc::new(AlwaysReady),
        settings: Settings::default(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/api/v1/jobs", listener.local_addr()?);
    let server =
        tokio::spawn(async move { axum::serve(listener, evenkeel_api::router(app)).await });

    // The client insists on one, even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
    let created: Value = client
        .post(&url)
        .bearer_auth(&token)
        .json(&json!({
            "name": "triggered", "schedule": {"kind": "interval", "every": "365d"},
            "executor_type": "noop", "overlap": "allow",
        }))
        .send()
        .await?
        .error_for_status()?
        .json()
        .await?;
    let id = created["id"].as_str().context("the created job has an id")?;
    let trigger = format!("{url}/{id}/trigger");

    let mut micros = Vec::new();
    let (mut lost, mut doubled) = (0, 0);
    for _ in 0..count {
        let asked = sources.clock.wall();
        let answer = client.post(&trigger).bearer_auth(&token).send().await?.error_for_status()?;
        let answer: Value = answer.json().await?;
        let run: RunId = answer["run_id"].as_str().context("a run id")?.parse()?;
        match tokio::time::timeout(PATIENCE, started.recv()).await {
            Ok(Some(body)) => {
                ensure!(body.scheduled_at == run.key().scheduled_at, "another body started");
                micros.push(body.started_at.since(asked).as_micros());
            }
            Ok(None) | Err(_) => lost += 1,
        }
        progress.inc(1);
        // An idle system: what follows a run is over before the next is asked for.
        tokio::time::sleep(Duration::from_millis(5)).await;
        while started.try_recv().is_ok() {
            doubled += 1;
        }
    }
    progress.finish_and_clear();
    let rss_mb = machine::rss_mb();
    engine.drain(Duration::from_secs(10)).await;
    server.abort();
    let census = target.store.census().await?;
    let firings = micros.len() as u64;
    let seconds = (sources.clock.monotonic() - began).as_secs_f64();
    Ok(Report {
        load: "latency",
        store: target.kind.into(),
        durability: target.durability.clone(),
        jobs: 1,
        seconds,
        firings,
        firings_per_s: firings as f64 / seconds,
        latency_ms: Quantiles::of_micros(micros),
        lost,
        doubled,
        skipped: census.skipped_times,
        rows_in_history: census.runs,
        rss_mb,
        cpu_s: target.cpu_seconds(),
        bytes_per_firing: target.bytes_written().await? as f64 / firings.max(1) as f64,
        ..Report::default()
    })
}
