//! What was measured, for programs and for people.

use comfy_table::Table;
use serde::Serialize;

/// One measurement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Which load.
    pub load: &'static str,
    /// Which database.
    pub store: String,
    /// The settings in force that decide what survives a crash.
    pub durability: String,
    /// Registered jobs.
    pub jobs: u64,
    /// Length of the measurement.
    pub seconds: f64,
    /// Distinct (job, scheduled time) executed.
    pub firings: u64,
    /// Per second, from the first start until the last end was committed.
    pub firings_per_s: f64,
    /// Start of the body less scheduled time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<Quantiles>,
    /// From the request until the body started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Quantiles>,
    /// From the last due time until everything was done and committed.
    pub drain_s: f64,
    /// Scheduled times that were neither executed, nor recorded as skipped, nor left waiting.
    pub lost: u64,
    /// Scheduled times whose runs were in the queue when the measurement ended, although a later time
    /// of their job was executed.
    pub left_waiting: u64,
    /// Scheduled times executed more than once.
    pub doubled: u64,
    /// Scheduled times recorded as skipped.
    pub skipped: u64,
    /// Attempts and skip records in the store at the end.
    pub rows_in_history: u64,
    /// Memory of this process.
    pub rss_mb: f64,
    /// CPU time of this process and of a private database server.
    pub cpu_s: f64,
    /// Written to the log or to disk for each firing.
    pub bytes_per_firing: f64,
    /// Where the store was left, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// A distribution.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct Quantiles {
    /// Half are below.
    pub p50: f64,
    /// All but one in a hundred are below.
    pub p99: f64,
    /// None is above.
    pub max: f64,
}

impl Quantiles {
    /// Of lengths in microseconds, in milliseconds.
    pub fn of_micros(micros: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<u64> = micros.into_iter().collect();
        sorted.sort_unstable();
        let longest = sorted.len().checked_sub(1)?;
        let millis = |percent: usize| sorted[longest * percent / 100] as f64 / 1000.0;
        Some(Self { p50: millis(50), p99: millis(99), max: millis(100) })
    }
}

impl Report {
    /// A table for people.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        row("load", self.load.into());
        row("store", format!("{} ({})", self.store, self.durability));
        row("jobs registered", self.jobs.to_string());
        if self.load != "latency" {
            row("firings", format!("{} in {:.1} s", self.firings, self.seconds));
            row("firings per second", format!("{:.0}", self.firings_per_s));
        }
        let spread =
            |q: Quantiles| format!("p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", q.p50, q.p99, q.max);
        if let Some(lateness) = self.lateness_ms {
            row("lateness", spread(lateness));
        }
        if let Some(latency) = self.latency_ms {
            row("latency", spread(latency));
        }
        row("all done after", format!("{:.2} s", self.drain_s));
        let Self { lost, doubled, skipped, .. } = self;
        row("lost, doubled, skipped", format!("{lost}, {doubled}, {skipped}"));
        if self.left_waiting > 0 {
            row("left in the queue", self.left_waiting.to_string());
        }
        row("rows in history", self.rows_in_history.to_string());
        row("memory", format!("{:.0} MB", self.rss_mb));
        row("CPU", format!("{:.1} s", self.cpu_s));
        row("bytes per firing", format!("{:.0}", self.bytes_per_firing));
        if let Some(kept) = &self.kept {
            row("store kept at", kept.clone());
        }
        table.trim_fmt()
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
