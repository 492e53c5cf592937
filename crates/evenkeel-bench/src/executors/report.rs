//! Results of the executor benchmark.

use serde::Serialize;

use crate::report::{Quantiles, Rows};

#[derive(Clone, Debug, Default, Serialize)]
pub struct ExecutorsReport {
    pub store: String,
    /// The database settings that decide which commits survive a crash.
    pub durability: String,
    pub http: Option<HttpFigures>,
    pub shell: Option<ShellFigures>,
    pub crawl: Option<CrawlFigures>,
}

/// Results of HTTP calls to a receiver in the same process.
#[derive(Clone, Debug, Serialize)]
pub struct HttpFigures {
    pub calls: u64,
    pub expected: u64,
    /// Time from the first scheduled run until the last call is received.
    pub seconds: f64,
    pub calls_per_s: f64,
    /// Time at which an HTTP call is received minus its scheduled time.
    pub lateness_ms: Option<Quantiles>,
    /// Memory use of this process after a fifth of the measurement.
    pub rss_early_mb: f64,
    /// Memory use of this process at the end of the measurement.
    pub rss_late_mb: f64,
}

/// Runs of `/bin/true`.
#[derive(Clone, Debug, Serialize)]
pub struct ShellFigures {
    pub runs: u64,
    /// Time from the first scheduled run until the last run finishes.
    pub seconds: f64,
    pub runs_per_s: f64,
    pub rss_mb: f64,
}

/// Results of a crawl of a site that the same process serves.
#[derive(Clone, Debug, Serialize)]
pub struct CrawlFigures {
    pub pages: u64,
    /// Time from the scheduled time of the crawl until it finishes.
    pub seconds: f64,
    pub pages_per_s: f64,
    pub rss_mb: f64,
}

impl ExecutorsReport {
    pub fn table(&self) -> String {
        let mut rows = Rows::new();
        rows.add("store", format!("{} ({})", self.store, self.durability));
        if let Some(http) = &self.http {
            let HttpFigures { calls, expected, seconds, calls_per_s, .. } = http;
            rows.add("http calls", format!("{calls} of {expected} in {seconds:.1} s"));
            rows.add("  per second", format!("{calls_per_s:.0}"));
            if let Some(lateness) = http.lateness_ms {
                rows.add("  lateness", format!("{lateness:.1}"));
            }
            let (early, late) = (http.rss_early_mb, http.rss_late_mb);
            rows.add(
                "  memory",
                format!("{early:.0} MB after a fifth of the time, {late:.0} MB at the end"),
            );
        }
        if let Some(shell) = &self.shell {
            rows.add("shell runs", format!("{} in {:.1} s", shell.runs, shell.seconds));
            rows.add("  per second", format!("{:.0}", shell.runs_per_s));
            rows.add("  memory", format!("{:.0} MB", shell.rss_mb));
        }
        if let Some(crawl) = &self.crawl {
            rows.add("crawled pages", format!("{} in {:.1} s", crawl.pages, crawl.seconds));
            rows.add("  per second", format!("{:.0}", crawl.pages_per_s));
            rows.add("  memory", format!("{:.0} MB", crawl.rss_mb));
        }
        rows.finish(None)
    }
}
