//! Measures what Evenkeel does on a machine: the same engine, defaults and durability as `serve`.
//!
//! What was lost or doubled is told from what the bodies wrote down, never from the store.

mod api;
mod args;
mod balance;
mod executors;
mod latency;
mod ledger;
mod machine;
mod node;
mod queue;
mod rebalance;
mod report;
mod run;
mod second_node;
mod server;
mod target;
mod workload;

pub use api::ApiReport;
pub use args::{BenchArgs, Load};
pub use balance::BalanceReport;
pub use executors::ExecutorsReport;
pub use queue::QueueReport;
pub use rebalance::RebalanceReport;
pub use report::{Quantiles, Report};

use evenkeel_executors::SupervisorCommand;
use executors::Amounts;
use run::Bench;

/// What was measured.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Measured {
    /// A load on the hot path.
    Load(Box<Report>),
    /// The real executors.
    Executors(Box<ExecutorsReport>),
    /// The HTTP interface.
    Api(Box<ApiReport>),
    /// Balancing.
    Balance(Box<BalanceReport>),
    /// A rebalance on a store.
    Rebalance(Box<RebalanceReport>),
    /// The queue.
    Queue(Box<QueueReport>),
}

impl Measured {
    /// A table for people.
    pub fn table(&self) -> String {
        match self {
            Self::Load(report) => report.table(),
            Self::Executors(report) => report.table(),
            Self::Api(report) => report.table(),
            Self::Balance(report) => report.table(),
            Self::Rebalance(report) => report.table(),
            Self::Queue(report) => report.table(),
        }
    }
}

/// Measures. `quiet` shows no progress, `supervisor` starts one for a program. The second node of a
/// split has nothing to report.
pub async fn run(
    args: &BenchArgs,
    quiet: bool,
    supervisor: SupervisorCommand,
) -> anyhow::Result<Option<Measured>> {
    if let Load::Worker { ledger } = &args.load {
        second_node::work(&args.store, args.workers, ledger).await?;
        return Ok(None);
    }
    if let Load::Balance { jobs } = &args.load {
        let report = balance::measure(jobs, quiet)?;
        return Ok(Some(Measured::Balance(Box::new(report))));
    }
    let mut bench = Bench::open(args, quiet).await?;
    if let Load::Executors { rate, seconds, programs, pages } = args.load {
        let amounts = Amounts { rate, seconds, programs, pages };
        let report = executors::measure(&mut bench, &amounts, supervisor).await?;
        bench.close(args.keep);
        return Ok(Some(Measured::Executors(Box::new(report))));
    }
    if let Load::Api { jobs, due, connections, seconds } = args.load {
        let amounts = api::Amounts { jobs, due, connections, seconds };
        let mut report = api::measure(&mut bench, &amounts).await?;
        report.kept = bench.close(args.keep);
        return Ok(Some(Measured::Api(Box::new(report))));
    }
    if let Load::Rebalance { jobs, firing } = args.load {
        let amounts = rebalance::Amounts { jobs, firing, quiet: rebalance::QUIET };
        let mut report = rebalance::measure(&mut bench, &amounts).await?;
        report.kept = bench.close(args.keep);
        return Ok(Some(Measured::Rebalance(Box::new(report))));
    }
    if let Load::Queue { jobs, pending, tasks, seconds, limits, dedup, unfinished } = args.load {
        let amounts = queue::Amounts { jobs, pending, tasks, seconds, limits, dedup, unfinished };
        let mut report = queue::measure(&mut bench, &amounts).await?;
        report.kept = bench.close(args.keep);
        return Ok(Some(Measured::Queue(Box::new(report))));
    }
    let mut report = match &args.load {
        Load::Steady { jobs, rate, seconds } => bench.steady(*jobs, *rate, *seconds).await?,
        Load::Max { jobs, idle, seconds, split } => {
            bench.max(*jobs, *idle, *seconds, *split).await?
        }
        Load::Burst { jobs } => bench.burst(*jobs).await?,
        Load::Latency { count } => latency::measure(&mut bench, *count).await?,
        Load::Executors { .. }
        | Load::Api { .. }
        | Load::Balance { .. }
        | Load::Queue { .. }
        | Load::Rebalance { .. }
        | Load::Worker { .. } => return Ok(None),
    };
    report.kept = bench.close(args.keep);
    Ok(Some(Measured::Load(Box::new(report))))
}
