//! Results of the balance benchmark.

use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::mixes::Mix;
use super::plan::PlanFigures;
use super::speed::PlacementFigures;
use super::study::{Figures, Outcome, Strategy};

#[derive(Clone, Debug, Default, Serialize)]
pub struct BalanceReport {
    pub load: &'static str,
    /// How evenly each policy spreads the runs of each mix over time.
    pub spread: Vec<Outcome>,
    pub placement: Vec<PlacementFigures>,
    pub plans: Vec<PlanFigures>,
}

impl BalanceReport {
    pub fn table(&self) -> String {
        let mut sections = Vec::new();
        for mix in Mix::ALL {
            let of_mix: Vec<&Outcome> = self.spread.iter().filter(|it| it.mix == mix).collect();
            if !of_mix.is_empty() {
                sections.push(spread_section(mix, &of_mix));
            }
        }
        if !self.placement.is_empty() {
            sections.push(placement_section(&self.placement));
        }
        if !self.plans.is_empty() {
            sections.push(plans_section(&self.plans));
        }
        sections.join("\n\n")
    }
}

fn table_of(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(columns);
    table
}

/// Right-aligns all columns of a table except the first `text_columns`.
fn finished(mut table: Table, text_columns: usize) -> String {
    for column in table.column_iter_mut().skip(text_columns) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn spread_section(mix: Mix, outcomes: &[&Outcome]) -> String {
    let mut sizes: Vec<u64> = outcomes.iter().map(|it| it.jobs).collect();
    sizes.dedup();
    let mut columns = vec!["strategy".to_owned()];
    for jobs in &sizes {
        columns.push(format!("{jobs} jobs: score"));
        columns.push("peak/mean".into());
        columns.push("by cost: score".into());
        columns.push("peak/mean".into());
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = table_of(&columns);
    for way in Strategy::ALL {
        let mut row = vec![way.label().to_owned()];
        for it in outcomes.iter().filter(|it| it.way == way) {
            for Figures { score, peak_to_mean, .. } in [it.runs, it.cost] {
                row.push(format!("{score:.3}"));
                row.push(format!("{peak_to_mean:.2}"));
            }
        }
        table.add_row(row);
    }
    let mut row = vec!["best possible".to_owned()];
    for jobs in &sizes {
        for cost in [false, true] {
            let of_size = outcomes.iter().filter(|it| it.jobs == *jobs);
            let least = of_size.map(|it| if cost { it.cost } else { it.runs }.least_peak_to_mean);
            row.push("1.000".into());
            row.push(format!("{:.2}", least.fold(f64::INFINITY, f64::min)));
        }
    }
    table.add_row(row);
    format!("{}\n{}", mix.label(), finished(table, 1))
}

fn placement_section(placement: &[PlacementFigures]) -> String {
    let mut table = table_of(&["policy", "interval", "placed jobs", "p50 ns", "p99 ns", "add ns"]);
    for it in placement {
        let policy = format!("{:?}", it.policy).to_lowercase();
        let [among, p50, p99, count] =
            [it.among, it.p50_ns, it.p99_ns, it.count_ns].map(|figure| figure.to_string());
        table.add_row([policy, it.every.to_string(), among, p50, p99, count]);
    }
    format!("one placement\n{}", finished(table, 2))
}

fn plans_section(plans: &[PlanFigures]) -> String {
    let mut table = table_of(&[
        "mix", "jobs", "seconds", "CPU seconds", "peak MB", "moves", "score", "after",
        "by cost: score", "after",
    ]);
    for it in plans {
        let mut row = vec![it.mix.label().to_owned(), it.jobs.to_string()];
        row.extend([it.seconds, it.cpu_seconds].map(|figure| format!("{figure:.2}")));
        row.extend([format!("{:.0}", it.peak_rss_mb), it.moves.to_string()]);
        row.extend([it.runs, it.cost].concat().iter().map(|it| format!("{:.3}", it.score)));
        table.add_row(row);
    }
    format!("rebalance plan\n{}", finished(table, 1))
}
