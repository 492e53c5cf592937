//! What the HTTP interface does with many jobs in the store.

mod fill;
mod load;
mod pages;
mod report;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{Shard, Slot, Span};
use evenkeel_engine::Clock;
use evenkeel_executors::Executor;
use evenkeel_store::{Roles, Store};
use serde_json::{Value, json};

use crate::ledger::LedgerExecutor;
use crate::machine;
use crate::report::Quantiles;
use crate::run::Bench;
use crate::server::Server;
use load::Connections;
use report::{Figures, PollFigures};

pub use report::ApiReport;

/// How much of everything.
#[derive(Clone, Debug)]
pub(crate) struct Amounts {
    /// Jobs that are registered.
    pub jobs: u64,
    /// Jobs of the near future.
    pub due: u64,
    /// Connections.
    pub connections: usize,
    /// Each kind of request for this long.
    pub seconds: u64,
}

/// Jobs in one request of bulk creation.
const BULK_LINES: u64 = 10_000;
/// Requests of bulk creation at once: one is read while another is written.
const BULK_CONNECTIONS: usize = 2;
/// How often the near future is looked for.
const POLLS: usize = 20;
/// As many as the scheduler asks for at once.
const POLL_PAGE: u32 = 10_000;

/// Measures the HTTP interface.
pub(crate) async fn measure(bench: &mut Bench, amounts: &Amounts) -> anyhow::Result<ApiReport> {
    anyhow::ensure!(amounts.jobs > 0, "--jobs must be at least 1");
    anyhow::ensure!(amounts.connections > 0, "--connections must be at least 1");
    let progress = bench.progress(amounts.jobs + amounts.due, "registering");
    let now = bench.now().await?;
    // The slot after the next, so that they are not due before everything is measured.
    let soon = Slot::of(now).next().next();
    let began = bench.monotonic();
    let ids = fill::register(bench, amounts, soon, now, &progress).await?;
    let fill_s = (bench.monotonic() - began).as_secs_f64();
    progress.finish_and_clear();

    let clock = bench.clock();
    let (target, sources, _, folder, workers) = bench.parts();
    let store = Arc::clone(&target.store);
    let poll = poll(&store, soon, &*clock).await?;
    target.begin().await?;
    let executor = LedgerExecutor::create(&folder.join("ledger"), Arc::clone(&clock), None)?;
    let body: Arc<dyn Executor> = executor;
    let engine = sources.start(&store, body, Roles::ALL, workers).await?;
    let server = Server::start(&store, sources).await?;
    let measured = requests(bench, amounts, &server, &ids, clock).await;
    let rss_mb = machine::rss_mb();
    drop(server);
    engine.drain(Duration::from_secs(10)).await;
    let (target, ..) = bench.parts();
    Ok(ApiReport {
        load: "api",
        store: target.kind.into(),
        durability: target.durability.clone(),
        jobs: amounts.jobs + amounts.due,
        connections: amounts.connections,
        fill_s,
        poll,
        rss_mb,
        cpu_s: target.cpu_seconds(),
        ..measured?
    })
}

/// All kinds of requests, one after another.
async fn requests(
    bench: &Bench,
    amounts: &Amounts,
    server: &Server,
    ids: &[String],
    clock: Arc<dyn Clock>,
) -> anyhow::Result<ApiReport> {
    let time = Duration::from_secs(amounts.seconds);
    let many = Connections::open(server, amounts.connections, Arc::clone(&clock))?;
    let progress = bench.progress(5, "asking");
    let ids: Arc<[String]> = ids.into();
    let cpu = || bench.cpu_seconds();
    let get = many
        .ask(time, cpu, move |connection, n| {
            // Far from each other, so that no page of the store serves two in a row.
            let at = (n as usize * 7919 + connection * 104_729) % ids.len();
            load::Ask::get(format!("/api/v1/jobs/{}", ids[at]))
        })
        .await?;
    progress.inc(1);
    let first_page =
        many.ask(time, cpu, |_, _| load::Ask::get("/api/v1/jobs?limit=50".into())).await?;
    progress.inc(1);
    let (depth, cursors) = pages::walk(&many, amounts.jobs / 2).await?;
    let cursors: Arc<[String]> = cursors.into();
    let deep_page = if cursors.is_empty() {
        None
    } else {
        let ask = move |connection: usize, n: u64| {
            let cursor = &cursors[(n as usize + connection * 31) % cursors.len()];
            load::Ask::get(format!("/api/v1/jobs?limit=50&cursor={cursor}"))
        };
        Some(many.ask(time, cpu, ask).await?)
    };
    progress.inc(1);
    let create = many
        .ask(time, cpu, |connection, n| {
            let document = job(&format!("single-{connection}-{n}"));
            load::Ask::create("/api/v1/jobs", document.to_string())
        })
        .await?;
    progress.inc(1);
    let few = Connections::open(server, BULK_CONNECTIONS, clock)?;
    let bulk = if few.has_bulk(&job("bulk-first")).await? {
        Some(few.ask(time, cpu, |connection, n| load::Ask::bulk(lines(connection, n))).await?)
    } else {
        None
    };
    progress.finish_and_clear();
    Ok(ApiReport {
        get: Figures::of(get),
        first_page: Figures::of(first_page),
        deep_page: deep_page.map(Figures::of),
        depth,
        create: Figures::of(create),
        bulk: bulk.map(Figures::of),
        ..ApiReport::default()
    })
}

/// A job like those people make: with a name and a rhythm.
fn job(name: &str) -> Value {
    json!({
        "name": name, "source_id": "bench", "url": "https://example.com/",
        "interval_minutes": 1, "interval_type": "days", "executor_type": "noop",
    })
}

/// Only the names differ, so the rest is written once: the server is to be measured, not what makes
/// up its work on the same cores.
fn lines(connection: usize, request: u64) -> String {
    let like_all = format!("{}\n", job("#"));
    let Some((before, after)) = like_all.split_once('#') else { return String::new() };
    let mut lines = String::with_capacity((like_all.len() + 32) * BULK_LINES as usize);
    for n in 0..BULK_LINES {
        lines.push_str(before);
        lines.push_str(&format!("bulk-{connection}-{request}-{n}"));
        lines.push_str(after);
    }
    lines
}

/// How long it takes to find the jobs of the near future, as a scheduler that starts does it.
async fn poll(
    store: &Arc<dyn Store>,
    until: Slot,
    clock: &dyn Clock,
) -> anyhow::Result<PollFigures> {
    let mut micros = Vec::with_capacity(POLLS);
    let mut found = 0;
    for _ in 0..POLLS {
        let began = clock.monotonic();
        found = 0;
        for shard in Shard::all() {
            let mut after = None;
            loop {
                let jobs = store.load_due(shard, until, after, POLL_PAGE).await?;
                found += jobs.len() as u64;
                after = jobs.last().map(|job| job.no);
                if jobs.len() < POLL_PAGE as usize {
                    break;
                }
            }
        }
        micros.push(Span::from(clock.monotonic() - began).as_micros());
    }
    Ok(PollFigures { jobs: found, took_ms: Quantiles::of_micros(micros).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{BenchArgs, Load};

    async fn measured(store: &str) -> ApiReport {
        let load = Load::Api { jobs: 300, due: 50, connections: 2, seconds: 0 };
        let args = BenchArgs { load, store: store.into(), keep: false, workers: 8 };
        let mut bench = Bench::open(&args, true).await.unwrap();
        let amounts = Amounts { jobs: 300, due: 50, connections: 2, seconds: 0 };
        measure(&mut bench, &amounts).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn each_kind_of_request_is_measured() {
        let report = measured("sqlite").await;
        for figures in [report.get, report.first_page, report.deep_page.unwrap(), report.create] {
            assert_eq!((figures.requests, figures.done), (2, 2));
        }
        if let Some(bulk) = report.bulk {
            assert_eq!((bulk.requests, bulk.done), (2, 2 * BULK_LINES));
        }
        assert_eq!((report.jobs, report.depth, report.poll.jobs), (350, 150, 50));
        assert!(report.table().contains("find 50 due-able jobs"));
    }
}
