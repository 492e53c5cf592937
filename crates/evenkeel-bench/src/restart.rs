//! Starts a server on a store with many registered jobs. Measures the time until the server fires
//! and its memory.

use std::time::Duration;

use anyhow::Context;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::{AttemptFilter, PageRequest};
use serde::Serialize;

use crate::args::RestartLoad;
use crate::machine;
use crate::report::{Quantiles, Rows};
use crate::run::Bench;
use crate::serve_process::ServeProcess;
use crate::workload::share;

/// The longest lateness that Evenkeel promises.
const LATE: Span = Span::from_secs(1);
/// Time after the start of the server whose firings do not count for the steady lateness.
const STARTING: Span = Span::from_secs(5);
/// Attempts per page of the history.
const PAGE: u32 = 1000;

#[derive(Clone, Debug, Default, Serialize)]
pub struct RestartReport {
    pub load: &'static str,
    pub store: String,
    pub jobs: u64,
    /// Firings due per second.
    pub rate: u64,
    /// Time to register the jobs.
    pub fill_s: f64,
    /// Time from the start of the server process until its first run starts.
    pub first_start_s: f64,
    /// Time from the start of the server process until all runs start in time, with at most 1 s of
    /// lateness.
    pub in_time_after_s: f64,
    /// Actual start of a run minus its scheduled time, for times later than 5 s after the start.
    pub lateness_ms: Option<Quantiles>,
    pub firings: u64,
    /// Memory of the server process at the end of the measurement, without mapped files.
    pub memory_mb: f64,
    /// Memory of the server process, including the part of the program file that is in memory.
    pub rss_mb: f64,
    /// Highest memory of the server process.
    pub peak_rss_mb: f64,
    /// Address of the store if `--keep` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

impl RestartReport {
    pub fn table(&self) -> String {
        let mut rows = Rows::new();
        rows.add("store", &self.store);
        rows.add("jobs registered", format!("{} in {:.1} s", self.jobs, self.fill_s));
        rows.add("firings due per second", self.rate);
        rows.add("first run started after", format!("{:.2} s", self.first_start_s));
        rows.add("all runs in time after", format!("{:.2} s", self.in_time_after_s));
        rows.add("firings", self.firings);
        if let Some(lateness) = self.lateness_ms {
            rows.add("lateness after 5 s", format!("{lateness:.2}"));
        }
        let Self { memory_mb, rss_mb, peak_rss_mb, .. } = self;
        let memory = format!(
            "{memory_mb:.0} MB; {rss_mb:.0} MB with mapped files; {peak_rss_mb:.0} MB at most"
        );
        rows.add("memory of the server", memory);
        rows.finish(self.kept.as_ref())
    }
}

pub(crate) async fn measure(bench: &Bench, load: &RestartLoad) -> anyhow::Result<RestartReport> {
    let RestartLoad { jobs, rate, seconds } = *load;
    let (busy, longest) = share(jobs, rate)?;
    let progress = bench.progress(jobs, "registering");
    let registrar = bench.registrar(&progress);
    let began = bench.monotonic();
    registrar.idle(jobs - busy, bench.now().await?).await?;
    let due_from = bench.start_time(busy).await?;
    let overlap = OverlapPolicy::default();
    registrar.busy(busy, longest, due_from, overlap, std::convert::identity).await?;
    progress.finish_and_clear();
    let fill_s = (bench.monotonic() - began).as_secs_f64();
    tokio::time::sleep(Duration::from(due_from.since(bench.now().await?))).await;

    let started_at = bench.now().await?;
    let mut server = ServeProcess::start(&bench.target.address)?;
    let progress = bench.progress(seconds, "measuring");
    for _ in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.check()?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    let memory = |name| machine::status_mb(server.pid, name);
    let report = RestartReport {
        memory_mb: memory("RssAnon:"),
        rss_mb: memory("VmRSS:"),
        peak_rss_mb: memory("VmHWM:"),
        ..RestartReport::default()
    };
    server.stop().await?;
    let starts = read_starts(bench).await?;
    let first = starts.iter().map(|(_, started)| *started).min();
    let late = starts.iter().filter(|(scheduled, started)| started.since(*scheduled) > LATE);
    let steady_from = started_at.saturating_add(STARTING);
    let steady = starts.iter().filter(|(scheduled, _)| *scheduled >= steady_from);
    let since_start = |time: Timestamp| time.since(started_at).as_micros() as f64 / 1e6;
    Ok(RestartReport {
        load: "restart",
        store: bench.target.kind.into(),
        jobs,
        rate,
        fill_s,
        first_start_s: since_start(first.context("the server fired no job")?),
        in_time_after_s: late.map(|(_, started)| since_start(*started)).fold(0.0, f64::max),
        lateness_ms: Quantiles::of_micros(
            steady.map(|(scheduled, started)| started.since(*scheduled).as_micros()),
        ),
        firings: starts.len() as u64,
        ..report
    })
}

/// Returns the scheduled time and the start of each run in the history.
async fn read_starts(bench: &Bench) -> anyhow::Result<Vec<(Timestamp, Timestamp)>> {
    let mut starts = Vec::new();
    let mut request = PageRequest::first(PAGE);
    loop {
        let filter = AttemptFilter::default();
        let page = bench.target.store.list_attempts(&bench.scope, filter, request).await?;
        starts.extend(
            page.items
                .iter()
                .filter_map(|attempt| Some((attempt.key.scheduled_at, attempt.started_at?))),
        );
        match page.next {
            Some(next) => request.after = Some(next),
            None => return Ok(starts),
        }
    }
}
