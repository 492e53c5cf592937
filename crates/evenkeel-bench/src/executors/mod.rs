//! Measures the real executors: HTTP calls, shell programs and a crawl.

mod counting;
mod crawl;
mod http;
mod report;
mod shell;

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use evenkeel_core::Timestamp;
use evenkeel_engine::Engine;
use evenkeel_executors::{Executor, SupervisorCommand};
use evenkeel_store::Roles;

use crate::args::ExecutorsLoad;
use crate::run::Bench;
use counting::CountingExecutor;
pub use report::ExecutorsReport;

const RUN_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) async fn measure(
    bench: &mut Bench,
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
    // The HTTP measurement comes last, because its jobs continue to become due.
    if load.seconds > 0 && load.rate > 0 {
        report.http = Some(http::measure(bench, load).await?);
    }
    let (target, ..) = bench.parts();
    report.store = target.kind.into();
    report.durability.clone_from(&target.durability);
    Ok(report)
}

/// Starts a node that runs all jobs with `executor`.
async fn start(bench: &mut Bench, executor: &Arc<CountingExecutor>) -> anyhow::Result<Engine> {
    let (target, sources, _, _, workers) = bench.parts();
    let body = Arc::clone(executor) as Arc<dyn Executor>;
    let store = Arc::clone(&target.store);
    sources.start(&store, body, Roles::ALL, workers).await
}

/// Waits until `expected` runs have ended.
async fn until_ended(
    bench: &Bench,
    executor: &CountingExecutor,
    expected: u64,
) -> anyhow::Result<()> {
    let progress = bench.progress(expected, "running");
    let deadline = bench.monotonic() + RUN_TIMEOUT;
    while executor.ended() < expected {
        ensure!(
            bench.monotonic() < deadline,
            "only {} of {expected} runs ended within {RUN_TIMEOUT:?}",
            executor.ended()
        );
        progress.set_position(executor.ended());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    progress.finish_and_clear();
    executor.must_have_succeeded()
}

/// Returns a start time for `jobs` jobs that is late enough to register all jobs before it.
async fn start_time(bench: &Bench, jobs: u64) -> anyhow::Result<Timestamp> {
    let lead = evenkeel_core::Span::from_millis(3_000 + jobs / 8);
    Ok(bench.now().await?.saturating_add(lead))
}

/// Waits until the store's clock reaches `moment`.
async fn sleep_until(bench: &Bench, moment: Timestamp) -> anyhow::Result<()> {
    let now = bench.now().await?;
    tokio::time::sleep(Duration::from(moment.since(now))).await;
    Ok(())
}
