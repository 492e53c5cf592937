//! Runs programs that do nothing.

use evenkeel_executors::{ShellExecutor, ShellSettings, SupervisorCommand};
use serde_json::json;

use super::counting::CountingExecutor;
use super::report::ShellFigures;
use super::run_at_once;
use crate::machine;
use crate::run::Bench;

pub(super) async fn measure(
    bench: &Bench,
    count: u64,
    supervisor: SupervisorCommand,
) -> anyhow::Result<ShellFigures> {
    let executor = CountingExecutor::new(ShellExecutor::new(ShellSettings::new(supervisor))?);
    let took = run_at_once(bench, &executor, count, json!({"argv": ["/bin/true"]})).await?;
    Ok(ShellFigures {
        runs: count,
        seconds: took.as_secs_f64(),
        runs_per_s: count as f64 / took.as_secs_f64(),
        rss_mb: machine::rss_mb(),
    })
}
