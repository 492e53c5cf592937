//! Measures how many jobs per second the SQLite store alone can fire. The program fires jobs in
//! batches, as already claimed attempts, and finishes the attempts in batches.
//!
//! ```text
//! cargo run --release -p evenkeel-store-sqlite --example sqlite_throughput -- \
//!     [jobs=100000] [batch=1000] [seconds=10] [flows=4] [rate=0] [in_order=0]
//! ```
//!
//! `flows` is the number of loops that fire and finish jobs concurrently, like the loops of a
//! scheduler. `rate` limits how many jobs the program fires per second, to measure the delay of
//! each batch at that load. By default, each batch takes jobs from the whole range of job numbers,
//! so that a batch changes many database pages. With `in_order=1`, each batch takes jobs with
//! adjacent job numbers. The file is in `TMPDIR`.

#![expect(clippy::disallowed_methods, reason = "it measures time")]
#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::attempt::Outcome;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::lease::Fence;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{
    AttemptKey, Definition, JobId, JobNo, NodeNo, Sequence, Span, TenantNo, Timestamp,
};
use evenkeel_store::{
    Attachments, AttemptStore, Finish, FinishResult, Fire, FireResult, JobStore, NewJob, NewNode,
    NodeStore, Now, Registered, Results, Role, Roles, RunLink, ScheduleStore, Scope, Start, Store,
    Then,
};
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};

const PERIOD: Span = Span::from_secs(60);
const FIRST: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut number = |or| numbers.next().unwrap_or(Ok(or));
    let (jobs, batch, seconds) = (number(100_000)?, number(1_000)?, number(10)?);
    let (flows, rate, in_order) = (number(4)?.max(1), number(0)?, number(0)? == 1);
    let directory = tempfile::tempdir()?;
    let options = SqliteOptions::new(directory.path().join("throughput.sqlite"));
    let store = Arc::new(SqliteStore::open(options).await?);
    let tenant = store.tenant("bench").await?;
    let node = NewNode {
        name: "bench".into(),
        identity: uuid::Uuid::nil(),
        roles: Roles::ALL,
        pools: Vec::new(),
    };
    let node = store.join(&node, Now::At(FIRST)).await?.node;
    let numbers = register(&store, tenant, jobs).await?;
    println!("{jobs} jobs, batches of {batch}, {flows} flows, {}", store.durability());

    let order = if in_order { numbers } else { scattered(&numbers) };
    let begun = Instant::now();
    let tasks = order.chunks(order.len().div_ceil(flows as usize)).map(|part| {
        let flow = Flow {
            store: Arc::clone(&store),
            node,
            tenant,
            jobs: part.to_vec(),
            batch: batch as usize,
            begun,
            until: begun + Duration::from_secs(seconds),
            rate: rate / flows,
        };
        tokio::spawn(flow.run())
    });
    let (mut fired, mut delays) = (0, Vec::new());
    for task in tasks.collect::<Vec<_>>() {
        let (count, flow_delays) = task.await??;
        fired += count;
        delays.extend(flow_delays);
    }
    let took = begun.elapsed().as_secs_f64();
    delays.sort_unstable();
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
    println!("{:.0} firings/s, each fired and finished", fired as f64 / took);
    println!("answer to a fire: median {:?}, p99 {:?}, longest {:?}", at(0.5), at(0.99), at(1.0));
    let log = std::fs::metadata(directory.path().join("throughput.sqlite-wal"))?.len();
    println!("log {} MB", log >> 20);
    Ok(())
}

async fn register(store: &SqliteStore, tenant: TenantNo, jobs: u64) -> anyhow::Result<Vec<JobNo>> {
    let scope = Scope { tenant, role: Role::Admin };
    let definition = Definition::noop(Schedule::Interval(Interval::new(PERIOD, None)?));
    let mut numbers = Vec::with_capacity(jobs as usize);
    for first in (0..jobs).step_by(5_000) {
        let part = (first..jobs.min(first + 5_000)).map(|n| {
            let mut random = [0; 10];
            random[..8].copy_from_slice(&n.to_be_bytes());
            NewJob {
                id: JobId::new(FIRST, random),
                about: Default::default(),
                definition: definition.clone(),
                next_at: Some(FIRST),
            }
        });
        for registered in store.register(&scope, part.collect(), Now::At(FIRST)).await? {
            match registered {
                Registered::Created { no: number, .. } => numbers.push(number),
                Registered::NameTaken(_) | Registered::Duplicate(_) => {
                    anyhow::bail!("these jobs have neither names nor keys")
                }
            }
        }
    }
    Ok(numbers)
}

/// Returns the job numbers in a shuffled order, in which neighbours are far apart.
fn scattered(numbers: &[JobNo]) -> Vec<JobNo> {
    let mut order: Vec<JobNo> = numbers.to_vec();
    order.sort_by_key(|number| number.0.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()));
    order
}

/// One loop that fires and finishes a part of the jobs.
struct Flow {
    store: Arc<SqliteStore>,
    node: NodeNo,
    tenant: TenantNo,
    jobs: Vec<JobNo>,
    batch: usize,
    begun: Instant,
    until: Instant,
    rate: u64,
}

impl Flow {
    async fn run(self) -> anyhow::Result<(u64, Vec<Duration>)> {
        let (mut fired, mut delays) = (0_u64, Vec::new());
        for round in 0.. {
            for part in self.jobs.chunks(self.batch) {
                let mut due = Instant::now();
                if let Some(micros) = (fired * 1_000_000).checked_div(self.rate) {
                    due = self.begun + Duration::from_micros(micros);
                    tokio::time::sleep_until(due.into()).await;
                }
                if Instant::now() >= self.until {
                    return Ok((fired, delays));
                }
                self.fire(part, round).await?;
                delays.push(due.elapsed());
                self.finish(part, round).await?;
                fired += part.len() as u64;
            }
        }
        Ok((fired, delays))
    }

    async fn fire(&self, jobs: &[JobNo], round: i64) -> anyhow::Result<()> {
        let before = RunLink { scheduled_at: time(round - 1), sequence: Sequence::REGULAR };
        let fires = jobs.iter().map(|job| Fire {
            job: *job,
            tenant: self.tenant,
            generation: 1,
            due: time(round),
            head: (round > 0).then_some(before),
            skip: None,
            start: Some((time(round), Start::Claimed)),
            idle_only: true,
            next_at: Some(time(round + 1)),
        });
        let fired = self.store.fire(self.node, fires.collect(), Now::At(time(round))).await?;
        anyhow::ensure!(fired.results.iter().all(|it| *it == FireResult::Fired(Fence(1))));
        Ok(())
    }

    async fn finish(&self, jobs: &[JobNo], round: i64) -> anyhow::Result<()> {
        let finishes = jobs.iter().map(|job| Finish {
            key: AttemptKey::regular(*job, time(round)),
            fence: Fence(1),
            tenant: self.tenant,
            outcome: Outcome::Completed,
            started_at: time(round),
            finished_at: time(round).saturating_add(Span::from_millis(7)),
            results: Results::default(),
            then: Then::EndRun { stop_job: false, next_at: None },
            priority: None,
            attachments: Attachments::default(),
            judge: false,
            unstored_since: None,
            hook: evenkeel_store::Hook::None,
        });
        let ended = self.store.finish(self.node, finishes.collect(), DEFAULT_ALPHA).await?;
        anyhow::ensure!(ended.iter().all(|it| *it == FinishResult::Done));
        Ok(())
    }
}

/// Returns the scheduled time of a round, in which every job runs once.
fn time(round: i64) -> Timestamp {
    Timestamp::from_micros(FIRST.as_micros() + round * PERIOD.as_micros() as i64)
}
