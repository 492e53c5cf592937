//! Measures the real executors: HTTP calls, shell programs and a crawl.

mod counting;
mod crawl;
mod http;
mod report;
mod shell;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use axum::Router;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::{Definition, Timestamp};
use evenkeel_executors::{Executor, SupervisorCommand};
use evenkeel_outbound::{Outbound, OutboundSettings};
use evenkeel_store::Roles;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::args::ExecutorsLoad;
use crate::run::Bench;
use counting::CountingExecutor;
pub use report::ExecutorsReport;

const RUN_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) async fn measure(
    bench: &Bench,
    load: &ExecutorsLoad,
    supervisor: SupervisorCommand,
) -> anyhow::Result<ExecutorsReport> {
    let mut report = ExecutorsReport::default();
    if load.pages > 0 {
        report.crawl = Some(crawl::measure(bench, load.pages).await?);
    }
    if load.programs > 0 {
        report.shell = Some(shell::measure(bench, load.programs, supervisor).await?);
    }
    // The HTTP measurement comes last, because its jobs continue to become due after the
    // measurement.
    if load.seconds > 0 && load.rate > 0 {
        report.http = Some(http::measure(bench, load).await?);
    }
    report.store = bench.target.kind.into();
    report.durability.clone_from(&bench.target.durability);
    Ok(report)
}

/// Runs `count` jobs with this executor configuration, all due at the same instant. Returns the
/// time from this instant until the last run ends.
async fn run_at_once(
    bench: &Bench,
    executor: &Arc<CountingExecutor>,
    count: u64,
    config: Value,
) -> anyhow::Result<Duration> {
    let at = bench.start_time(count).await?;
    let progress = bench.progress(count, "registering");
    let spec = ExecutorSpec { kind: executor.declaration().kind.into(), config };
    let like = |definition| Definition { executor: spec.clone(), ..definition };
    bench.registrar(&progress).at_once(count, at, like).await?;
    progress.finish_and_clear();
    let engine = bench.start(executor, Roles::ALL).await?;
    sleep_until(bench, at).await?;
    let progress = bench.progress(count, "running");
    let began = bench.monotonic();
    loop {
        let ended = executor.counts().ended;
        let took = bench.monotonic() - began;
        if ended >= count {
            progress.finish_and_clear();
            executor.must_have_succeeded()?;
            engine.drain(Duration::from_secs(30)).await;
            return Ok(took);
        }
        ensure!(took < RUN_TIMEOUT, "only {ended} of {count} runs ended within {RUN_TIMEOUT:?}");
        progress.set_position(ended);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Serves `router` on a free local port until the task is aborted. Returns its address and task.
async fn serve(router: Router) -> anyhow::Result<(SocketAddr, JoinHandle<std::io::Result<()>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    Ok((address, tokio::spawn(async move { axum::serve(listener, router).await })))
}

/// Returns an HTTP client that may call servers on this machine.
fn local_outbound(settings: OutboundSettings) -> anyhow::Result<Outbound> {
    let allow_networks = vec!["127.0.0.0/8".parse()?];
    Ok(Outbound::new(OutboundSettings { allow_networks, ..settings })?)
}

/// Waits until the store's clock reaches `moment`.
async fn sleep_until(bench: &Bench, moment: Timestamp) -> anyhow::Result<()> {
    let now = bench.now().await?;
    tokio::time::sleep(Duration::from(moment.since(now))).await;
    Ok(())
}
