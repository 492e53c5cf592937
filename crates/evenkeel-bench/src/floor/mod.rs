//! The benchmark `floor`: how many firings per second the database itself commits on this machine,
//! without a scheduler.
//!
//! Two loops are measured. The bare loop advances a job, inserts a run and finishes the run. The
//! loop with the same promises also does what Evenkeel needs for its guarantees: it locks the row
//! of the node, checks the fence, links each run to the previous run, and writes the history of the
//! job. `bench max` shows its speed as a share of both.

mod postgres;
mod report;
mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::run::Bench;
pub use report::{Floor, FloorReport, Share};

/// Number of firings per transaction, as in the engine.
const BATCH: usize = 1000;
/// Interval of every job, in microseconds.
const PERIOD: i64 = 60_000_000;
/// Time before the first scheduled time of all jobs, in microseconds since 1970.
const FIRST: i64 = 1_800_000_000_000_000;

/// How much of Evenkeel's work a loop does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Promises {
    /// The bare loop.
    Bare,
    /// The loop with the same promises as Evenkeel.
    Same,
}

/// Measures both loops on the database of `bench`, each for `length`.
pub(crate) async fn measure(
    bench: &mut Bench,
    jobs: u64,
    length: Duration,
) -> anyhow::Result<FloorReport> {
    let bare = measure_loop(bench, Promises::Bare, jobs, length).await?;
    let same_promises = measure_loop(bench, Promises::Same, jobs, length).await?;
    let address = &bench.target.address;
    if bench.target.kind == "postgres" {
        postgres::remove(address).await?;
    } else {
        sqlite::remove(address)?;
    }
    Ok(FloorReport {
        load: "floor",
        store: bench.target.kind,
        durability: bench.target.durability.clone(),
        jobs,
        bare,
        same_promises,
    })
}

async fn measure_loop(
    bench: &mut Bench,
    promises: Promises,
    jobs: u64,
    length: Duration,
) -> anyhow::Result<Floor> {
    let jobs =
        i64::try_from(jobs).ok().filter(|jobs| *jobs > 0).context("--jobs is too large or 0")?;
    let (address, clock) = (bench.target.address.clone(), Arc::clone(&bench.sources.clock));
    let is_postgres = bench.target.kind == "postgres";
    if is_postgres {
        postgres::fill(&address, promises, jobs).await?;
    } else {
        let address = address.clone();
        tokio::task::spawn_blocking(move || sqlite::fill(&address, promises, jobs)).await??;
    }
    bench.target.begin().await?;
    let began = clock.monotonic();
    let until = began + length;
    let firings = if is_postgres {
        postgres::run(&address, promises, jobs, &clock, until).await?
    } else {
        let clock = Arc::clone(&clock);
        let run = move || sqlite::run(&address, promises, jobs, &*clock, until);
        tokio::task::spawn_blocking(run).await??
    };
    let seconds = (clock.monotonic() - began).as_secs_f64();
    Ok(Floor {
        firings,
        firings_per_s: firings as f64 / seconds,
        cpu_us_per_firing: bench.target.cpu_seconds() * 1e6 / firings.max(1) as f64,
        bytes_per_firing: bench.target.bytes_written().await? as f64 / firings.max(1) as f64,
        disturbance: bench.target.disturbance(0.0, seconds),
    })
}

/// One firing of a loop.
#[derive(Copy, Clone, Debug)]
struct Firing {
    job: i64,
    scheduled_at: i64,
}

/// Returns the scheduled time of the job's previous run, or 0 before its first run.
fn previous(firing: &Firing) -> i64 {
    let is_first = firing.scheduled_at == FIRST + phase(firing.job);
    if is_first { 0 } else { firing.scheduled_at - PERIOD }
}

/// Returns the offset of a job within its interval. Jobs that are due together are not neighbours
/// in the table, as in real installations.
fn phase(job: i64) -> i64 {
    let mixed = job.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 32)) % PERIOD.cast_unsigned()).cast_signed()
}

/// Jobs in the order in which they become due, again and again.
#[derive(Debug)]
struct DueOrder {
    /// The phase and the number of each job.
    jobs: Vec<(i64, i64)>,
    position: usize,
    round: i64,
}

impl DueOrder {
    /// Returns the jobs from 1 to `jobs` whose number divided by `parts` leaves the rest `part`.
    fn new(jobs: i64, part: i64, parts: i64) -> Self {
        let mine = (1..=jobs).filter(|job| job % parts == part);
        let mut jobs: Vec<(i64, i64)> = mine.map(|job| (phase(job), job)).collect();
        jobs.sort_unstable();
        Self { jobs, position: 0, round: 0 }
    }

    /// Returns the next firings, ordered by job number, as the engine sends them to the store. A
    /// job occurs at most once in a batch.
    fn next_batch(&mut self) -> Vec<Firing> {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH.min(self.jobs.len()) {
            let (phase, job) = self.jobs[self.position];
            batch.push(Firing { job, scheduled_at: FIRST + phase + self.round * PERIOD });
            self.position += 1;
            if self.position == self.jobs.len() {
                (self.position, self.round) = (0, self.round + 1);
            }
        }
        batch.sort_unstable_by_key(|firing| firing.job);
        batch
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::args::{BenchArgs, Load};

    #[tokio::test]
    async fn both_loops_commit_firings_on_sqlite_and_leave_no_file() {
        let load = Load::Floor { jobs: 2500, seconds: 1 };
        let args = BenchArgs { load, store: "sqlite".into(), keep: false, workers: 1 };
        let mut bench = Bench::open(&args, true).await.unwrap();
        let report = measure(&mut bench, 2500, Duration::from_millis(20)).await.unwrap();
        for floor in [&report.bare, &report.same_promises] {
            assert!(floor.firings >= 1000, "{floor:?}");
        }
        let file = bench.target.address.trim_start_matches("sqlite:");
        assert!(!std::fs::exists(format!("{file}-floor")).unwrap());
    }

    #[test]
    fn batches_fire_each_job_once_per_interval() {
        let mut order = DueOrder::new(2500, 1, 2);
        let batches: Vec<Vec<Firing>> = (0..5).map(|_| order.next_batch()).collect();
        let all: Vec<(i64, i64)> =
            batches.iter().flatten().map(|firing| (firing.job, firing.scheduled_at)).collect();
        assert_eq!(all.iter().copied().collect::<BTreeSet<_>>().len(), all.len());
        for batch in &batches {
            assert!(batch.is_sorted_by(|a, b| a.job < b.job));
        }
        for firing in batches.iter().flatten().filter(|firing| previous(firing) > 0) {
            assert!(all.contains(&(firing.job, previous(firing))));
        }
    }
}
