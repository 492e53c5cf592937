//! From the start of the servers to the verdict.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::check::{MovedJob, ToldMove, check};
use super::{RebalanceReport, RebalanceSettings};
use crate::api::Api;
use crate::clock::{Moment, mono_ns, ns, pass};
use crate::cluster::{Cluster, StoreKind};
use crate::evidence;
use crate::jobs::{Body, Job, Policy};
use crate::moment;
use crate::sink::Sink;

/// What may be moved is moved, however soon it is due and however short its interval is.
const EAGER: [&str; 6] =
    ["--balance-slot", "1s", "--balance-protection", "0s", "--balance-cooldown", "0s"];

/// Jobs in one request.
const TOGETHER: usize = 5000;

/// A call takes this long.
const CALL: Duration = Duration::from_millis(20);

/// Times younger than this when the servers are told to stop are not judged.
const TAIL: Duration = Duration::from_secs(5);

/// Moves jobs to other times and back while they fire, and judges.
///
/// # Errors
/// When the test itself can't go on: a program is missing, or a server does not answer.
pub fn rebalance_under_fire(settings: &RebalanceSettings) -> Result<RebalanceReport> {
    let folder = tempfile::Builder::new().prefix("evenkeel-rebalance-").tempdir()?;
    match watch(settings, folder.path()) {
        Ok(report) if report.is_clean() => Ok(report),
        Ok(mut report) => {
            report.faults.push(format!("the logs are in {:?}", folder.keep()));
            Ok(report)
        }
        Err(error) => Err(error.context(format!("the logs are in {:?}", folder.keep()))),
    }
}

fn watch(settings: &RebalanceSettings, folder: &Path) -> Result<RebalanceReport> {
    let sink = Sink::start_with(CALL)?;
    let programs = settings.programs.copy_to(folder)?;
    let store = StoreKind::Postgres;
    let mut cluster = Cluster::start_with(store, settings.nodes, &programs.server, folder, &EAGER)?;
    let apis: Vec<Api> = cluster.nodes.iter().map(|node| node.api()).collect::<Result<_>>()?;
    let first = apis.first().context("there is no server")?;
    create(first, settings, &sink)?;
    let mut jobs = unevenly_left(first, settings)?;
    let mut report = RebalanceReport::default();
    let until = mono_ns() + ns(settings.length);
    // Each server in turn: a plan that one has made another may undo.
    for api in apis.iter().cycle() {
        if mono_ns() >= until {
            break;
        }
        let rebalanced = api.post("/api/v1/scheduler/rebalance", &json!({}))?;
        let id = finished(api, &rebalanced)?;
        report.rebalances += 1;
        if note_moves(api, &id, &mut jobs, &mut report)?.made == 0 {
            continue;
        }
        // Jobs that are due just then are left: they are asked for again.
        loop {
            let undone = api.post(&format!("/api/v1/scheduler/rebalance/{id}/undo"), &json!({}))?;
            let undo = finished(api, &undone)?;
            report.undone += 1;
            let missed = note_moves(api, &undo, &mut jobs, &mut report)?.missed;
            if missed == 0 || mono_ns() >= until {
                break;
            }
            pass(Duration::from_millis(100));
        }
    }
    pass(TAIL);
    let until_us = Moment::now().wall_us - i64::try_from(TAIL.as_micros())?;
    pass(Duration::from_secs(1));
    drain(&mut cluster, &mut report)?;
    let (records, faults) = sink.seen();
    report.faults.extend(faults);
    let moved: Vec<MovedJob> = jobs.values().cloned().collect();
    let missing = check(&moved, &records, until_us, &mut report);
    account_for(&missing, &jobs, &cluster, folder, &mut report)?;
    Ok(report)
}

/// Twice as many jobs as are wanted: half of them go again.
fn create(api: &Api, settings: &RebalanceSettings, sink: &Sink) -> Result<()> {
    let count = settings.jobs * 2;
    for begin in (0..count).step_by(TOGETHER) {
        let document = |number: usize| {
            json!({
                "name": format!("job-{number}"),
                "schedule": {"kind": "interval", "every": format!("{}s", settings.every)},
                "executor_type": "http",
                "executor_config": {
                    "url": format!("http://{}/job-{number}", sink.address), "method": "POST",
                },
                "max_retries": 0,
            })
        };
        let end = count.min(begin + TOGETHER);
        let jobs: Vec<Value> = (begin..end).map(document).collect();
        let answer = api.post("/api/v1/jobs/bulk", &json!({"jobs": jobs}))?;
        ensure!(answer["created"] == end - begin, "jobs were not created: {}", answer["failed"]);
    }
    Ok(())
}

/// Deletes the jobs of one half of the interval, so that a rebalance has something to do, and says
/// what is left.
fn unevenly_left(api: &Api, settings: &RebalanceSettings) -> Result<HashMap<String, MovedJob>> {
    let every_us = i64::from(settings.every) * 1_000_000;
    let is_left = |next_us: i64| next_us.rem_euclid(every_us) < every_us / 2;
    let gone: Vec<String> = all_jobs(api)?
        .into_iter()
        .filter(|(_, _, next_us)| !is_left(*next_us))
        .map(|(id, _, _)| id)
        .collect();
    for ids in gone.chunks(TOGETHER) {
        api.post("/api/v1/jobs/commands", &json!({"action": "delete", "ids": ids}))?;
    }
    let left = all_jobs(api)?
        .into_iter()
        .map(|(id, name, first_us)| (id, MovedJob { name, every_us, first_us, moves: Vec::new() }));
    Ok(left.collect())
}

/// Id, name and next time of every job.
fn all_jobs(api: &Api) -> Result<Vec<(String, String, i64)>> {
    let mut jobs = Vec::new();
    for job in pages(api, "/api/v1/jobs", "jobs")? {
        let text = |field: &str| job[field].as_str().with_context(|| format!("no {field}"));
        let next_us = moment::parse(text("next_run_at")?).context("next_run_at is no time")?;
        jobs.push((text("id")?.to_owned(), text("name")?.to_owned(), next_us));
    }
    Ok(jobs)
}

/// Everything on a list.
fn pages(api: &Api, path: &str, field: &str) -> Result<Vec<Value>> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let mut page = api.get(&format!("{path}?limit=1000{cursor}"))?;
        if let Value::Array(items) = page[field].take() {
            all.extend(items);
        }
        match &page["next_cursor"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => return Ok(all),
        }
    }
}

/// Waits for its end.
fn finished(api: &Api, answer: &Value) -> Result<String> {
    let id = answer["rebalance_id"].as_str().context("there is no rebalance_id")?.to_owned();
    let mut state = answer["state"].clone();
    while state == "running" {
        pass(Duration::from_millis(100));
        state = api.get(&format!("/api/v1/scheduler/rebalance/{id}"))?["state"].take();
    }
    if state != "done" {
        bail!("rebalance {id} is {state}");
    }
    Ok(id)
}

/// How many moves of one rebalance were made, and how many came too late.
#[derive(Default)]
struct Moved {
    made: u64,
    missed: u64,
}

fn note_moves(
    api: &Api,
    id: &str,
    jobs: &mut HashMap<String, MovedJob>,
    report: &mut RebalanceReport,
) -> Result<Moved> {
    let mut moved = Moved::default();
    for told in pages(api, &format!("/api/v1/scheduler/rebalance/{id}/moves"), "moves")? {
        if told["made"] != true {
            moved.missed += 1;
            continue;
        }
        moved.made += 1;
        let time = |field: &str| {
            told[field].as_str().and_then(moment::parse).with_context(|| format!("no {field}"))
        };
        let told_move = ToldMove { old_us: time("old_time")?, new_us: time("new_time")? };
        let job = told["job_id"].as_str().and_then(|id| jobs.get_mut(id));
        job.context("a job was moved that is not there")?.moves.push(told_move);
    }
    report.moves += moved.made;
    report.missed_moves += moved.missed;
    Ok(moved)
}

fn drain(cluster: &mut Cluster, report: &mut RebalanceReport) -> Result<()> {
    for node in &cluster.nodes {
        node.signal(Signal::TERM)?;
    }
    for node in &mut cluster.nodes {
        let status = node.wait()?;
        if !status.success() {
            report.faults.push(format!("{} did not drain: {status}", node.name));
        }
        let tell = |line| format!("{} panicked: {line}", node.name);
        report.faults.extend(node.panics().into_iter().map(tell));
    }
    Ok(())
}

/// Times for which nobody was called must be recorded as skipped, with a reason.
fn account_for(
    missing: &BTreeMap<String, BTreeSet<i64>>,
    jobs: &HashMap<String, MovedJob>,
    cluster: &Cluster,
    folder: &Path,
    report: &mut RebalanceReport,
) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let mut reader = cluster.start_reader()?;
    let api = reader.api()?;
    let mut log = File::create(folder.join("executions.jsonl"))?;
    for (id, moved) in jobs {
        let Some(times) = missing.get(&moved.name) else { continue };
        let job = Job {
            name: moved.name.clone(),
            id: id.clone(),
            body: Body::Http,
            every_us: moved.every_us,
            first_us: moved.first_us,
            policy: Policy::May,
        };
        let told = evidence::executions(&api, &job, &mut log)?;
        for time in times {
            let is_skipped = told
                .iter()
                .filter_map(|each| each.skipped.as_ref())
                .any(|skip| (skip.from_us..=skip.to_us).contains(time) && !skip.reason.is_empty());
            if is_skipped {
                report.skipped += 1;
            } else {
                report.faults.push(format!("{} was not called for {time}", moved.name));
            }
        }
    }
    reader.signal(Signal::TERM)?;
    reader.wait()?;
    Ok(())
}
