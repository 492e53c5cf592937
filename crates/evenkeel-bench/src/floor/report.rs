//! Results of the benchmark `floor`, and the share of the floors that `max` reaches.

use serde::Serialize;

use crate::machine::Disturbance;
use crate::report::Rows;

/// The speed of one loop.
#[derive(Clone, Debug, Serialize)]
pub struct Floor {
    pub firings: u64,
    pub firings_per_s: f64,
    /// CPU time of this process and a private PostgreSQL server.
    pub cpu_us_per_firing: f64,
    /// Bytes written per firing, to the WAL (PostgreSQL) or to disk (SQLite).
    pub bytes_per_firing: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FloorReport {
    pub load: &'static str,
    pub store: &'static str,
    /// The database settings that decide which commits survive a crash.
    pub durability: String,
    pub jobs: u64,
    /// Advances a job, inserts a run and finishes the run.
    pub bare: Floor,
    /// Also keeps the promises of Evenkeel.
    pub same_promises: Floor,
}

impl FloorReport {
    pub fn table(&self) -> String {
        let mut rows = Rows::new();
        rows.add("store", format!("{} ({})", self.store, self.durability));
        rows.add("jobs", self.jobs);
        for (name, floor) in [("bare", &self.bare), ("same promises", &self.same_promises)] {
            let Floor { firings_per_s, cpu_us_per_firing, bytes_per_firing, .. } = floor;
            rows.add(
                &format!("{name} loop"),
                format!(
                    "{firings_per_s:.0} firings/s, {cpu_us_per_firing:.1} µs of CPU and \
                     {bytes_per_firing:.0} bytes written per firing"
                ),
            );
            if let Some(disturbance) = floor.disturbance {
                rows.add("disturbance", disturbance);
            }
        }
        rows.finish(None)
    }
}

/// The speed of `max` as a share of both floors, measured in turn.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Share {
    /// Median over all rounds.
    pub of_bare_loop: f64,
    /// Median over all rounds.
    pub of_same_promises: f64,
    pub rounds: usize,
}

impl Share {
    /// Returns the medians over rounds. Each round has the floors and the firings per second of
    /// `max`. `None` without rounds.
    pub(crate) fn of(rounds: &[(FloorReport, f64)]) -> Option<Self> {
        let median = |floor: fn(&FloorReport) -> f64| {
            let mut shares: Vec<f64> =
                rounds.iter().map(|(floors, max)| max / floor(floors).max(1.0)).collect();
            shares.sort_by(f64::total_cmp);
            shares.get(shares.len() / 2).copied()
        };
        Some(Self {
            of_bare_loop: median(|floors| floors.bare.firings_per_s)?,
            of_same_promises: median(|floors| floors.same_promises.firings_per_s)?,
            rounds: rounds.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_medians_over_the_rounds() {
        let floor = |firings_per_s| Floor {
            firings: 0,
            firings_per_s,
            cpu_us_per_firing: 0.0,
            bytes_per_firing: 0.0,
            disturbance: None,
        };
        let round = |bare, same_promises, max| {
            let (bare, same_promises) = (floor(bare), floor(same_promises));
            let durability = String::new();
            (
                FloorReport {
                    load: "floor",
                    store: "sqlite",
                    durability,
                    jobs: 1,
                    bare,
                    same_promises,
                },
                max,
            )
        };
        let rounds = [round(100.0, 50.0, 25.0), round(100.0, 50.0, 40.0), round(50.0, 50.0, 45.0)];
        let share = Share::of(&rounds).unwrap();
        assert_eq!((share.of_bare_loop, share.of_same_promises), (0.4, 0.8));
        assert_eq!(share.rounds, 3);
        assert!(Share::of(&[]).is_none());
    }
}
