//! What was measured of a rebalance.

use comfy_table::Table;
use serde::Serialize;

use crate::report::Quantiles;

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RebalanceReport {
    /// Which load.
    pub load: &'static str,
    /// Which database.
    pub store: String,
    /// The settings in force that decide what survives a crash.
    pub durability: String,
    /// Jobs that could be moved.
    pub jobs: u64,
    /// Jobs that fired every second.
    pub firing: u64,
    /// How long it took to register the former.
    pub fill_s: f64,
    /// How long a node that starts takes to know the load of all of them.
    pub rebuild_s: f64,
    /// How long it took until the plan could be shown: read, planned and kept.
    pub plan_s: f64,
    /// Moves that were planned.
    pub planned: u64,
    /// Jobs that had to stay.
    pub skipped: u64,
    /// How long it took to look whether the plan still fits, before the first move.
    pub check_s: f64,
    /// From there until the last move was committed.
    pub move_s: f64,
    /// Jobs that were moved.
    pub moved: u64,
    /// Jobs that had changed since they were planned and were left alone.
    pub changed: u64,
    /// Moves per second of `move_s`.
    pub moves_per_s: f64,
    /// How evenly runs were spread before, and afterwards.
    pub score: [f64; 2],
    /// Firings before anything was planned.
    pub before: Firings,
    /// Firings that were due while it was planned.
    pub planning: Firings,
    /// Firings that were due from the order to act until the rebalance was over.
    pub rebalancing: Firings,
    /// Times of all these that were neither executed nor recorded as skipped.
    pub lost: u64,
    /// Times executed more than once.
    pub doubled: u64,
    /// Times recorded as skipped.
    pub skipped_times: u64,
    /// The most memory that this process has had.
    pub peak_rss_mb: f64,
    /// CPU time of this process and of a private database server, without the registering.
    pub cpu_s: f64,
    /// Where the store was left, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// The firings that were due in some time.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct Firings {
    /// How long that was.
    pub seconds: f64,
    /// How many fired.
    pub fired: u64,
    /// Start of the body less scheduled time, if any fired.
    pub lateness_ms: Option<Quantiles>,
}

impl Firings {
    fn words(&self) -> String {
        let Self { seconds, fired, lateness_ms } = self;
        let fired = format!("{fired} in {seconds:.1} s");
        match lateness_ms {
            Some(Quantiles { p50, p99, max }) => {
                format!("{fired}, late p50 {p50:.2} ms, p99 {p99:.2} ms, max {max:.2} ms")
            }
            None => fired,
        }
    }
}

impl RebalanceReport {
    /// A table for people.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        row("store", format!("{} ({})", self.store, self.durability));
        row("jobs registered", format!("{} in {:.1} s", self.jobs, self.fill_s));
        row("firing every second", self.firing.to_string());
        row("load known at start", format!("after {:.2} s", self.rebuild_s));
        let Self { planned, skipped, moved, changed, .. } = self;
        let planned = format!("{planned} moves, {skipped} stay, in {:.2} s", self.plan_s);
        row("planned", planned);
        row("plan looked over", format!("in {:.2} s", self.check_s));
        let moved = format!("{moved} in {:.2} s, {changed} had changed", self.move_s);
        row("moved", moved);
        row("moves per second", format!("{:.0}", self.moves_per_s));
        let [before, after] = self.score;
        row("score", format!("{before:.3} before, {after:.3} after"));
        row("fired before", self.before.words());
        row("fired while planning", self.planning.words());
        row("fired while rebalancing", self.rebalancing.words());
        let Self { lost, doubled, skipped_times, .. } = self;
        row("lost, doubled, skipped", format!("{lost}, {doubled}, {skipped_times}"));
        row("memory, at most", format!("{:.0} MB", self.peak_rss_mb));
        row("CPU", format!("{:.1} s", self.cpu_s));
        if let Some(kept) = &self.kept {
            row("store kept at", kept.clone());
        }
        table.trim_fmt()
    }
}
