//! Results of the API benchmark.

use serde::Serialize;

use crate::report::{Quantiles, Rows};

#[derive(Clone, Debug, Default, Serialize)]
pub struct ApiReport {
    pub load: &'static str,
    pub store: String,
    /// The database settings that decide which commits survive a crash.
    pub durability: String,
    /// Number of jobs in the store before the first request.
    pub jobs: u64,
    pub connections: usize,
    /// Time to register `jobs`.
    pub fill_s: f64,
    pub get: Figures,
    /// Results of requests for the first page of 50 jobs.
    pub first_page: Figures,
    /// Results of requests for a page of 50 jobs that comes after `depth` other jobs of the list.
    pub deep_page: Option<Figures>,
    pub depth: u64,
    /// One job per request.
    pub create: Figures,
    /// Results of bulk requests; `None` if the server does not support bulk requests.
    pub bulk: Option<Figures>,
    pub poll: PollFigures,
    pub rss_mb: f64,
    /// CPU seconds used by this process, HTTP clients included, and by a private PostgreSQL server.
    pub cpu_s: f64,
    /// Address of the store if `--keep` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// Measured results of one kind of request.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub requests: u64,
    /// Number of operations. A bulk request has one operation per line.
    pub done: u64,
    /// Operations per second.
    pub per_s: f64,
    /// Time from sending a request to receiving its whole response.
    pub latency_ms: Quantiles,
    /// CPU time per operation, used by this process, HTTP clients included, and by a private
    /// PostgreSQL server. On a busy machine, CPU time varies less than operations per second.
    pub cpu_us: f64,
}

/// Time to read the jobs that are due soon.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct PollFigures {
    pub jobs: u64,
    pub took_ms: Quantiles,
}

impl Figures {
    fn text(&self) -> String {
        let Self { per_s, cpu_us, latency_ms, .. } = self;
        format!("{per_s:.0}/s, {latency_ms:.2}, {cpu_us:.0} µs CPU per operation")
    }
}

impl ApiReport {
    pub fn table(&self) -> String {
        let mut rows = Rows::new();
        rows.add("store", format!("{} ({})", self.store, self.durability));
        rows.add("jobs registered", format!("{} in {:.1} s", self.jobs, self.fill_s));
        rows.add("connections", self.connections);
        rows.add("get a job", self.get.text());
        rows.add("first page of 50", self.first_page.text());
        if let Some(deep) = self.deep_page {
            rows.add(&format!("page of 50 after {}", self.depth), deep.text());
        }
        rows.add("create one by one", self.create.text());
        match self.bulk {
            Some(bulk) => rows.add("create in bulk", bulk.text()),
            None => rows.add("create in bulk", "not supported by this server"),
        }
        let PollFigures { jobs, took_ms } = self.poll;
        rows.add(&format!("find {jobs} due jobs"), format!("{took_ms:.1}"));
        rows.add("memory", format!("{:.0} MB", self.rss_mb));
        rows.add("CPU", format!("{:.1} s", self.cpu_s));
        rows.finish(self.kept.as_ref())
    }
}
