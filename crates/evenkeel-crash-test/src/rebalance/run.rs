//! Runs the rebalance test, from the start of the servers to the report.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::check::{MovedJob, ReportedMove, check};
use super::{RebalanceReport, RebalanceSettings};
use crate::api::Api;
use crate::clock::{Moment, mono_ns, ns, pass};
use crate::cluster::{Cluster, StoreKind};
use crate::evidence;
use crate::receiver::Receiver;
use crate::timestamp;

/// Server flags that let a rebalance move jobs that are due soon or have short intervals.
const MOVE_EVERYTHING: [&str; 6] =
    ["--balance-slot", "1s", "--balance-protection", "0s", "--balance-cooldown", "0s"];

/// Jobs per request.
const TOGETHER: usize = 5000;

/// Duration of a call.
const CALL: Duration = Duration::from_millis(20);

/// Scheduled times in the last seconds before the end of the test are not checked.
const TAIL: Duration = Duration::from_secs(5);

/// Repeatedly rebalances jobs and undoes the rebalance while the jobs fire. Checks the HTTP calls
/// of all jobs after the last rebalance.
///
/// # Errors
/// If the test cannot continue: a program is missing, or a server does not answer.
pub fn rebalance_while_firing(settings: &RebalanceSettings) -> Result<RebalanceReport> {
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
    let receiver = Receiver::start(Some(CALL))?;
    let programs = settings.programs.copy_to(folder)?;
    let store = StoreKind::Postgres;
    let mut cluster =
        Cluster::start(store, settings.nodes, &programs.server, folder, &MOVE_EVERYTHING)?;
    let apis: Vec<Api> = cluster.nodes.iter().map(|node| node.api()).collect::<Result<_>>()?;
    let first = apis.first().context("there is no server")?;
    create(first, settings, &receiver)?;
    let mut jobs = delete_half(first, settings)?;
    let mut report = RebalanceReport::default();
    let until = mono_ns() + ns(settings.length);
    // Rebalance requests go to all servers in turn.
    for api in apis.iter().cycle() {
        if mono_ns() >= until {
            break;
        }
        let rebalanced = api.post("/api/v1/scheduler/rebalance", &json!({}))?;
        let id = finished(api, &rebalanced)?;
        report.rebalances += 1;
        if record_moves(api, &id, &mut jobs, &mut report)?.0 == 0 {
            continue;
        }
        // An undo does not move jobs that are being fired, so the undo is repeated until all jobs
        // are moved back.
        loop {
            let undone = api.post(&format!("/api/v1/scheduler/rebalance/{id}/undo"), &json!({}))?;
            let undo = finished(api, &undone)?;
            report.undone += 1;
            let (_, missed) = record_moves(api, &undo, &mut jobs, &mut report)?;
            if missed == 0 || mono_ns() >= until {
                break;
            }
            pass(Duration::from_millis(100));
        }
    }
    pass(TAIL);
    let until_us = Moment::now().wall_us - i64::try_from(TAIL.as_micros())?;
    pass(Duration::from_secs(1));
    report.faults.extend(cluster.drain()?);
    report.faults.extend(cluster.nodes.iter().flat_map(|node| node.panics()));
    let (records, faults) = receiver.received();
    report.faults.extend(faults);
    let moved: Vec<MovedJob> = jobs.values().cloned().collect();
    let missing = check(&moved, &records, until_us, &mut report);
    check_skipped(&missing, &jobs, &cluster, folder, &mut report)?;
    Ok(report)
}

/// Creates twice as many jobs as the test uses. [`delete_half`] deletes half of the created jobs.
fn create(api: &Api, settings: &RebalanceSettings, receiver: &Receiver) -> Result<()> {
    let count = settings.jobs * 2;
    for begin in (0..count).step_by(TOGETHER) {
        let document = |number: usize| {
            json!({
                "name": format!("job-{number}"),
                "schedule": {"kind": "interval", "every": format!("{}s", settings.every)},
                "executor_type": "http",
                "executor_config": {
                    "url": format!("http://{}/job-{number}", receiver.address), "method": "POST",
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

/// Deletes the jobs that start in the second half of the interval, so that a rebalance moves other
/// jobs there. Returns the remaining jobs.
fn delete_half(api: &Api, settings: &RebalanceSettings) -> Result<HashMap<String, MovedJob>> {
    let every_us = i64::from(settings.every) * 1_000_000;
    let is_left = |next_us: i64| next_us.rem_euclid(every_us) < every_us / 2;
    let gone = all_jobs(api)?.into_iter().filter(|(_, _, next_us)| !is_left(*next_us));
    let gone: Vec<String> = gone.map(|(id, _, _)| id).collect();
    for ids in gone.chunks(TOGETHER) {
        api.post("/api/v1/jobs/commands", &json!({"action": "delete", "ids": ids}))?;
    }
    let left = all_jobs(api)?
        .into_iter()
        .map(|(id, name, first_us)| (id, MovedJob { name, every_us, first_us, moves: Vec::new() }));
    Ok(left.collect())
}

/// Returns id, name and next scheduled time of every job.
fn all_jobs(api: &Api) -> Result<Vec<(String, String, i64)>> {
    let mut jobs = Vec::new();
    for job in api.list("/api/v1/jobs", "jobs")? {
        let text = |field: &str| job[field].as_str().with_context(|| format!("no {field}"));
        let next_us = timestamp::field(&job, "next_run_at")?;
        jobs.push((text("id")?.to_owned(), text("name")?.to_owned(), next_us));
    }
    Ok(jobs)
}

/// Waits until the rebalance that `answer` describes has ended, and returns its id.
fn finished(api: &Api, answer: &Value) -> Result<String> {
    let id = answer["rebalance_id"].as_str().context("there is no rebalance_id")?.to_owned();
    let mut state = answer["state"].clone();
    while state == "running" {
        pass(Duration::from_millis(100));
        state = api.get(&format!("/api/v1/scheduler/rebalance/{id}"))?["state"].take();
    }
    ensure!(state == "done", "rebalance {id} is {state}");
    Ok(id)
}

/// Returns how many jobs a rebalance moved, and how many jobs it could not move in time.
fn record_moves(
    api: &Api,
    id: &str,
    jobs: &mut HashMap<String, MovedJob>,
    report: &mut RebalanceReport,
) -> Result<(u64, u64)> {
    let (mut made, mut missed) = (0, 0);
    for change in api.list(&format!("/api/v1/scheduler/rebalance/{id}/moves"), "moves")? {
        if change["made"] != true {
            missed += 1;
            continue;
        }
        made += 1;
        let old_us = timestamp::field(&change, "old_time")?;
        let new_us = timestamp::field(&change, "new_time")?;
        let job = change["job_id"].as_str().and_then(|id| jobs.get_mut(id));
        job.context("an unknown job was moved")?.moves.push(ReportedMove { old_us, new_us });
    }
    report.moves += made;
    report.missed_moves += missed;
    Ok((made, missed))
}

/// Checks that each scheduled time without an HTTP call is recorded as skipped, with a reason.
fn check_skipped(
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
        let attempts = evidence::executions(&api, id, &moved.name, &mut log)?;
        for time in times {
            let is_skipped = attempts
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
