//! Command-line arguments of `evenkeel bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Measure the throughput and latency of Evenkeel on this machine, with the same engine, defaults
/// and durability as `serve`. The jobs do nothing, except in the benchmark `executors`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  evenkeel bench max --jobs 100000 --seconds 20
  evenkeel bench max --rounds 5 --seconds 6 --store postgres
  evenkeel bench floor --store postgres
  evenkeel bench steady --jobs 1000000 --rate 10000 --seconds 60 --store postgres
  evenkeel bench burst --jobs 100000 --json
  evenkeel bench latency --store postgres://user@host/database
  evenkeel bench executors --store postgres
  evenkeel bench api --jobs 1000000 --seconds 10 --store postgres
  evenkeel bench balance --jobs 100,10000
  evenkeel bench rebalance --jobs 1000000 --firing 1000 --store postgres
  evenkeel bench restart --jobs 10000000 --store postgres
  evenkeel bench dashboard --jobs 1000000 --runs 10000000 --viewers 500")]
pub struct BenchArgs {
    #[command(subcommand)]
    pub load: Load,
    /// Store for the jobs: `sqlite` (a temporary file), `postgres` (a temporary private server),
    /// `sqlite:PATH`, or the URL of an empty PostgreSQL database.
    #[arg(long, global = true, default_value = "sqlite")]
    pub store: String,
    /// Do not delete the store after the benchmark, and print its address.
    #[arg(long, global = true)]
    pub keep: bool,
    /// Maximum number of attempts that run at the same time.
    #[arg(long, global = true, default_value_t = 4096)]
    pub workers: usize,
}

#[derive(Subcommand, Clone, Debug)]
pub enum Load {
    /// Fire jobs at a constant rate: of many registered jobs, `--rate` jobs are due each second.
    Steady {
        /// Number of registered jobs.
        #[arg(long, default_value_t = 100_000)]
        jobs: u64,
        /// Firings due per second.
        #[arg(long, default_value_t = 1000)]
        rate: u64,
        /// Duration of the measurement in seconds.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
    },
    /// Measure the highest firing rate, with more due jobs than the node can run, and compare it
    /// with the bare database (see `floor`).
    Max(MaxLoad),
    /// Measure how many firings per second the database itself commits on this machine, without a
    /// scheduler: once as a bare loop, once with the same promises as Evenkeel.
    Floor {
        /// Number of jobs that become due repeatedly.
        #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
        jobs: u64,
        /// Duration of each of the two loops in seconds.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
    },
    /// Fire many jobs that are due at the same instant.
    Burst {
        /// Number of jobs.
        #[arg(long, default_value_t = 100_000)]
        jobs: u64,
    },
    /// Trigger a job over HTTP, again and again, and measure the time from each request to the
    /// start of the run.
    Latency {
        /// Number of triggers.
        #[arg(long, default_value_t = 1000)]
        count: u64,
    },
    /// Measure the real executors: HTTP calls, shell programs, and a crawl of a local site.
    Executors(ExecutorsLoad),
    /// Measure the HTTP API over keep-alive connections: get, list, create and bulk create. Also
    /// measure the time that the scheduler takes to find due jobs.
    Api(ApiLoad),
    /// Compare how evenly each placement policy spreads the runs of several mixes of jobs over
    /// time, and measure how long choosing one start time takes.
    Balance {
        /// Numbers of jobs in each mix; each number is a separate measurement.
        #[arg(long, value_delimiter = ',', default_values_t = [100, 10_000, 1_000_000])]
        jobs: Vec<u64>,
    },
    /// Move jobs to other start times while other jobs fire. Measure the time to read the load, to
    /// plan and to move the jobs, and how late the other jobs fire meanwhile.
    Rebalance(RebalanceLoad),
    /// Start `evenkeel serve` on a store with many jobs. Measure the time until the server fires, and
    /// the memory of the server while it fires.
    Restart(RestartLoad),
    /// Start `evenkeel serve` on a store with many jobs and runs. Measure how fast each page of the
    /// dashboard is, and how much CPU time viewers with live updates cost the server.
    Dashboard(DashboardLoad),
    /// Measure how fast attempts with random priorities are claimed from a queue and finished, at a
    /// given queue depth.
    Queue(QueueLoad),
    /// Run the second node of `max --split`.
    #[command(hide = true)]
    Worker {
        /// File in which this node records executed runs.
        #[arg(long)]
        ledger: PathBuf,
    },
}

#[derive(Args, Clone, Debug)]
pub struct MaxLoad {
    /// Number of jobs that become due repeatedly.
    #[arg(long, default_value_t = 100_000)]
    pub jobs: u64,
    /// Number of additional jobs that are not due during the measurement.
    #[arg(long, default_value_t = 0)]
    pub idle: u64,
    /// Duration of the measurement in seconds.
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,
    /// Use two nodes: this process schedules, a second process runs the attempts (PostgreSQL only).
    #[arg(long)]
    pub split: bool,
    /// Number of rounds. Each round measures both floors and then `max`, on a new store; the shares
    /// are medians over all rounds. More than one round needs a temporary store.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub rounds: u64,
    /// Do not measure the floors.
    #[arg(long)]
    pub no_floor: bool,
}

#[derive(Args, Clone, Debug)]
pub struct ExecutorsLoad {
    /// HTTP calls due per second.
    #[arg(long, default_value_t = 5000)]
    pub rate: u64,
    /// Duration of the HTTP measurement in seconds; 0 skips it.
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,
    /// Number of runs of /bin/true; 0 skips the shell measurement.
    #[arg(long, default_value_t = 3000)]
    pub programs: u64,
    /// Number of pages of the local site; 0 skips the crawl.
    #[arg(long, default_value_t = 2000)]
    pub pages: usize,
}

#[derive(Args, Clone, Debug)]
pub struct ApiLoad {
    /// Number of registered jobs.
    #[arg(long, default_value_t = 1_000_000)]
    pub jobs: u64,
    /// Number of additional jobs that are due soon.
    #[arg(long, default_value_t = 10_000)]
    pub due: u64,
    /// Number of connections.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Duration of the measurement of each kind of request, in seconds.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
}

#[derive(Args, Clone, Debug)]
pub struct RebalanceLoad {
    /// Number of daily and hourly jobs whose start times are unevenly spread.
    #[arg(long, default_value_t = 1_000_000)]
    pub jobs: u64,
    /// Number of additional jobs that fire every second during the rebalance.
    #[arg(long, default_value_t = 1000)]
    pub firing: u64,
}

#[derive(Args, Clone, Debug)]
pub struct RestartLoad {
    /// Number of registered jobs.
    #[arg(long, default_value_t = 1_000_000)]
    pub jobs: u64,
    /// Firings due per second.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: u64,
    /// Duration of the measurement in seconds.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
}

#[derive(Args, Copy, Clone, Debug)]
pub struct DashboardLoad {
    /// Number of registered jobs.
    #[arg(long, default_value_t = 1_000_000)]
    pub jobs: u64,
    /// Number of past runs in the history.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// Runs that end per second during the measurement.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: u64,
    /// Number of requests for each page.
    #[arg(long, default_value_t = 50)]
    pub requests: usize,
    /// Number of viewers with live updates.
    #[arg(long, default_value_t = 500)]
    pub viewers: usize,
    /// Duration of the measurement with viewers, in seconds.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
}

#[derive(Args, Clone, Debug)]
pub struct QueueLoad {
    /// Number of registered jobs. Use the same number of jobs when you compare queue depths.
    #[arg(long, default_value_t = 1_000_000)]
    pub jobs: u64,
    /// Number of queued attempts at the start.
    #[arg(long, default_value_t = 100_000)]
    pub pending: u64,
    /// Number of tasks that claim concurrently.
    #[arg(long, default_value_t = 4)]
    pub tasks: usize,
    /// Maximum duration in seconds. The measurement ends earlier if no jobs are left to fill the
    /// queue again.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Give each attempt one of 1,000 concurrency keys, each with a limit of 10.
    #[arg(long)]
    pub limits: bool,
    /// Queue runs of one-time jobs with deduplication keys, instead of recurring jobs.
    #[arg(long)]
    pub dedup: bool,
    /// Only claim attempts, and never finish them.
    #[arg(long, conflicts_with = "limits")]
    pub unfinished: bool,
}
