//! Measures a rebalance while an engine fires other jobs.

mod fill;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use evenkeel_commands::{Balance, Balancing, PlanOptions, PlanSource};
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Roles;

use crate::args::RebalanceLoad;
use crate::ledger::{self, Executed, LedgerExecutor};
use crate::machine;
use crate::report::Quantiles;
use crate::run::Bench;
use crate::workload::Plan;
use report::Firings;

pub use report::RebalanceReport;

/// Duration of the measurement without a rebalance, for comparison.
pub(crate) const QUIET: Span = Span::from_secs(5);
/// Time after the first firing that is not measured, because the engine is still starting.
const SETTLING: Span = Span::from_secs(1);
const REBALANCE_MAX: Duration = Duration::from_secs(3600);
/// A due run that is not executed this long after the end of the measurement counts as lost.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) async fn measure(
    bench: &mut Bench,
    load: &RebalanceLoad,
    quiet: Span,
) -> anyhow::Result<RebalanceReport> {
    ensure!(load.jobs > 0, "--jobs must be at least 1");
    ensure!(load.firing > 0, "--firing must be at least 1");
    let progress = bench.progress(load.jobs + load.firing, "registering");
    let began = bench.monotonic();
    fill::uneven(&bench.registrar(&progress), load.jobs, bench.now().await?).await?;
    let fill_s = (bench.monotonic() - began).as_secs_f64();

    bench.target.begin().await?;
    let (balance, rebuild_s) = rebuild(bench, load.jobs).await?;

    let start = bench.start_time(load.firing).await?;
    // `Allow` ensures that no late run is skipped, because the lateness of a skipped run would not
    // be measured.
    let overlap = OverlapPolicy::Allow;
    let registrar = bench.registrar(&progress);
    let firing = registrar.busy(load.firing, 1, start, overlap, std::convert::identity).await?;
    progress.finish_and_clear();
    let (executor, ledger) = bench.ledger(None)?;
    let engine = bench.start(&executor, Roles::ALL).await?;
    let measurement = Measurement { bench, executor, ledger, firing };
    let settled = start.saturating_add(SETTLING);
    let balancing = Balancing::new(balance, Arc::clone(&bench.sources.chance));
    let measured = measurement.rebalance(balancing, settled, quiet).await;
    engine.drain(Duration::from_secs(30)).await;
    let target = &bench.target;
    let census = target.store.census().await?;
    let measured = measured?;
    Ok(RebalanceReport {
        load: "rebalance",
        store: target.kind.into(),
        durability: target.durability.clone(),
        jobs: load.jobs,
        firing: load.firing,
        fill_s,
        rebuild_s,
        lost: measured.lost.saturating_sub(census.skipped_times),
        skipped_times: census.skipped_times,
        peak_rss_mb: machine::peak_rss_mb(),
        cpu_s: target.cpu_seconds(),
        ..measured
    })
}

/// Reads the load of all jobs, as a node does when it starts. Returns how long the read took.
async fn rebuild(bench: &Bench, jobs: u64) -> anyhow::Result<(Arc<Balance>, f64)> {
    // The cooldown of zero lets a rebalance move jobs right after their creation.
    let settings = BalanceSettings { cooldown: Span::ZERO, ..BalanceSettings::default() };
    let balance = Balance::new(Arc::clone(&bench.target.store), settings);
    let now = bench.now().await?;
    let began = bench.monotonic();
    let known = balance.loads(&bench.scope, now).await?.all.jobs();
    let seconds = (bench.monotonic() - began).as_secs_f64();
    ensure!(known == jobs, "the store holds {known} jobs instead of {jobs}; use an empty store");
    Ok((balance, seconds))
}

struct Measurement<'a> {
    bench: &'a Bench,
    executor: Arc<LedgerExecutor>,
    ledger: PathBuf,
    firing: Plan,
}

impl Measurement<'_> {
    /// Waits for the time `quiet` after `settled`, then plans a rebalance and executes it. Reports
    /// how late other jobs fired before the planning, during the planning and during the rebalance.
    async fn rebalance(
        &self,
        balancing: Balancing,
        settled: Timestamp,
        quiet: Span,
    ) -> anyhow::Result<RebalanceReport> {
        let (bench, scope) = (self.bench, &self.bench.scope);
        let ready = settled.saturating_add(quiet);
        tokio::time::sleep(Duration::from(ready.since(bench.now().await?))).await;

        let (planning_at, began) = (bench.now().await?, bench.monotonic());
        let previewed = balancing.preview(scope, &PlanOptions::default(), "bench").await?;
        let plan_s = (bench.monotonic() - began).as_secs_f64();
        let id = previewed.rebalance.id;

        let (applying_at, began) = (bench.now().await?, bench.monotonic());
        let running = balancing.begin(scope, &PlanSource::Plan(id), "bench").await?;
        let (check_s, moving_at) = ((bench.monotonic() - began).as_secs_f64(), bench.now().await?);
        ensure!(
            running.wait(REBALANCE_MAX).await?,
            "the rebalance {id} has not ended after {REBALANCE_MAX:?}"
        );
        let ended_at = bench.now().await?;
        let done = balancing.report(scope, id).await?;

        let executed = self.executed_before(ended_at).await?;
        let rebalance = &done.rebalance;
        let move_s = seconds(moving_at, rebalance.ended_at.unwrap_or(ended_at));
        let quiet_since = planning_at.saturating_sub(quiet);
        Ok(RebalanceReport {
            plan_s,
            planned: rebalance.planned,
            skipped: rebalance.skipped,
            check_s,
            move_s,
            moved: rebalance.moved,
            changed: rebalance.changed,
            // Avoids a division by zero, because a few moves may take less than the clock's
            // resolution.
            moves_per_s: rebalance.moved as f64 / move_s.max(1e-6),
            score: [done.summary.before.score, done.score],
            before: firings(&executed, quiet_since, planning_at),
            planning: firings(&executed, planning_at, applying_at),
            rebalancing: firings(&executed, applying_at, ended_at),
            lost: ledger::missing(&executed, &self.firing.expected(ended_at)).len() as u64,
            doubled: ledger::doubled(&executed),
            ..RebalanceReport::default()
        })
    }

    /// Waits until all runs due before `until` are executed, and returns all executed runs.
    async fn executed_before(&self, until: Timestamp) -> anyhow::Result<Vec<Executed>> {
        let expected = self.firing.expected(until);
        let deadline = self.bench.monotonic() + CATCH_UP_LIMIT;
        loop {
            self.executor.flush()?;
            let executed = ledger::read(std::slice::from_ref(&self.ledger))?;
            let is_late = self.bench.monotonic() > deadline;
            if is_late || ledger::missing(&executed, &expected).is_empty() {
                return Ok(executed);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Counts the firings that were due in `from..until`, and how late they were.
fn firings(executed: &[Executed], from: Timestamp, until: Timestamp) -> Firings {
    let due = executed.iter().filter(|one| (from..until).contains(&one.scheduled_at));
    let late: Vec<u64> =
        due.map(|one| one.started_at.since(one.scheduled_at).as_micros()).collect();
    Firings {
        seconds: seconds(from, until),
        fired: late.len() as u64,
        lateness_ms: Quantiles::of_micros(late),
    }
}

fn seconds(from: Timestamp, until: Timestamp) -> f64 {
    until.since(from).as_micros() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{BenchArgs, Load};

    async fn bench_of(jobs: u64, firing: u64) -> (Bench, RebalanceLoad) {
        let load = RebalanceLoad { jobs, firing };
        let args = BenchArgs {
            load: Load::Rebalance(load.clone()),
            store: "sqlite".into(),
            keep: false,
            workers: 8,
        };
        (Bench::open(&args, true).await.unwrap(), load)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rebalance_moves_uneven_jobs_while_others_fire() {
        let (mut bench, load) = bench_of(2000, 20).await;
        let report = measure(&mut bench, &load, Span::from_secs(1)).await.unwrap();
        // The rebalance must move most of the 2000 jobs, and must not move the 20 jobs that fire
        // every second.
        assert!(report.planned > 1000, "{report:?}");
        assert_eq!((report.moved, report.changed, report.skipped), (report.planned, 0, 20));
        assert!(report.score[1] > report.score[0]);
        assert_eq!((report.before.fired, report.lost, report.doubled), (20, 0, 0));
        assert!(report.table().contains("moves per second"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn store_with_other_jobs_is_refused() {
        let (mut bench, load) = bench_of(10, 1).await;
        let progress = bench.progress(1, "registering");
        let now = bench.now().await.unwrap();
        bench.registrar(&progress).idle(1, now).await.unwrap();
        let error = measure(&mut bench, &load, Span::ZERO).await.unwrap_err();
        assert!(error.to_string().contains("use an empty store"), "{error}");
    }
}
