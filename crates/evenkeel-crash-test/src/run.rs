//! Runs the crash test, from the start of the servers to the report.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::check;
use crate::clock::{Moment, mono_ns, ns, pass, wait_for};
use crate::cluster::{Cluster, StoreKind};
use crate::evidence::{self, Evidence, InjectedFault, Window};
use crate::jobs::{self, Body, Job, Paths};
use crate::load_monitor::LoadMonitor;
use crate::plan::{Fault, Plan, PlannedFault, Target};
use crate::programs::Programs;
use crate::receiver::Receiver;
use crate::record::{self, Kind, Record};
use crate::report::Report;

#[derive(Clone, Debug)]
pub struct Settings {
    pub store: StoreKind,
    pub nodes: usize,
    pub plan: Plan,
    pub programs: Programs,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub report: Report,
    /// The folder with the logs, or `None` if there are no violations.
    pub logs: Option<PathBuf>,
}

/// Scheduled times in the last seconds before the end of the test are not checked.
const TAIL: Duration = Duration::from_secs(5);

/// Runs jobs, injects all faults of the plan meanwhile, and then checks the invariants.
///
/// # Errors
/// If the test cannot continue: a program is missing, or a server does not start again.
pub fn run(settings: &Settings) -> Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("evenkeel-crash-").tempdir()?;
    match gather(settings, folder.path()) {
        Ok(evidence) => {
            let title = format!("{} on {}", count(settings.nodes, "server"), settings.store);
            let report = check::check_all(&evidence, &title, settings.plan.seed);
            let logs = (!report.is_clean()).then(|| folder.keep());
            Ok(Outcome { report, logs })
        }
        Err(error) => Err(error.context(format!("the logs are in {:?}", folder.keep()))),
    }
}

fn gather(settings: &Settings, folder: &Path) -> Result<Evidence> {
    let receiver = Receiver::start(None)?;
    let programs = settings.programs.copy_to(folder)?;
    let cluster = Cluster::start(settings.store, settings.nodes, &programs.server, folder, &[])?;
    let paths = Paths {
        probe: programs.probe.clone(),
        folder: folder.to_owned(),
        receiver: receiver.address.to_string(),
    };
    let first = cluster.nodes.first().context("there is no server")?;
    let jobs = jobs::create(&first.api()?, settings.store, &paths)?;
    let evidence = Evidence { jobs, ..Evidence::default() };
    let mut test = Test { cluster, receiver, paths, evidence };
    let began = Moment::now();
    let load_monitor = LoadMonitor::start(programs.probe);
    for planned in &settings.plan.faults {
        test.idle(planned.after)?;
        test.inject(planned)?;
    }
    test.idle(settings.plan.quiet_after)?;
    let ended = Moment::now();
    test.evidence.busy = load_monitor.stop();
    let tail_us = i64::try_from(TAIL.as_micros())?;
    test.evidence.checked = Some(Window { from_us: began.wall_us, to_us: ended.wall_us - tail_us });
    test.drain()?;
    test.collect()?;
    Ok(test.evidence)
}

struct Test {
    cluster: Cluster,
    receiver: Receiver,
    paths: Paths,
    evidence: Evidence,
}

impl Test {
    /// Waits for the duration `time`, and restarts servers that end unexpectedly.
    fn idle(&mut self, time: Duration) -> Result<()> {
        let until = mono_ns() + ns(time);
        while mono_ns() < until {
            pass(Duration::from_millis(50).min(Duration::from_nanos(until - mono_ns().min(until))));
            for node in &mut self.cluster.nodes {
                if let Some(status) = node.ended() {
                    let incident = format!("{} ended unexpectedly: {status}", node.name);
                    self.evidence.incidents.push(incident);
                    node.start()?;
                }
            }
        }
        Ok(())
    }

    fn inject(&mut self, planned: &PlannedFault) -> Result<()> {
        if let Some(offset_ms) = planned.offset_ms {
            self.idle(self.until_due(offset_ms))?;
        }
        let number = self.number(planned.target)?;
        let victim = self.cluster.nodes.get(number).filter(|_| planned.fault != Fault::Database);
        let victim = victim.and_then(|node| Some((node.name.clone(), node.pid()?)));
        let name = victim.as_ref().map_or("", |(name, _)| name);
        eprintln!("{} {name} for {:.1} s", planned.fault, planned.lasts.as_secs_f64());
        let from = Moment::now();
        self.cluster.begin(planned.fault, number)?;
        self.idle(planned.lasts)?;
        self.cluster.end(planned.fault, number)?;
        let to = Moment::now();
        self.evidence.faults.push(InjectedFault { fault: planned.fault, victim, from, to });
        Ok(())
    }

    /// Returns the delay from now until `offset_ms` after the next scheduled time of most jobs.
    /// Most jobs are due at whole seconds after the first scheduled time of the first job.
    fn until_due(&self, offset_ms: i64) -> Duration {
        let first_us = self.evidence.jobs.first().map_or(0, |job| job.first_us);
        let left_us = (first_us + offset_ms * 1000 - Moment::now().wall_us).rem_euclid(1_000_000);
        Duration::from_micros(left_us.unsigned_abs())
    }

    /// Returns the number of the server that a fault with this target hits now.
    fn number(&self, target: Target) -> Result<usize> {
        let fallback = target.number() % self.cluster.nodes.len().max(1);
        let Target::LongBodyOwner(_) = target else { return Ok(fallback) };
        let mut youngest: Option<Record> = None;
        for job in self.evidence.jobs.iter().filter(|job| job.body == Body::Long) {
            let last = record::read(&self.paths.log(&job.name))?.pop();
            let running = last.filter(|record| record.kind == Kind::Start);
            youngest = [youngest, running].into_iter().flatten().max_by_key(|one| one.at.mono_ns);
        }
        let pid = youngest.map(|record| record.node_pid);
        let holder = self.cluster.nodes.iter().position(|node| pid.is_some() && node.pid() == pid);
        Ok(holder.unwrap_or(fallback))
    }

    /// Drains the servers. After all servers have drained, no attempt may run.
    fn drain(&mut self) -> Result<()> {
        File::create(self.paths.stop())?;
        self.idle(Duration::from_secs(1))?;
        self.evidence.incidents.extend(self.cluster.drain()?);
        let held = |job: &&Job| {
            let lock = File::options().create(true).append(true).open(self.paths.lock(&job.name));
            !lock.is_ok_and(|lock| lock.try_lock().is_ok())
        };
        for job in self.evidence.jobs.iter().filter(|job| job.body != Body::Http) {
            if wait_for(Duration::from_secs(2), || (!held(&job)).then_some(())).is_none() {
                let incident = format!("a body of {} outlived all servers", job.name);
                self.evidence.incidents.push(incident);
            }
        }
        let before = self.records()?.len();
        pass(Duration::from_millis(1500));
        if self.records()?.len() != before {
            self.evidence.incidents.push("a body started after all servers ended".to_owned());
        }
        Ok(())
    }

    /// Reads all attempts from the API, and the records of all probes and HTTP calls.
    fn collect(&mut self) -> Result<()> {
        let mut reader = self.cluster.start_reader()?;
        let api = reader.api()?;
        let mut log = File::create(self.paths.folder.join("executions.jsonl"))?;
        for job in &self.evidence.jobs {
            let executions = evidence::executions(&api, &job.id, &job.name, &mut log)?;
            self.evidence.executions.extend(executions);
        }
        reader.signal(Signal::TERM)?;
        reader.wait()?;
        self.evidence.records = self.records()?;
        self.evidence.incidents.extend(self.receiver.received().1);
        for node in self.cluster.nodes.iter().chain([&reader]) {
            self.evidence.incidents.extend(node.panics());
        }
        Ok(())
    }

    fn records(&self) -> Result<Vec<Record>> {
        let mut records = self.receiver.received().0;
        for job in &self.evidence.jobs {
            records.extend(record::read(&self.paths.log(&job.name))?);
        }
        Ok(records)
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
