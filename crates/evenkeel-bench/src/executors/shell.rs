//! Runs programs that do nothing.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Definition;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_executors::{ShellExecutor, ShellSettings, SupervisorCommand};
use serde_json::json;

use super::counting::CountingExecutor;
use super::report::ShellFigures;
use super::{sleep_until, start, start_time, until_ended};
use crate::machine;
use crate::run::Bench;

/// Measures `count` runs of `/bin/true` that are all due at once.
pub(super) async fn measure(
    bench: &mut Bench,
    count: u64,
    supervisor: SupervisorCommand,
) -> anyhow::Result<ShellFigures> {
    let shell = ShellExecutor::new(ShellSettings::new(supervisor))?;
    let executor = CountingExecutor::new(Arc::new(shell));
    let at = start_time(bench, count).await?;
    let progress = bench.progress(count, "registering");
    let like = |definition: Definition| Definition {
        executor: ExecutorSpec { kind: "shell".into(), config: json!({"argv": ["/bin/true"]}) },
        ..definition
    };
    bench.registrar(&progress).at_once(count, at, like).await?;
    progress.finish_and_clear();
    let engine = start(bench, &executor).await?;
    sleep_until(bench, at).await?;
    let began = bench.monotonic();
    until_ended(bench, &executor, count).await?;
    let took = bench.monotonic() - began;
    engine.drain(Duration::from_secs(30)).await;
    Ok(ShellFigures {
        runs: count,
        seconds: took.as_secs_f64(),
        runs_per_s: count as f64 / took.as_secs_f64(),
        rss_mb: machine::rss_mb(),
    })
}
