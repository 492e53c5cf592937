//! Measures the HTTP API (get, list, create and bulk create) and the scheduler's search for due
//! jobs, with many jobs in the store.

mod fill;
mod report;
mod request;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{Shard, Slot, Span};
use evenkeel_store::Roles;
use serde_json::{Value, json};

use crate::args::ApiLoad;
use crate::machine;
use crate::report::Quantiles;
use crate::run::Bench;
use crate::server::Server;
use report::PollFigures;
use request::{Connections, Request};

pub use report::ApiReport;

const BULK_LINES: u64 = 10_000;
/// Bulk requests use two connections, because the server can read one bulk request while it writes
/// another to the store.
const BULK_CONNECTIONS: usize = 2;
const POLLS: usize = 20;
/// The scheduler's page size.
const POLL_PAGE: u32 = 10_000;

pub(crate) async fn measure(bench: &mut Bench, load: &ApiLoad) -> anyhow::Result<ApiReport> {
    anyhow::ensure!(load.jobs > 0, "--jobs must be at least 1");
    anyhow::ensure!(load.connections > 0, "--connections must be at least 1");
    let progress = bench.progress(load.jobs + load.due, "registering");
    let now = bench.now().await?;
    // The soonest jobs are due two time slots from now, so that no job is due before the
    // measurement ends.
    let due_slot = Slot::of(now).next().next();
    let began = bench.monotonic();
    let ids = fill::register(bench, load, due_slot, now, &progress).await?;
    let fill_s = (bench.monotonic() - began).as_secs_f64();
    progress.finish_and_clear();

    let poll = poll(bench, due_slot).await?;
    bench.target.begin().await?;
    let (executor, _) = bench.ledger(None)?;
    let engine = bench.start(&executor, Roles::ALL).await?;
    let server = Server::start(&bench.target.store, &bench.sources).await?;
    let measured = requests(bench, load, &server, &ids).await;
    let rss_mb = machine::rss_mb();
    drop(server);
    engine.drain(Duration::from_secs(10)).await;
    Ok(ApiReport {
        load: "api",
        store: bench.target.kind.into(),
        durability: bench.target.durability.clone(),
        jobs: load.jobs + load.due,
        connections: load.connections,
        fill_s,
        poll,
        rss_mb,
        cpu_s: bench.target.cpu_seconds(),
        ..measured?
    })
}

/// Measures all kinds of requests, one kind after another.
async fn requests(
    bench: &Bench,
    load: &ApiLoad,
    server: &Server,
    ids: &[String],
) -> anyhow::Result<ApiReport> {
    let time = Duration::from_secs(load.seconds);
    let clock = &bench.sources.clock;
    let many = Connections::open(server, load.connections, Arc::clone(clock))?;
    let progress = bench.progress(5, "requesting");
    let ids: Arc<[String]> = ids.into();
    let cpu = || bench.target.cpu_seconds();
    let get = many
        .send_for(time, cpu, move |connection, n| {
            // Consecutive requests use ids that are far apart, so that their jobs are on different
            // database pages.
            let at = (n as usize * 7919 + connection * 104_729) % ids.len();
            Request::get(format!("/api/v1/jobs/{}", ids[at]))
        })
        .await?;
    progress.inc(1);
    let first_page =
        many.send_for(time, cpu, |_, _| Request::get("/api/v1/jobs?limit=50".into())).await?;
    progress.inc(1);
    let (depth, cursors) = many.page_past(load.jobs / 2).await?;
    let cursors: Arc<[String]> = cursors.into();
    let deep_page = if cursors.is_empty() {
        None
    } else {
        let request = move |connection: usize, n: u64| {
            let cursor = &cursors[(n as usize + connection * 31) % cursors.len()];
            Request::get(format!("/api/v1/jobs?limit=50&cursor={cursor}"))
        };
        Some(many.send_for(time, cpu, request).await?)
    };
    progress.inc(1);
    let create = many
        .send_for(time, cpu, |connection, n| {
            let document = job(&format!("single-{connection}-{n}"));
            Request::post("/api/v1/jobs", "application/json", document.to_string())
        })
        .await?;
    progress.inc(1);
    let few = Connections::open(server, BULK_CONNECTIONS, Arc::clone(clock))?;
    let bulk = if few.has_bulk(&job("bulk-first")).await? {
        Some(few.send_for(time, cpu, |connection, n| Request::bulk(lines(connection, n))).await?)
    } else {
        None
    };
    progress.finish_and_clear();
    let default = ApiReport::default();
    Ok(ApiReport { get, first_page, deep_page, depth, create, bulk, ..default })
}

/// A typical job document: a name, an interval and an executor.
fn job(name: &str) -> Value {
    json!({
        "name": name, "source_id": "bench", "url": "https://example.com/",
        "interval_minutes": 1, "interval_type": "days", "executor_type": "noop",
    })
}

/// Returns the body of a bulk request. Serializes one job and copies its text with other names, so
/// that generating bulk requests takes little CPU time from the server.
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

/// Measures how long a starting scheduler takes to read the jobs that are due up to the time slot
/// `until`.
async fn poll(bench: &Bench, until: Slot) -> anyhow::Result<PollFigures> {
    let mut micros = Vec::with_capacity(POLLS);
    let mut found = 0;
    for _ in 0..POLLS {
        let began = bench.monotonic();
        found = 0;
        for shard in Shard::all() {
            let mut after = None;
            loop {
                let jobs = bench.target.store.load_due(shard, until, after, POLL_PAGE).await?;
                found += jobs.len() as u64;
                after = jobs.last().map(|job| job.no);
                if jobs.len() < POLL_PAGE as usize {
                    break;
                }
            }
        }
        micros.push(Span::from(bench.monotonic() - began).as_micros());
    }
    Ok(PollFigures { jobs: found, took_ms: Quantiles::of_micros(micros).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{BenchArgs, Load};

    #[tokio::test(flavor = "multi_thread")]
    async fn each_kind_of_request_is_measured() {
        let load = ApiLoad { jobs: 300, due: 50, connections: 2, seconds: 0 };
        let args = BenchArgs {
            load: Load::Api(load.clone()),
            store: "sqlite".into(),
            keep: false,
            workers: 8,
        };
        let mut bench = Bench::open(&args, true).await.unwrap();
        let report = measure(&mut bench, &load).await.unwrap();
        for figures in [report.get, report.first_page, report.deep_page.unwrap(), report.create] {
            assert_eq!((figures.requests, figures.done), (2, 2));
        }
        if let Some(bulk) = report.bulk {
            assert_eq!((bulk.requests, bulk.done), (2, 2 * BULK_LINES));
        }
        assert_eq!((report.jobs, report.depth, report.poll.jobs), (350, 150, 50));
        assert!(report.table().contains("find 50 due jobs"));
    }
}
