//! Benchmarks of Evenkeel, with the same engine, defaults and durability as `serve`.
//!
//! Lost and doubled runs are counted from a file in which each execution is recorded, never from
//! the store.

mod api;
mod args;
mod balance;
mod dashboard;
mod executors;
mod floor;
mod latency;
mod ledger;
mod machine;
mod node;
mod queue;
mod rebalance;
mod report;
mod restart;
mod run;
mod second_node;
mod serve_process;
mod server;
mod target;
mod workload;

pub use api::ApiReport;
pub use args::{BenchArgs, Load};
pub use balance::BalanceReport;
pub use dashboard::{DashboardReport, PageReport};
pub use executors::ExecutorsReport;
pub use floor::FloorReport;
pub use queue::QueueReport;
pub use rebalance::RebalanceReport;
pub use report::{Quantiles, Report};
pub use restart::RestartReport;

use std::time::Duration;

use args::MaxLoad;
use evenkeel_executors::SupervisorCommand;
use floor::Share;
use run::Bench;

/// Longest duration of each floor that `max` measures.
const FLOOR_LENGTH_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Measured {
    Load(Report),
    Floor(FloorReport),
    Executors(ExecutorsReport),
    Api(ApiReport),
    Balance(BalanceReport),
    Dashboard(DashboardReport),
    Rebalance(RebalanceReport),
    Restart(RestartReport),
    Queue(QueueReport),
}

impl Measured {
    pub fn table(&self) -> String {
        match self {
            Self::Load(report) => report.table(),
            Self::Floor(report) => report.table(),
            Self::Executors(report) => report.table(),
            Self::Api(report) => report.table(),
            Self::Balance(report) => report.table(),
            Self::Dashboard(report) => report.table(),
            Self::Rebalance(report) => report.table(),
            Self::Restart(report) => report.table(),
            Self::Queue(report) => report.table(),
        }
    }
}

/// Runs one benchmark. `quiet` hides the progress bar; `supervisor` starts the supervisor of a
/// shell program. Returns `None` in the second node of `max --split`, because only the first node
/// measures.
pub async fn run(
    args: &BenchArgs,
    quiet: bool,
    supervisor: SupervisorCommand,
) -> anyhow::Result<Option<Measured>> {
    match &args.load {
        Load::Worker { ledger } => {
            second_node::work(&args.store, args.workers, ledger).await?;
            return Ok(None);
        }
        Load::Balance { jobs } => {
            return Ok(Some(Measured::Balance(balance::measure(jobs, quiet)?)));
        }
        _ => {}
    }
    let mut bench = Bench::open(args, quiet).await?;
    let mut measured = match &args.load {
        Load::Steady { jobs, rate, seconds } => {
            Measured::Load(bench.steady(*jobs, *rate, *seconds).await?)
        }
        Load::Max(load) => Measured::Load(max(args, &mut bench, load, quiet).await?),
        Load::Floor { jobs, seconds } => {
            let length = Duration::from_secs(*seconds);
            bench.target.create_log_files().await?;
            Measured::Floor(floor::measure(&mut bench, *jobs, length).await?)
        }
        Load::Burst { jobs } => Measured::Load(bench.burst(*jobs).await?),
        Load::Latency { count } => Measured::Load(latency::measure(&mut bench, *count).await?),
        Load::Executors(load) => {
            Measured::Executors(executors::measure(&bench, load, supervisor).await?)
        }
        Load::Api(load) => Measured::Api(api::measure(&mut bench, load).await?),
        Load::Rebalance(load) => {
            Measured::Rebalance(rebalance::measure(&mut bench, load, rebalance::QUIET).await?)
        }
        Load::Dashboard(load) => Measured::Dashboard(dashboard::measure(&bench, load).await?),
        Load::Restart(load) => Measured::Restart(restart::measure(&bench, load).await?),
        Load::Queue(load) => Measured::Queue(queue::measure(&bench, load).await?),
        Load::Balance { .. } | Load::Worker { .. } => return Ok(None),
    };
    let kept = bench.target.close(args.keep);
    match &mut measured {
        Measured::Load(report) => report.kept = kept,
        Measured::Api(report) => report.kept = kept,
        Measured::Rebalance(report) => report.kept = kept,
        Measured::Restart(report) => report.kept = kept,
        Measured::Dashboard(report) => report.kept = kept,
        Measured::Queue(report) => report.kept = kept,
        Measured::Floor(_) | Measured::Executors(_) | Measured::Balance(_) => {}
    }
    Ok(Some(measured))
}

/// Measures the floors and `max` in turn. Only the store of the last round can be kept.
async fn max(
    args: &BenchArgs,
    bench: &mut Bench,
    load: &MaxLoad,
    quiet: bool,
) -> anyhow::Result<Report> {
    let is_temporary = matches!(args.store.as_str(), "sqlite" | "postgres");
    anyhow::ensure!(
        load.rounds == 1 || is_temporary,
        "--rounds {} needs --store sqlite or --store postgres: each round uses a new store",
        load.rounds
    );
    let length = Duration::from_secs(load.seconds).min(FLOOR_LENGTH_MAX);
    let mut rounds = Vec::new();
    let mut report = Report::default();
    for round in 0..load.rounds {
        if round > 0 {
            *bench = Bench::open(args, quiet).await?;
        }
        bench.target.create_log_files().await?;
        let floors = match load.no_floor {
            true => None,
            false => Some(floor::measure(bench, load.jobs, length).await?),
        };
        report = bench.max(load).await?;
        rounds.extend(floors.map(|floors| (floors, report.firings_per_s)));
    }
    Ok(Report { share: Share::of(&rounds), ..report })
}
