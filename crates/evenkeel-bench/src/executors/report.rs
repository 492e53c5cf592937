//! What was measured of the executors.

use comfy_table::Table;
use serde::Serialize;

use crate::report::Quantiles;

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ExecutorsReport {
    /// Which database.
    pub store: String,
    /// The settings in force that decide what survives a crash.
    pub durability: String,
    /// Calls.
    pub http: Option<HttpFigures>,
    /// Programs.
    pub shell: Option<ShellFigures>,
    /// Pages.
    pub crawl: Option<CrawlFigures>,
}

/// Calls that arrived at a receiver in the same process.
#[derive(Clone, Debug, Serialize)]
pub struct HttpFigures {
    /// How many arrived.
    pub calls: u64,
    /// How many had to.
    pub expected: u64,
    /// From the first due time until the last arrived.
    pub seconds: f64,
    /// Per second.
    pub calls_per_s: f64,
    /// Arrival less scheduled time.
    pub lateness_ms: Option<Quantiles>,
    /// Memory of this process after a fifth of the time.
    pub rss_early_mb: f64,
    /// And at the end.
    pub rss_late_mb: f64,
}

/// Runs of `/bin/true`.
#[derive(Clone, Debug, Serialize)]
pub struct ShellFigures {
    /// How many.
    pub runs: u64,
    /// From the first due time until the last had ended.
    pub seconds: f64,
    /// Per second.
    pub runs_per_s: f64,
    /// Memory of this process.
    pub rss_mb: f64,
}

/// Pages of a site in the same process.
#[derive(Clone, Debug, Serialize)]
pub struct CrawlFigures {
    /// How many were crawled and kept.
    pub pages: u64,
    /// From the due time until the run had ended.
    pub seconds: f64,
    /// Per second.
    pub pages_per_s: f64,
    /// Memory of this process.
    pub rss_mb: f64,
}

impl ExecutorsReport {
    /// A table for people.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        row("store", format!("{} ({})", self.store, self.durability));
        if let Some(http) = &self.http {
            let HttpFigures { calls, expected, seconds, calls_per_s, .. } = http;
            row("http calls", format!("{calls} of {expected} in {seconds:.1} s"));
            row("  per second", format!("{calls_per_s:.0}"));
            if let Some(Quantiles { p50, p99, max }) = http.lateness_ms {
                row("  lateness", format!("p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms"));
            }
            let (early, late) = (http.rss_early_mb, http.rss_late_mb);
            row("  memory", format!("{early:.0} MB after a fifth, {late:.0} MB at the end"));
        }
        if let Some(shell) = &self.shell {
            row("shell runs", format!("{} in {:.1} s", shell.runs, shell.seconds));
            row("  per second", format!("{:.0}", shell.runs_per_s));
            row("  memory", format!("{:.0} MB", shell.rss_mb));
        }
        if let Some(crawl) = &self.crawl {
            row("crawled pages", format!("{} in {:.1} s", crawl.pages, crawl.seconds));
            row("  per second", format!("{:.0}", crawl.pages_per_s));
            row("  memory", format!("{:.0} MB", crawl.rss_mb));
        }
        table.trim_fmt()
    }
}
