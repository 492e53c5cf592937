//! What can be measured.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Measure what Evenkeel does on this machine: the same engine, defaults and durability as
/// `serve`, with bodies that do nothing, or with the real ones.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  evenkeel bench max --jobs 100000 --seconds 20
  evenkeel bench steady --jobs 1000000 --rate 10000 --seconds 60 --store postgres
  evenkeel bench burst --jobs 100000 --json
  evenkeel bench latency --store postgres://user@host/database
  evenkeel bench executors --store postgres
  evenkeel bench api --jobs 1000000 --seconds 10 --store postgres
  evenkeel bench balance --jobs 100,10000
  evenkeel bench rebalance --jobs 1000000 --firing 1000 --store postgres")]
pub struct BenchArgs {
    /// The load.
    #[command(subcommand)]
    pub load: Load,
    /// `sqlite` (a temporary file), `postgres` (a temporary private server), `sqlite:PATH`, or the
    /// URL of an empty PostgreSQL database.
    #[arg(long, global = true, default_value = "sqlite")]
    pub store: String,
    /// Leave the store behind, and say where it is.
    #[arg(long, global = true)]
    pub keep: bool,
    /// Bodies that may run at once.
    #[arg(long, global = true, default_value_t = 4096)]
    pub workers: usize,
}

/// A load.
#[derive(Subcommand, Clone, Debug)]
pub enum Load {
    /// Many jobs registered, some of them due each second.
    Steady {
        /// Registered jobs.
        #[arg(long, default_value_t = 100_000)]
        jobs: u64,
        /// Firings due per second.
        #[arg(long, default_value_t = 1000)]
        rate: u64,
        /// For this long.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
    },
    /// As fast as it goes: more is due than can be done.
    Max {
        /// Jobs that are due again and again.
        #[arg(long, default_value_t = 100_000)]
        jobs: u64,
        /// Jobs that are registered besides and not due.
        #[arg(long, default_value_t = 0)]
        idle: u64,
        /// For this long.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
        /// Two nodes: this process schedules, another one works (PostgreSQL only).
        #[arg(long)]
        split: bool,
    },
    /// All due in the same instant.
    Burst {
        /// How many.
        #[arg(long, default_value_t = 100_000)]
        jobs: u64,
    },
    /// Trigger a job over HTTP and wait until its body starts, one after another.
    Latency {
        /// How many times.
        #[arg(long, default_value_t = 1000)]
        count: u64,
    },
    /// The real executors: calls received, programs run, pages of a local site crawled.
    Executors {
        /// HTTP calls due per second.
        #[arg(long, default_value_t = 5000)]
        rate: u64,
        /// For this long; 0 leaves them out.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
        /// Runs of /bin/true; 0 leaves them out.
        #[arg(long, default_value_t = 3000)]
        programs: u64,
        /// Pages of the site; 0 leaves it out.
        #[arg(long, default_value_t = 2000)]
        pages: usize,
    },
    /// The HTTP interface over keep-alive connections: get, list, create one by one and in bulk; and
    /// how long it takes to find what is due.
    Api {
        /// Registered jobs.
        #[arg(long, default_value_t = 1_000_000)]
        jobs: u64,
        /// Jobs of the near future, besides.
        #[arg(long, default_value_t = 10_000)]
        due: u64,
        /// Connections.
        #[arg(long, default_value_t = 16)]
        connections: usize,
        /// Each kind of request for this long.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// How evenly jobs are spread by each way to choose a first time, on several mixes of jobs; and
    /// how long one placement takes.
    Balance {
        /// Sizes of each mix.
        #[arg(long, value_delimiter = ',', default_values_t = [100, 10_000, 1_000_000])]
        jobs: Vec<u64>,
    },
    /// A rebalance of jobs in a store while others fire: reading the load at start, planning, moving,
    /// and how late firings are meanwhile.
    Rebalance {
        /// Daily and hourly jobs, unevenly placed.
        #[arg(long, default_value_t = 1_000_000)]
        jobs: u64,
        /// Jobs besides that fire every second all the while.
        #[arg(long, default_value_t = 1000)]
        firing: u64,
    },
    /// How fast attempts are claimed and finished from a queue of random priorities, however deep it
    /// is.
    Queue {
        /// Registered jobs: the same number for depths that are to be compared.
        #[arg(long, default_value_t = 1_000_000)]
        jobs: u64,
        /// Attempts that wait at the beginning.
        #[arg(long, default_value_t = 100_000)]
        pending: u64,
        /// Tasks that claim side by side.
        #[arg(long, default_value_t = 4)]
        tasks: usize,
        /// For this long, unless nothing is left before.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Each attempt has one of a thousand concurrency keys, of which ten run at once.
        #[arg(long)]
        limits: bool,
        /// The jobs run once and have keys, so that none of them is there twice.
        #[arg(long)]
        dedup: bool,
        /// Only claim: what was claimed is not finished, and goes on.
        #[arg(long, conflicts_with = "limits")]
        unfinished: bool,
    },
    /// The second node of `max --split`.
    #[command(hide = true)]
    Worker {
        /// Where to write what was executed.
        #[arg(long)]
        ledger: PathBuf,
    },
}
