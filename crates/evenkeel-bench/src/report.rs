//! Results of the load benchmarks.

use std::fmt;

use comfy_table::Table;
use serde::Serialize;

use crate::floor::Share;
use crate::machine::Disturbance;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub load: &'static str,
    pub store: String,
    /// The database settings that decide which commits survive a crash.
    pub durability: String,
    pub jobs: u64,
    pub seconds: f64,
    /// Number of distinct (job, scheduled time) pairs that were executed.
    pub firings: u64,
    /// Firings per second, measured until the last finished run is committed.
    pub firings_per_s: f64,
    /// Actual start of a run minus its scheduled time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<Quantiles>,
    /// Time from the trigger request until the run starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Quantiles>,
    /// Time from the last scheduled run until all runs are finished and committed.
    pub drain_s: f64,
    /// Scheduled runs that were neither executed, nor recorded as skipped, nor left in the queue.
    pub lost: u64,
    /// Scheduled runs that are in the queue when the benchmark ends, although a later run of the
    /// same job was executed.
    pub left_waiting: u64,
    /// Number of executions that repeated a scheduled run.
    pub doubled: u64,
    /// Scheduled times recorded as skipped.
    pub skipped: u64,
    /// Number of attempts and skip records in the store at the end of the benchmark.
    pub rows_in_history: u64,
    pub rss_mb: f64,
    /// CPU seconds of this process and a private PostgreSQL server.
    pub cpu_s: f64,
    /// Bytes written per firing, to the WAL (PostgreSQL) or to disk (SQLite).
    pub bytes_per_firing: f64,
    /// What other programs used while the benchmark ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    /// Speed compared with the bare database; only for `max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Address of the store if `--keep` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct Quantiles {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Quantiles {
    /// Converts microseconds to milliseconds. `None` if `micros` is empty.
    pub fn of_micros(micros: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<u64> = micros.into_iter().collect();
        sorted.sort_unstable();
        let longest = sorted.len().checked_sub(1)?;
        let millis = |percent: usize| sorted[longest * percent / 100] as f64 / 1000.0;
        Some(Self { p50: millis(50), p99: millis(99), max: millis(100) })
    }
}

/// A format precision such as `{:.2}` applies to each number.
impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { p50, p99, max }, digits) = (self, f.precision().unwrap_or(1));
        write!(f, "p50 {p50:.digits$} ms, p99 {p99:.digits$} ms, max {max:.digits$} ms")
    }
}

/// A table of names and values, without a frame.
pub(crate) struct Rows(Table);

impl Rows {
    pub(crate) fn new() -> Self {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        Self(table)
    }

    pub(crate) fn add(&mut self, name: &str, value: impl fmt::Display) {
        self.0.add_row([name.to_owned(), value.to_string()]);
    }

    /// Adds the address of a kept store and formats the table.
    pub(crate) fn finish(mut self, kept: Option<&String>) -> String {
        if let Some(kept) = kept {
            self.add("store kept at", kept);
        }
        self.0.trim_fmt()
    }
}

impl Report {
    pub fn table(&self) -> String {
        let mut rows = Rows::new();
        rows.add("load", self.load);
        rows.add("store", format!("{} ({})", self.store, self.durability));
        rows.add("jobs registered", self.jobs);
        if self.load != "latency" {
            rows.add("firings", format!("{} in {:.1} s", self.firings, self.seconds));
            rows.add("firings per second", format!("{:.0}", self.firings_per_s));
        }
        if let Some(lateness) = self.lateness_ms {
            rows.add("lateness", format!("{lateness:.2}"));
        }
        if let Some(latency) = self.latency_ms {
            rows.add("latency", format!("{latency:.2}"));
        }
        rows.add("finished after", format!("{:.2} s", self.drain_s));
        let Self { lost, doubled, skipped, .. } = self;
        rows.add("lost, doubled, skipped", format!("{lost}, {doubled}, {skipped}"));
        if self.left_waiting > 0 {
            rows.add("left in the queue", self.left_waiting);
        }
        rows.add("rows in history", self.rows_in_history);
        rows.add("memory", format!("{:.0} MB", self.rss_mb));
        rows.add("CPU", format!("{:.1} s", self.cpu_s));
        rows.add("bytes per firing", format!("{:.0}", self.bytes_per_firing));
        if let Some(Share { of_bare_loop, of_same_promises, rounds }) = self.share {
            rows.add("share of bare loop", format!("{of_bare_loop:.2}"));
            rows.add("share of same promises", format!("{of_same_promises:.2}"));
            rows.add("rounds", rounds);
        }
        if let Some(disturbance) = self.disturbance {
            rows.add("disturbance", disturbance);
        }
        rows.finish(self.kept.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_and_in_milliseconds() {
        let quantiles = Quantiles::of_micros((1..=100).map(|ms| ms * 1000)).unwrap();
        assert_eq!((quantiles.p50, quantiles.p99, quantiles.max), (50.0, 99.0, 100.0));
        assert!(Quantiles::of_micros([]).is_none());
    }
}
