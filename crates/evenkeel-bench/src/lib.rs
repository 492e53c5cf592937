//! Measures what Evenkeel does on a machine: the same engine, defaults and durability as `serve`.
//!
//! What was lost or doubled is told from what the bodies wrote down, never from the store.

mod args;
mod latency;
mod ledger;
mod machine;
mod node;
mod report;
mod run;
mod second_node;
mod target;
mod workload;

pub use args::{BenchArgs, Load};
pub use report::{Quantiles, Report};

use run::Bench;

/// Measures. `quiet` shows no progress. The second node of a split has nothing to report.
pub async fn run(args: &BenchArgs, quiet: bool) -> anyhow::Result<Option<Report>> {
    if let Load::Worker { ledger } = &args.load {
        second_node::work(&args.store, args.workers, ledger).await?;
        return Ok(None);
    }
    let mut bench = Bench::open(args, quiet).await?;
    let mut report = match &args.load {
        Load::Steady { jobs, rate, seconds } => bench.steady(*jobs, *rate, *seconds).await?,
        Load::Max { jobs, idle, seconds, split } => {
            bench.max(*jobs, *idle, *seconds, *split).await?
        }
        Load::Burst { jobs } => bench.burst(*jobs).await?,
        Load::Latency { count } => latency::measure(&mut bench, *count).await?,
        Load::Worker { .. } => return Ok(None),
    };
    report.kept = bench.close(args.keep);
    Ok(Some(report))
}
