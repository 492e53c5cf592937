//! A rebalance on a store, while an engine fires.

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
use evenkeel_engine::Clock;
use evenkeel_executors::Executor;
use evenkeel_store::{Roles, Scope, Store};

use crate::ledger::{self, Executed, LedgerExecutor};
use crate::machine;
use crate::report::Quantiles;
use crate::run::Bench;
use crate::workload::Plan;
use report::Firings;

pub use report::RebalanceReport;

/// Firings are watched for this long before a rebalance is planned.
pub(crate) const QUIET: Span = Span::from_secs(5);
/// The engine has settled this long after its first firing.
const SETTLING: Span = Span::from_secs(1);
/// Nobody waits longer for the end of a rebalance.
const REBALANCE_MAX: Duration = Duration::from_secs(3600);
/// Everything due must be done this long after the end, or it is lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of everything.
#[derive(Clone, Debug)]
pub(crate) struct Amounts {
    /// Jobs that can be moved.
    pub jobs: u64,
    /// Jobs that fire every second.
    pub firing: u64,
    /// Firings are watched for this long before.
    pub quiet: Span,
}

/// Measures a rebalance.
pub(crate) async fn measure(
    bench: &mut Bench,
    amounts: &Amounts,
) -> anyhow::Result<RebalanceReport> {
    ensure!(amounts.jobs > 0, "--jobs must be at least 1");
    ensure!(amounts.firing > 0, "--firing must be at least 1");
    let progress = bench.progress(amounts.jobs + amounts.firing, "registering");
    let began = bench.monotonic();
    fill::uneven(&bench.registrar(&progress), amounts.jobs, bench.now().await?).await?;
    let fill_s = (bench.monotonic() - began).as_secs_f64();

    let clock = bench.clock();
    let (target, sources, scope, folder, workers) = bench.parts();
    let (store, chance) = (Arc::clone(&target.store), Arc::clone(&sources.chance));
    let ledger = folder.join("ledger");
    target.begin().await?;
    let (balance, rebuild_s) = rebuild(&store, &scope, amounts.jobs, &*clock).await?;

    // Time enough to register those that fire and to load them.
    let lead = Span::from_millis(5_000 + amounts.firing / 8);
    let start = bench.now().await?.saturating_add(lead);
    // Each time must run, however late: what is skipped would hide how late it was.
    let firing = bench
        .registrar(&progress)
        .busy(amounts.firing, 1, start, OverlapPolicy::Allow, std::convert::identity)
        .await?;
    progress.finish_and_clear();
    let executor = LedgerExecutor::create(&ledger, Arc::clone(&clock), None)?;
    let (_, sources, ..) = bench.parts();
    let body: Arc<dyn Executor> = Arc::clone(&executor) as _;
    let engine = sources.start(&store, body, Roles::ALL, workers).await?;
    let watch = Watch { store, scope, clock, executor, ledger, firing };
    let settled = start.saturating_add(SETTLING);
    let measured = watch.rebalance(Balancing::new(balance, chance), settled, amounts.quiet).await;
    engine.drain(Duration::from_secs(30)).await;
    let census = watch.store.census().await?;
    let measured = measured?;
    let (target, ..) = bench.parts();
    Ok(RebalanceReport {
        load: "rebalance",
        store: target.kind.into(),
        durability: target.durability.clone(),
        jobs: amounts.jobs,
        firing: amounts.firing,
        fill_s,
        rebuild_s,
        lost: measured.lost.saturating_sub(census.skipped_times),
        skipped_times: census.skipped_times,
        peak_rss_mb: machine::peak_rss_mb(),
        cpu_s: target.cpu_seconds(),
        ..measured
    })
}

/// Reads load as a node that starts does it; says how long that took.
async fn rebuild(
    store: &Arc<dyn Store>,
    scope: &Scope,
    jobs: u64,
    clock: &dyn Clock,
) -> anyhow::Result<(Arc<Balance>, f64)> {
    // As shipped, except that jobs may be moved right after they were made.
    let settings = BalanceSettings { cooldown: Span::ZERO, ..BalanceSettings::default() };
    let balance = Balance::new(Arc::clone(store), settings);
    let now = store.now().await?;
    let began = clock.monotonic();
    let known = balance.loads(scope, now).await?;
    let seconds = (clock.monotonic() - began).as_secs_f64();
    ensure!(
        known.all.jobs() == jobs,
        "the store holds {} jobs instead of {jobs}; give an empty one",
        known.all.jobs()
    );
    Ok((balance, seconds))
}

/// A store with an engine, and what it fires.
struct Watch {
    store: Arc<dyn Store>,
    scope: Scope,
    clock: Arc<dyn Clock>,
    executor: Arc<LedgerExecutor>,
    ledger: PathBuf,
    firing: Plan,
}

impl Watch {
    /// Waits until `settled` and for the `quiet` time after it, plans, acts on the plan, and tells
    /// how late what was due meanwhile was.
    async fn rebalance(
        &self,
        balancing: Balancing,
        settled: Timestamp,
        quiet: Span,
    ) -> anyhow::Result<RebalanceReport> {
        let Self { store, scope, clock, .. } = self;
        let ready = settled.saturating_add(quiet);
        tokio::time::sleep(Duration::from(ready.since(store.now().await?))).await;

        let (planning_at, began) = (store.now().await?, clock.monotonic());
        let previewed = balancing.preview(scope, &PlanOptions::default(), "bench").await?;
        let plan_s = (clock.monotonic() - began).as_secs_f64();
        let id = previewed.rebalance.id;

        let (acting_at, began) = (store.now().await?, clock.monotonic());
        let running = balancing.begin(scope, &PlanSource::Plan(id), "bench").await?;
        let (check_s, moving_at) = ((clock.monotonic() - began).as_secs_f64(), store.now().await?);
        ensure!(running.wait(REBALANCE_MAX).await?, "the rebalance {id} does not end");
        let over_at = store.now().await?;
        let done = balancing.report(scope, id).await?;

        let executed = self.executed_before(over_at).await?;
        let rebalance = &done.rebalance;
        let move_s = seconds(moving_at, rebalance.ended_at.unwrap_or(over_at));
        let in_quiet = planning_at.saturating_sub(quiet);
        Ok(RebalanceReport {
            plan_s,
            planned: rebalance.planned,
            skipped: rebalance.skipped,
            check_s,
            move_s,
            moved: rebalance.moved,
            changed: rebalance.changed,
            // A handful of moves may be over before anybody has looked at the clock.
            moves_per_s: rebalance.moved as f64 / move_s.max(1e-6),
            score: [done.summary.before.score, done.score],
            before: firings(&executed, in_quiet, planning_at),
            planning: firings(&executed, planning_at, acting_at),
            rebalancing: firings(&executed, acting_at, over_at),
            lost: ledger::missing(&executed, &self.firing.expected(over_at)).len() as u64,
            doubled: ledger::doubled(&executed),
            ..RebalanceReport::default()
        })
    }

    /// What was executed, as soon as everything is that was due before `until`.
    async fn executed_before(&self, until: Timestamp) -> anyhow::Result<Vec<Executed>> {
        let expected = self.firing.expected(until);
        let deadline = self.clock.monotonic() + PATIENCE;
        loop {
            self.executor.flush()?;
            let executed = ledger::read(std::slice::from_ref(&self.ledger))?;
            if ledger::missing(&executed, &expected).is_empty() || self.clock.monotonic() > deadline
            {
                return Ok(executed);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Those that were due from one time until another.
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

    #[tokio::test(flavor = "multi_thread")]
    async fn uneven_jobs_are_moved_while_others_fire() {
        let amounts = Amounts { jobs: 2000, firing: 20, quiet: Span::from_secs(1) };
        let load = Load::Rebalance { jobs: 2000, firing: 20 };
        let args = BenchArgs { load, store: "sqlite".into(), keep: false, workers: 8 };
        let mut bench = Bench::open(&args, true).await.unwrap();
        let report = measure(&mut bench, &amounts).await.unwrap();
        // Most of them lie where others do, and only those that fire must stay.
        assert!(report.planned > 1000, "{report:?}");
        assert_eq!((report.moved, report.changed, report.skipped), (report.planned, 0, 20));
        assert!(report.score[1] > report.score[0]);
        assert_eq!((report.before.fired, report.lost, report.doubled), (20, 0, 0));
        assert!(report.table().contains("moves per second"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_store_that_holds_other_jobs_is_refused() {
        let amounts = Amounts { jobs: 10, firing: 1, quiet: Span::ZERO };
        let load = Load::Rebalance { jobs: 10, firing: 1 };
        let args = BenchArgs { load, store: "sqlite".into(), keep: false, workers: 8 };
        let mut bench = Bench::open(&args, true).await.unwrap();
        let progress = bench.progress(1, "registering");
        let now = bench.now().await.unwrap();
        bench.registrar(&progress).idle(1, now).await.unwrap();
        let error = measure(&mut bench, &amounts).await.unwrap_err();
        assert!(error.to_string().contains("give an empty one"), "{error}");
    }
}
