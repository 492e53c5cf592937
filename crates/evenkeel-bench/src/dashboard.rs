//! Measures the pages of the dashboard, and what viewers with live updates cost the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use evenkeel_core::Span;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_store::Roles;
use reqwest::{Client, Response, StatusCode, header};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::args::DashboardLoad;
use crate::machine::{self, Disturbance, MachineTime};
use crate::report::{Quantiles, Rows};
use crate::run::Bench;
use crate::serve_process::ServeProcess;
use crate::server::client_builder;
use crate::workload::share;

/// Pages of every dashboard. Pages of one job and one run are added.
const PAGES: [&str; 17] = [
    "/", "/jobs", "/jobs?q=bench", "/runs", "/timeline", "/balance", "/at-risk", "/failures",
    "/queue", "/dead-letters", "/pauses", "/nodes", "/audit", "/targets", "/pages", "/access",
    "/docs/api",
];
/// Past runs of each job with a history: the number that `serve` keeps.
const RUNS_OF_A_JOB: u64 = 99;
/// Interval of the jobs with a history, so that all their runs are younger than 30 days.
const PAST_INTERVAL: Span = Span::from_secs(6 * 3600);
/// The line of a message after which a page loads itself again.
const CHANGED: &[u8] = b"event: changed";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which the dashboard may answer from memory. Requests for the same page are further apart,
/// so that each of them reads the store.
const SHARED_FOR: Duration = Duration::from_millis(600);

/// Times of one page.
#[derive(Clone, Debug, Serialize)]
pub struct PageReport {
    pub path: String,
    pub first_byte_ms: Option<Quantiles>,
    pub complete_ms: Option<Quantiles>,
    pub kilobytes: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct DashboardReport {
    pub load: &'static str,
    pub store: String,
    pub jobs: u64,
    pub runs: u64,
    /// Runs that end per second during the measurement.
    pub rate: u64,
    pub pages: Vec<PageReport>,
    pub viewers: usize,
    /// Messages that all viewers received per second.
    pub messages_per_s: f64,
    /// Cores that the server uses without a viewer, and with all viewers.
    pub cores_without_viewers: f64,
    pub cores_with_viewers: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

impl DashboardReport {
    pub fn table(&self) -> String {
        let mut rows = Rows::new();
        rows.add("store", &self.store);
        rows.add("jobs, runs in history", format!("{}, {}", self.jobs, self.runs));
        rows.add("runs per second meanwhile", self.rate);
        for page in &self.pages {
            let shown =
                |times: Option<Quantiles>| times.map_or("–".into(), |it| format!("{it:.1}"));
            let (first, complete) = (shown(page.first_byte_ms), shown(page.complete_ms));
            let times =
                format!("first byte {first}; complete {complete}; {:.0} kB", page.kilobytes);
            rows.add(&page.path, times);
        }
        rows.add("viewers", self.viewers);
        rows.add("messages to viewers per second", format!("{:.0}", self.messages_per_s));
        let Self { cores_without_viewers, cores_with_viewers, .. } = self;
        let cores =
            format!("{cores_without_viewers:.2} without, {cores_with_viewers:.2} with viewers");
        rows.add("cores of the server", cores);
        if let Some(disturbance) = self.disturbance {
            rows.add("disturbance", disturbance);
        }
        rows.finish(self.kept.as_ref())
    }
}

pub(crate) async fn measure(
    bench: &Bench,
    load: &DashboardLoad,
) -> anyhow::Result<DashboardReport> {
    let DashboardLoad { jobs, runs, rate, requests, viewers, seconds } = *load;
    let past = runs.div_ceil(RUNS_OF_A_JOB);
    let (busy, longest) = share(jobs.saturating_sub(past), rate)
        .with_context(|| format!("--runs {runs} needs {past} of the {jobs} jobs"))?;
    fill_history(bench, past).await?;
    let progress = bench.progress(jobs - past, "registering");
    let registrar = bench.registrar(&progress);
    let now = bench.now().await?;
    registrar.idle(jobs - past - busy, now).await?;
    let overlap = OverlapPolicy::default();
    registrar.busy(busy, longest, bench.now().await?, overlap, std::convert::identity).await?;
    progress.finish_and_clear();

    let mut server = ServeProcess::start(&bench.target.address)?;
    let viewer = Viewer::sign_in(server.url().await?, &server.token().await?).await?;
    let mut paths: Vec<String> = PAGES.map(str::to_owned).to_vec();
    paths.extend(viewer.first_link("/jobs", "/jobs/").await?);
    paths.extend(viewer.first_link("/runs", "/runs/").await?);
    let mut pages: Vec<PageTimes> = paths.into_iter().map(PageTimes::new).collect();
    let progress = bench.progress(requests as u64, "pages");
    for _ in 0..requests {
        for page in &mut pages {
            viewer.measure_page(bench, page).await?;
        }
        tokio::time::sleep(SHARED_FOR).await;
        progress.inc(1);
    }
    let pages = pages.into_iter().map(PageTimes::report).collect();
    progress.finish_and_clear();

    let length = Duration::from_secs(seconds);
    let cores = async || {
        let (before, began) = (machine::cpu_seconds_of(server.pid), bench.monotonic());
        tokio::time::sleep(length).await;
        (machine::cpu_seconds_of(server.pid) - before) / (bench.monotonic() - began).as_secs_f64()
    };
    let cores_without_viewers = cores().await;
    let messages = Arc::new(AtomicU64::new(0));
    let mut streams = viewer.open_streams(viewers, &messages).await?;
    let (from, own) = (MachineTime::now(), machine::cpu_seconds());
    messages.store(0, Ordering::Relaxed);
    let cores_with_viewers = cores().await;
    let received = messages.load(Ordering::Relaxed);
    let measured_s = machine::cpu_seconds() - own + cores_with_viewers * length.as_secs_f64();
    let disturbance = Disturbance::since(from, measured_s, length.as_secs_f64());
    ensure!(streams.try_join_next().is_none(), "the server has closed the stream of a viewer");
    streams.shutdown().await;
    server.stop().await?;
    Ok(DashboardReport {
        load: "dashboard",
        store: bench.target.kind.into(),
        jobs,
        runs: bench.target.store.census().await?.runs,
        rate,
        pages,
        viewers,
        messages_per_s: received as f64 / length.as_secs_f64(),
        cores_without_viewers,
        cores_with_viewers,
        // The database is a process of its own on PostgreSQL, and counts as another program.
        disturbance: (bench.target.kind == "sqlite").then_some(disturbance),
        kept: None,
    })
}

/// Registers jobs whose first run was due 25 days ago, and runs the engine until all their past
/// times have fired.
async fn fill_history(bench: &Bench, jobs: u64) -> anyhow::Result<()> {
    let progress = bench.progress(jobs, "registering");
    let now = bench.now().await?;
    bench.registrar(&progress).past(jobs, PAST_INTERVAL, RUNS_OF_A_JOB, now).await?;
    progress.finish_and_clear();
    let (executor, _) = bench.ledger(None)?;
    let engine = bench.start(&executor, Roles::ALL).await?;
    let all = jobs * RUNS_OF_A_JOB;
    let progress = bench.progress(all, "history");
    while executor.count() < all {
        tokio::time::sleep(Duration::from_millis(100)).await;
        progress.set_position(executor.count());
    }
    engine.drain(Duration::from_secs(30)).await;
    progress.finish_and_clear();
    Ok(())
}

/// The times of all requests for one page.
struct PageTimes {
    path: String,
    first: Vec<u64>,
    complete: Vec<u64>,
    bytes: usize,
}

impl PageTimes {
    fn new(path: String) -> Self {
        Self { path, first: Vec::new(), complete: Vec::new(), bytes: 0 }
    }

    fn report(self) -> PageReport {
        PageReport {
            path: self.path,
            first_byte_ms: Quantiles::of_micros(self.first),
            complete_ms: Quantiles::of_micros(self.complete),
            kilobytes: self.bytes as f64 / 1000.0,
        }
    }
}

/// A signed-in user.
struct Viewer {
    client: Client,
    url: String,
    cookie: String,
}

impl Viewer {
    async fn sign_in(url: String, token: &str) -> anyhow::Result<Self> {
        let client = client_builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(REQUEST_TIMEOUT)
            .build()?;
        let content = (header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = client.post(format!("{url}/sign-in")).header(header::ORIGIN, &url);
        // A token contains no character that a form escapes.
        let request = request.header(content.0, content.1).body(format!("credential={token}"));
        let answer = request.send().await?;
        ensure!(answer.status() == StatusCode::SEE_OTHER, "sign-in answered {}", answer.status());
        let cookie = answer.headers().get(header::SET_COOKIE).context("sign-in set no cookie")?;
        let cookie = cookie.to_str()?.split(';').next().unwrap_or_default().to_owned();
        Ok(Self { client, url, cookie })
    }

    async fn get(&self, path: &str) -> anyhow::Result<Response> {
        let request = self.client.get(format!("{}{path}", self.url));
        let answer = request.header(header::COOKIE, &self.cookie).send();
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await??;
        ensure!(answer.status() == StatusCode::OK, "{path} answered {}", answer.status());
        Ok(answer)
    }

    /// Returns the first link of a page to a path with this beginning and a UUID.
    async fn first_link(&self, page: &str, beginning: &str) -> anyhow::Result<Option<String>> {
        let text = self.get(page).await?.text().await?;
        let links = text.split("href=\"").filter(|rest| rest.starts_with(beginning));
        let mut ids = links.filter_map(|rest| rest[beginning.len()..].split(['"', '?']).next());
        Ok(ids.find(|id| uuid::Uuid::try_parse(id).is_ok()).map(|id| format!("{beginning}{id}")))
    }

    async fn measure_page(&self, bench: &Bench, page: &mut PageTimes) -> anyhow::Result<()> {
        let began = bench.monotonic();
        let passed = || (bench.monotonic() - began).as_micros() as u64;
        let answer = self.get(&page.path).await?;
        page.first.push(passed());
        page.bytes = answer.bytes().await?.len();
        page.complete.push(passed());
        Ok(())
    }

    /// Opens the streams of live updates. Each viewer fetches its page again after a message, as a
    /// browser does.
    async fn open_streams(
        &self,
        count: usize,
        messages: &Arc<AtomicU64>,
    ) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let mut streams = JoinSet::new();
        for _ in 0..count {
            let mut stream = self.get("/ui/stream").await?;
            let viewer = Self {
                client: self.client.clone(),
                url: self.url.clone(),
                cookie: self.cookie.clone(),
            };
            let messages = Arc::clone(messages);
            streams.spawn(async move {
                while let Some(chunk) = stream.chunk().await? {
                    if chunk.windows(CHANGED.len()).any(|part| part == CHANGED) {
                        messages.fetch_add(1, Ordering::Relaxed);
                        viewer.get("/").await?.bytes().await?;
                    }
                }
                Ok(())
            });
        }
        Ok(streams)
    }
}
