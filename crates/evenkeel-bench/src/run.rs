//! The benchmarks `steady`, `max` and `burst`.

use std::collections::BTreeSet;
use std::convert::identity;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, JobNo, Span, Timestamp};
use evenkeel_engine::Engine;
use evenkeel_executors::Executor;
use evenkeel_store::{Role, Roles, Scope};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use crate::args::{BenchArgs, MaxLoad};
use crate::ledger::{self, Executed, LedgerExecutor};
use crate::machine;
use crate::node::Sources;
use crate::report::{Quantiles, Report};
use crate::second_node::SecondNode;
use crate::server::TENANT;
use crate::target::Target;
use crate::workload::{Plan, Registrar, natural_rate, share};

/// A due run that is not executed this long after the end of the measurement counts as lost.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(60);
/// Maximum number of runs that were not executed and are looked up in the store's queue. All
/// further runs that were not executed count as lost.
const LOOKED_UP_MAX: usize = 100_000;
/// Number of runs that are due per second in the benchmark `max`. The rate is higher than any
/// machine can reach.
const OVERLOAD_RATE: f64 = 150_000.0;

/// Time in which the engine loads its jobs before `max` begins to measure. The floors, with which
/// the result is compared, load no jobs either.
const LOADING: Duration = Duration::from_secs(2);

/// The store, the clocks and the settings of a measurement.
pub(crate) struct Bench {
    pub(crate) target: Target,
    pub(crate) sources: Sources,
    pub(crate) scope: Scope,
    folder: tempfile::TempDir,
    workers: usize,
    quiet: bool,
}

/// Returns a progress bar that is hidden if `quiet`.
pub(crate) fn progress_bar(length: u64, what: &'static str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg:>12} {wide_bar} {pos}/{len} {eta:>5}") {
        bar.set_style(style);
    }
    bar
}

impl Bench {
    pub async fn open(args: &BenchArgs, quiet: bool) -> anyhow::Result<Self> {
        let target = Target::open(&args.store).await?;
        let tenant = target.store.tenant(TENANT).await?;
        Ok(Self {
            target,
            sources: Sources::default(),
            scope: Scope { tenant, role: Role::Admin },
            folder: tempfile::Builder::new().prefix("evenkeel-ledger-").tempdir()?,
            workers: args.workers,
            quiet,
        })
    }

    /// Returns an executor that records each start of a run in a file, and the path of that file.
    pub(crate) fn ledger(
        &self,
        starts: Option<mpsc::UnboundedSender<Executed>>,
    ) -> anyhow::Result<(Arc<LedgerExecutor>, PathBuf)> {
        let path = self.folder.path().join("ledger");
        Ok((LedgerExecutor::create(&path, Arc::clone(&self.sources.clock), starts)?, path))
    }

    pub(crate) async fn start(
        &self,
        executor: &Arc<impl Executor>,
        roles: Roles,
    ) -> anyhow::Result<Engine> {
        self.sources.start(&self.target.store, executor, roles, self.workers).await
    }

    pub(crate) fn progress(&self, length: u64, what: &'static str) -> ProgressBar {
        progress_bar(length, what, self.quiet)
    }

    pub(crate) fn registrar<'a>(&'a self, progress: &'a ProgressBar) -> Registrar<'a> {
        Registrar {
            store: &*self.target.store,
            scope: self.scope,
            chance: &*self.sources.chance,
            progress,
        }
    }

    pub(crate) fn monotonic(&self) -> Duration {
        self.sources.clock.monotonic()
    }

    pub(crate) async fn now(&self) -> anyhow::Result<Timestamp> {
        Ok(self.target.store.now().await?)
    }

    /// Returns a start time that leaves enough time to register and load `jobs` jobs before it.
    pub(crate) async fn start_time(&self, jobs: u64) -> anyhow::Result<Timestamp> {
        Ok(self.now().await?.saturating_add(Span::from_millis(5_000 + jobs / 8)))
    }

    /// Fires `rate` of the `jobs` jobs each second.
    pub async fn steady(&mut self, jobs: u64, rate: u64, seconds: u64) -> anyhow::Result<Report> {
        let (busy, longest) = share(jobs, rate)?;
        let progress = self.progress(jobs, "registering");
        let registrar = self.registrar(&progress);
        registrar.idle(jobs - busy, self.now().await?).await?;
        let start = self.start_time(busy).await?;
        let plan = registrar.busy(busy, longest, start, OverlapPolicy::default(), identity).await?;
        progress.finish_and_clear();
        let until = start.saturating_add(Span::from_secs(seconds));
        let report = self.measure(plan, start, until, false).await?;
        Ok(Report { load: "steady", jobs, ..report })
    }

    /// Fires `jobs` jobs that are all due at the same instant.
    pub async fn burst(&mut self, jobs: u64) -> anyhow::Result<Report> {
        let progress = self.progress(jobs, "registering");
        let at = self.start_time(jobs).await?;
        let plan = self.registrar(&progress).at_once(jobs, at, identity).await?;
        progress.finish_and_clear();
        let until = at.saturating_add(Span::from_micros(1));
        let report = self.measure(plan, at, until, false).await?;
        Ok(Report { load: "burst", jobs, ..report })
    }

    /// Fires more jobs than the node can run, to measure its highest rate.
    pub async fn max(&mut self, load: &MaxLoad) -> anyhow::Result<Report> {
        let MaxLoad { jobs, idle, seconds, split, .. } = *load;
        anyhow::ensure!(
            !split || self.target.kind == "postgres",
            "--split needs --store postgres: two nodes share a store"
        );
        let progress = self.progress(jobs + idle, "registering");
        let registrar = self.registrar(&progress);
        let now = self.now().await?;
        registrar.idle(idle, now).await?;
        let length = Duration::from_secs(seconds) + LOADING;
        let behind = OVERLOAD_RATE * length.as_secs_f64() / natural_rate(jobs);
        let start = now.saturating_sub(Span::from_secs(behind.ceil() as u64));
        // No due time is skipped.
        let plan = registrar.busy(jobs, 60, start, OverlapPolicy::Allow, identity).await?;
        progress.finish_and_clear();
        let until = self.now().await?.saturating_add(Span::from(length));
        let report = self.measure(plan, now, until, split).await?;
        Ok(Report { load: "max", jobs: jobs + idle, lateness_ms: None, ..report })
    }

    /// Runs the engine until `until` on the store's clock, and then until all runs due before
    /// `until` are finished. If more runs are due than the node can run, waits only for the started
    /// runs.
    async fn measure(
        &mut self,
        plan: Plan,
        start: Timestamp,
        until: Timestamp,
        split: bool,
    ) -> anyhow::Result<Report> {
        let (executor, path) = self.ledger(None)?;
        executor.count_until(until);
        let overloaded = start < until && plan.busy.values().any(|(first, _)| *first < start);
        let second = || SecondNode::start(&self.target.address, self.folder.path(), self.workers);
        let second = split.then(second).transpose()?;
        let mut from = (self.sources.clock.wall(), self.monotonic());
        self.target.begin().await?;
        let engine = self.start(&executor, Roles { worker: !split, ..Roles::ALL }).await?;
        if overloaded {
            tokio::time::sleep(LOADING).await;
            from = (self.sources.clock.wall(), self.monotonic());
            self.target.begin().await?;
        }

        let expected = plan.count(until);
        let rss_mb = self.wait_until(until, &executor, overloaded.then_some(expected)).await?;
        let deadline = self.monotonic() + CATCH_UP_LIMIT;
        while !overloaded && executor.counted() < expected && self.monotonic() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        engine.drain(Duration::from_secs(30)).await;
        let mut ledgers: Vec<PathBuf> = vec![path];
        let mut second_cpu_s = 0.0;
        if let Some(second) = second {
            let (ledger, cpu_s) = second.finish().await?;
            ledgers.push(ledger);
            second_cpu_s = cpu_s;
        }
        let took = self.monotonic() - from.1;
        let disturbance = self.target.disturbance(second_cpu_s, took.as_secs_f64());
        let done_at = self.now().await?;
        executor.flush()?;
        let mut report = self
            .evaluate(&plan, (start, from.0), until, overloaded, took, done_at, &ledgers)
            .await?;
        report.rss_mb = rss_mb;
        report.cpu_s += second_cpu_s;
        report.disturbance = disturbance;
        Ok(report)
    }

    /// Waits until the store's clock reaches `until`. Returns the highest memory use of this
    /// process during the wait.
    async fn wait_until(
        &self,
        until: Timestamp,
        executor: &LedgerExecutor,
        expected: Option<u64>,
    ) -> anyhow::Result<f64> {
        let now = self.now().await?;
        let wait = Duration::from(until.since(now));
        let progress = self.progress(wait.as_millis() as u64, "measuring");
        let began = self.monotonic();
        let mut rss_mb: f64 = 0.0;
        loop {
            let passed = self.monotonic() - began;
            progress.set_position(passed.as_millis() as u64);
            rss_mb = rss_mb.max(machine::rss_mb());
            if passed >= wait || expected.is_some_and(|all| executor.count() >= all) {
                progress.finish_and_clear();
                return Ok(rss_mb);
            }
            tokio::time::sleep((wait - passed).min(Duration::from_millis(200))).await;
        }
    }

    /// Returns those jobs and scheduled times in `times` whose run is in the store's queue. `ready`
    /// is the number of all queued runs.
    async fn waiting_among(
        &self,
        times: &[(JobNo, Timestamp)],
        ready: u64,
    ) -> anyhow::Result<BTreeSet<(JobNo, Timestamp)>> {
        let mut waiting = BTreeSet::new();
        if ready == 0 {
            return Ok(waiting);
        }
        for (job, time) in times.iter().copied().take(LOOKED_UP_MAX) {
            let key = AttemptKey::regular(job, time);
            let run = self.target.store.get_attempt(&self.scope, key).await?;
            if run.is_some_and(|run| run.status == AttemptStatus::Pending) {
                waiting.insert((job, time));
            }
        }
        Ok(waiting)
    }

    #[expect(clippy::too_many_arguments, reason = "the raw figures of one measurement")]
    async fn evaluate(
        &self,
        plan: &Plan,
        // the first scheduled time, and the time at which the measurement began
        (start, from): (Timestamp, Timestamp),
        until: Timestamp,
        overloaded: bool,
        took: Duration,
        done_at: Timestamp,
        ledgers: &[PathBuf],
    ) -> anyhow::Result<Report> {
        let executed = ledger::read(ledgers)?;
        let doubled = ledger::doubled(&executed);
        let counted: Vec<_> =
            executed.iter().filter(|executed| executed.scheduled_at < until).copied().collect();
        let measured = executed.iter().filter(|executed| executed.started_at >= from).count();
        let firings = (measured as u64).saturating_sub(doubled);
        let census = self.target.store.census().await?;
        // A started run counts as a firing only if it is finished and committed.
        anyhow::ensure!(
            census.running == 0,
            "{} runs were started and not finished when the engine had drained",
            census.running
        );
        let expected = if overloaded {
            // More runs were due than the node could run. Therefore a run counts as missing only if
            // a later run of the same job was executed.
            ledger::until_last(&counted, plan.expected(until))
        } else {
            plan.expected(until)
        };
        let missing = ledger::missing(&counted, &expected);
        let waiting = self.waiting_among(&missing, census.ready).await?;
        let (left_waiting, lost) = ledger::causes(&missing, &waiting, census.skipped_times);
        let late = counted.iter().map(|e| e.started_at.since(e.scheduled_at).as_micros());
        // A steady load is measured from the first scheduled run, not from the start of the engine.
        let idle_before = Duration::from(start.since(done_at.saturating_sub(Span::from(took))));
        let seconds = took.saturating_sub(idle_before).as_secs_f64();
        Ok(Report {
            store: self.target.kind.into(),
            durability: self.target.durability.clone(),
            seconds,
            firings,
            firings_per_s: firings as f64 / seconds,
            lateness_ms: Quantiles::of_micros(late),
            drain_s: done_at.since(until).as_micros() as f64 / 1e6,
            lost,
            left_waiting,
            doubled,
            skipped: census.skipped_times,
            rows_in_history: census.runs,
            cpu_s: self.target.cpu_seconds(),
            bytes_per_firing: self.target.bytes_written().await? as f64 / firings.max(1) as f64,
            ..Report::default()
        })
    }
}
