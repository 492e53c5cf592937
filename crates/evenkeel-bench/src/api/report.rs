//! What was measured of the HTTP interface.

use comfy_table::Table;
use serde::Serialize;

use super::load::Answers;
use crate::report::Quantiles;

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ApiReport {
    /// Which load.
    pub load: &'static str,
    /// Which database.
    pub store: String,
    /// The settings in force that decide what survives a crash.
    pub durability: String,
    /// Jobs in the store before anything was asked.
    pub jobs: u64,
    /// Connections at once.
    pub connections: usize,
    /// How long it took to register them.
    pub fill_s: f64,
    /// One job, by its id.
    pub get: Figures,
    /// The first 50 jobs.
    pub first_page: Figures,
    /// 50 jobs from the depth of the list.
    pub deep_page: Option<Figures>,
    /// How many jobs stand before them.
    pub depth: u64,
    /// Jobs made one by one.
    pub create: Figures,
    /// Jobs made by the thousands, if the server can.
    pub bulk: Option<Figures>,
    /// The near future.
    pub poll: PollFigures,
    /// Memory of this process.
    pub rss_mb: f64,
    /// CPU time of this process, the clients included, and of a private database server.
    pub cpu_s: f64,
    /// Where the store was left, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// One kind of request.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// How many were answered.
    pub requests: u64,
    /// How many things were done by them.
    pub done: u64,
    /// Things per second.
    pub per_s: f64,
    /// From a question to the whole of its answer, as its client sees it.
    pub latency_ms: Quantiles,
    /// CPU time for each thing, of this process (clients and all) and of a private database server.
    /// It says more than the rest when the machine has other work to do.
    pub cpu_us: f64,
}

/// How long it takes to find the jobs of the near future.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct PollFigures {
    /// How many there are.
    pub jobs: u64,
    /// For all of them.
    pub took_ms: Quantiles,
}

impl Figures {
    pub(super) fn of(answers: Answers) -> Self {
        Self {
            requests: answers.micros.len() as u64,
            done: answers.done,
            per_s: answers.done as f64 / answers.seconds.max(f64::MIN_POSITIVE),
            latency_ms: Quantiles::of_micros(answers.micros).unwrap_or_default(),
            cpu_us: answers.cpu_s * 1_000_000.0 / answers.done.max(1) as f64,
        }
    }

    fn words(&self) -> String {
        let Quantiles { p50, p99, max } = self.latency_ms;
        let Self { per_s, cpu_us, .. } = self;
        format!(
            "{per_s:.0}/s, p50 {p50:.2} ms, p99 {p99:.2} ms, max {max:.2} ms, {cpu_us:.0} µs of CPU each"
        )
    }
}

impl ApiReport {
    /// A table for people.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        let mut row = |name: String, value: String| {
            table.add_row([name, value]);
        };
        row("store".into(), format!("{} ({})", self.store, self.durability));
        row("jobs registered".into(), format!("{} in {:.1} s", self.jobs, self.fill_s));
        row("connections".into(), self.connections.to_string());
        row("get a job".into(), self.get.words());
        row("first page of 50".into(), self.first_page.words());
        if let Some(deep) = self.deep_page {
            row(format!("page of 50 after {}", self.depth), deep.words());
        }
        row("create one by one".into(), self.create.words());
        match self.bulk {
            Some(bulk) => row("create in bulk".into(), bulk.words()),
            None => row("create in bulk".into(), "this server has no such endpoint".into()),
        }
        let Quantiles { p50, p99, max } = self.poll.took_ms;
        row(
            format!("find {} due-able jobs", self.poll.jobs),
            format!("p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms"),
        );
        row("memory".into(), format!("{:.0} MB", self.rss_mb));
        row("CPU".into(), format!("{:.1} s", self.cpu_s));
        if let Some(kept) = &self.kept {
            row("store kept at".into(), kept.clone());
        }
        table.trim_fmt()
    }
}
