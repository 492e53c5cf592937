//! Measures how evenly the balancer spreads runs over time, and how fast it chooses a start time.

mod mixes;
mod plan;
mod report;
mod speed;
mod study;

use evenkeel_engine::{Clock, SystemClock};

use crate::run::progress_bar;
use mixes::Mix;

pub use report::BalanceReport;

/// Compares the placement policies on every mix of jobs, once for each number in `sizes`. Measures
/// how long choosing one start time takes, with the lowest and with the highest number in `sizes`
/// of other jobs. Plans a rebalance of each mix, with the highest number of jobs in `sizes`. Needs
/// no store.
pub(crate) fn measure(sizes: &[u64], quiet: bool) -> anyhow::Result<BalanceReport> {
    anyhow::ensure!(sizes.iter().all(|jobs| *jobs > 0), "--jobs must be at least 1");
    let clock = SystemClock::default();
    let progress = progress_bar((Mix::ALL.len() * (sizes.len() + 1) + 2) as u64, "placing", quiet);
    let mut report = BalanceReport { load: "balance", ..BalanceReport::default() };
    for mix in Mix::ALL {
        for jobs in sizes {
            report.spread.extend(study::compare(mix, *jobs)?);
            progress.inc(1);
        }
    }
    let fewest = sizes.iter().min().copied();
    let most = sizes.iter().max().copied().filter(|most| Some(*most) != fewest);
    for among in fewest.into_iter().chain(most) {
        report.placement.extend(speed::measure(among, &|| clock.monotonic())?);
        progress.inc(1);
    }
    for mix in Mix::ALL {
        let most = sizes.iter().max().copied().unwrap_or(1);
        report.plans.push(plan::measure_plan(mix, most, &|| clock.monotonic())?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(report)
}
