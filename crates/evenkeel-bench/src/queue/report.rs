//! Results of the queue benchmark.

use crate::report::Rows;

#[derive(Clone, Debug, serde::Serialize)]
pub struct QueueReport {
    pub store: String,
    /// The database settings that decide which commits survive a crash.
    pub durability: String,
    pub jobs: u64,
    /// Queued attempts at the start.
    pub pending: u64,
    pub tasks: usize,
    pub limits: bool,
    /// Number of claimed attempts. The claimed attempts were also finished, unless the field
    /// `unfinished` is true.
    pub claimed: u64,
    /// Attempts still in the queue.
    pub left: u64,
    pub seconds: f64,
    pub claims_per_second: f64,
    /// Number of attempts in the first claimed batch, whose priorities are in descending order.
    pub first_in_order: usize,
    /// Address of the store if `--keep` was given.
    pub kept: Option<String>,
    /// Jobs had deduplication keys.
    pub dedup: bool,
    pub unfinished: bool,
}

impl QueueReport {
    pub fn table(&self) -> String {
        let mut rows = Rows::new();
        rows.add("store", format!("{} ({})", self.store, self.durability));
        rows.add("jobs", self.jobs);
        rows.add("queued", self.pending);
        rows.add("deduplication keys", if self.dedup { "one per job" } else { "none" });
        rows.add("tasks", self.tasks);
        rows.add("limits", if self.limits { "10 per concurrency key" } else { "none" });
        let claimed = if self.unfinished { "claimed only" } else { "claimed and finished" };
        rows.add(claimed, format!("{} in {:.1} s", self.claimed, self.seconds));
        rows.add("still queued", self.left);
        rows.add("first batch", format!("{} in priority order", self.first_in_order));
        rows.add("claims per second", format!("{:.0}", self.claims_per_second));
        rows.finish(self.kept.as_ref())
    }
}
