//! What the real executors do: calls received, programs run, pages crawled.

mod crawl;
mod http;
mod report;
mod shell;
mod watched;

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use evenkeel_core::Timestamp;
use evenkeel_engine::Engine;
use evenkeel_executors::{Executor, SupervisorCommand};
use evenkeel_store::Roles;

use crate::run::Bench;
pub use report::ExecutorsReport;
use watched::Watched;

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Amounts {
    /// Calls due per second.
    pub rate: u64,
    /// For this long.
    pub seconds: u64,
    /// Programs.
    pub programs: u64,
    /// Pages of the site.
    pub pages: usize,
}

/// What does not come to its end in this time never will.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures the executors, one after the other.
pub(crate) async fn measure(
    bench: &mut Bench,
    amounts: &Amounts,
    supervisor: SupervisorCommand,
) -> anyhow::Result<ExecutorsReport> {
    let mut report = ExecutorsReport::default();
    if amounts.pages > 0 {
        report.crawl = Some(crawl::measure(bench, amounts.pages).await?);
    }
    if amounts.programs > 0 {
        report.shell = Some(shell::measure(bench, amounts.programs, supervisor).await?);
    }
    // Last, because its jobs are due again and again.
    if amounts.seconds > 0 && amounts.rate > 0 {
        report.http = Some(http::measure(bench, amounts).await?);
    }
    let (target, ..) = bench.parts();
    report.store = target.kind.into();
    report.durability.clone_from(&target.durability);
    Ok(report)
}

/// A node whose bodies are those of `executor`.
async fn start(bench: &mut Bench, executor: &Arc<Watched>) -> anyhow::Result<Engine> {
    let (target, sources, _, _, workers) = bench.parts();
    let body = Arc::clone(executor) as Arc<dyn Executor>;
    let store = Arc::clone(&target.store);
    sources.start(&store, body, Roles::ALL, workers).await
}

/// Waits until so many runs have ended.
async fn until_ended(bench: &Bench, executor: &Watched, expected: u64) -> anyhow::Result<()> {
    let progress = bench.progress(expected, "running");
    let deadline = bench.monotonic() + PATIENCE;
    while executor.ended() < expected {
        ensure!(
            bench.monotonic() < deadline,
            "only {} of {expected} runs have ended",
            executor.ended()
        );
        progress.set_position(executor.ended());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    progress.finish_and_clear();
    executor.must_have_succeeded()
}

/// The moment from which jobs can be due: registering them takes until about then.
async fn soon(bench: &Bench, jobs: u64) -> anyhow::Result<Timestamp> {
    let lead = evenkeel_core::Span::from_millis(3_000 + jobs / 8);
    Ok(bench.now().await?.saturating_add(lead))
}

/// Waits for the store's clock.
async fn sleep_until(bench: &Bench, moment: Timestamp) -> anyhow::Result<()> {
    let now = bench.now().await?;
    tokio::time::sleep(Duration::from(moment.since(now))).await;
    Ok(())
}
