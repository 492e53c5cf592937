//! Results of the rebalance benchmark.

use serde::Serialize;

use crate::report::{Quantiles, Rows};

#[derive(Clone, Debug, Default, Serialize)]
pub struct RebalanceReport {
    pub load: &'static str,
    pub store: String,
    /// The database settings that decide which commits survive a crash.
    pub durability: String,
    /// Jobs that may be moved.
    pub jobs: u64,
    /// Jobs that fire every second.
    pub firing: u64,
    /// Time to register `jobs`.
    pub fill_s: f64,
    /// Time that a starting node takes to read the load of all jobs.
    pub rebuild_s: f64,
    /// Time to read the load, and to make and store the rebalance plan.
    pub plan_s: f64,
    pub planned: u64,
    /// Jobs that must not move.
    pub skipped: u64,
    /// Time to check, before the first move of a job, that all jobs can still move as planned.
    pub check_s: f64,
    /// Time from the check of the rebalance plan until the last move of a job is committed.
    pub move_s: f64,
    pub moved: u64,
    /// Jobs that were not moved because they changed after the rebalance was planned.
    pub changed: u64,
    pub moves_per_s: f64,
    /// Balance score before and after.
    pub score: [f64; 2],
    /// Firings due before the planning.
    pub before: Firings,
    /// Firings due during the planning.
    pub planning: Firings,
    /// Firings due from the start of the rebalance, after its planning, until its end.
    pub rebalancing: Firings,
    /// Scheduled runs that were neither executed nor recorded as skipped.
    pub lost: u64,
    /// Number of executions that repeated a scheduled run.
    pub doubled: u64,
    /// Due times recorded as skipped.
    pub skipped_times: u64,
    /// Peak memory of this process.
    pub peak_rss_mb: f64,
    /// CPU seconds of this process and a private PostgreSQL server after the jobs are registered.
    pub cpu_s: f64,
    /// Address of the store if `--keep` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// Firings due in one phase.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct Firings {
    /// Length of the phase.
    pub seconds: f64,
    pub fired: u64,
    /// Actual start of a run minus its scheduled time; `None` if no job fired.
    pub lateness_ms: Option<Quantiles>,
}

impl Firings {
    fn text(&self) -> String {
        let Self { seconds, fired, lateness_ms } = self;
        let fired = format!("{fired} in {seconds:.1} s");
        match lateness_ms {
            Some(lateness) => format!("{fired}, lateness {lateness:.2}"),
            None => fired,
        }
    }
}

impl RebalanceReport {
    pub fn table(&self) -> String {
        let mut rows = Rows::new();
        rows.add("store", format!("{} ({})", self.store, self.durability));
        rows.add("jobs registered", format!("{} in {:.1} s", self.jobs, self.fill_s));
        rows.add("firing every second", self.firing);
        rows.add("load read at start", format!("in {:.2} s", self.rebuild_s));
        let Self { planned, skipped, moved, changed, .. } = self;
        let planned = format!("{planned} moves, {skipped} jobs must stay, in {:.2} s", self.plan_s);
        rows.add("planned", planned);
        rows.add("plan checked", format!("in {:.2} s", self.check_s));
        let moved = format!("{moved} in {:.2} s, {changed} changed since", self.move_s);
        rows.add("moved", moved);
        rows.add("moves per second", format!("{:.0}", self.moves_per_s));
        let [before, after] = self.score;
        rows.add("score", format!("{before:.3} before, {after:.3} after"));
        rows.add("fired before", self.before.text());
        rows.add("fired while planning", self.planning.text());
        rows.add("fired while rebalancing", self.rebalancing.text());
        let Self { lost, doubled, skipped_times, .. } = self;
        rows.add("lost, doubled, skipped", format!("{lost}, {doubled}, {skipped_times}"));
        rows.add("peak memory", format!("{:.0} MB", self.peak_rss_mb));
        rows.add("CPU", format!("{:.1} s", self.cpu_s));
        rows.finish(self.kept.as_ref())
    }
}
